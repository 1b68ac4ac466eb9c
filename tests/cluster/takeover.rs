//! Objects as Flux, kubectl and Helm left them (recorded from the real ones by hack/record-takeover) are taken over without
//! being re-created, and look afterwards as they do when Flux takes them over.

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::objects;
use testkit::recorded::replay;

use crate::world::{Test, run};

const MANIFESTS: &str = include_str!("../cases/takeover/manifests/app.yaml");

/// A recording of a namespace, as if it had been that of the test.
fn recorded(test: &Test, text: &str, namespace: &str) -> Result<Vec<Value>> {
    Ok(serde_json::from_str(&text.replace(namespace, &test.namespace))?)
}

fn is_kustomization(object: &Value) -> bool {
    object["kind"] == "Kustomization"
}

fn api(test: &Test, recorded: &Value) -> Result<kube::Api<DynamicObject>> {
    let text = |field: &str| recorded[field].as_str().context("no kind");
    Ok(objects::api(
        &test.client,
        text("apiVersion")?,
        text("kind")?,
        &test.namespace,
    ))
}

async fn live(test: &Test, recorded: &Value) -> Result<DynamicObject> {
    let name = recorded["metadata"]["name"].as_str().context("no name")?;
    Ok(api(test, recorded)?.get(name).await?)
}

/// Owners of fields, without times and Kubernetes' own controllers.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let others = entries
        .into_iter()
        .flatten()
        .filter(|entry| entry["manager"] != "kube-controller-manager");
    let mut owners: Vec<_> = others
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry["manager"], entry["operation"], entry["subresource"], entry["fieldsV1"]
            )
        })
        .collect();
    owners.sort();
    owners
}

/// The same without Go's empty structs, which Flux sends and owns whatever the manifest says.
fn owners_of_values(object: &Value) -> Vec<String> {
    let mut object = object.clone();
    let entries = object["metadata"]["managedFields"].as_array_mut();
    entries
        .into_iter()
        .flatten()
        .for_each(|entry| drop_empty_structs(&mut entry["fieldsV1"]));
    owners(&object)
}

fn drop_empty_structs(fields: &mut Value) {
    let Some(fields) = fields.as_object_mut() else {
        return;
    };
    fields.values_mut().for_each(drop_empty_structs);
    let is_struct = |field: &str| matches!(field, "f:metadata" | "f:resources" | "f:strategy");
    fields.retain(|field, below| !is_struct(field) || below.as_object().is_some_and(|map| !map.is_empty()));
}

/// Content of the object, without what only its server sets.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !key.starts_with("deployment.kubernetes.io/"));
    content["metadata"] =
        json!({"name": metadata["name"], "labels": metadata["labels"], "annotations": annotations});
    content["status"] = Value::Null;
    if object["kind"] == "Service" {
        content["spec"]["clusterIP"] = Value::Null;
        content["spec"]["clusterIPs"] = Value::Null;
    }
    content
}

fn manifests(test: &Test) -> String {
    MANIFESTS.replace("namespace: takeover", &format!("namespace: {}", test.namespace))
}

#[test]
fn what_flux_applied_is_taken_over_without_a_write() {
    run("takeover", |test| async move {
        let recording = recorded(&test, include_str!("../cases/takeover/by-flux.json"), "takeover")?;
        let (kustomizations, applied): (Vec<_>, Vec<_>) = recording.into_iter().partition(is_kustomization);
        let mut before = Vec::new();
        for object in &applied {
            before.push(replay(&test.client, object).await?);
        }
        // The Kustomization with Flux's finalizer, inventory and history.
        let recorded = &kustomizations[0];
        let mut kustomization = test.kustomization("app", json!({"interval": "1m"}));
        kustomization["metadata"]["finalizers"] = recorded["metadata"]["finalizers"].clone();
        test.apply(&kustomization).await?;
        let status = Patch::Merge(json!({"status": recorded["status"]}));
        test.kustomizations()
            .patch_status("app", &PatchParams::default(), &status)
            .await?;

        let repository = test.repository(&[("deploy/app.yaml", manifests(&test))])?;
        test.git_source(&repository).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let ready = test.ready("app", &revision).await?;
        for (object, before) in applied.iter().zip(&before) {
            let after = live(&test, object).await?;
            let name = format!("{} {:?}", object["kind"], before.metadata.name);
            ensure!(after.metadata.uid == before.metadata.uid, "{name} was made anew");
            ensure!(
                after.metadata.generation == before.metadata.generation,
                "{name} was changed"
            );
            let after = serde_json::to_value(&after)?;
            ensure!(owners(&after) == owners(object), "{name}: {:#?}", owners(&after));
            ensure!(content(&after) == content(object), "{name}: {after:#}");
        }
        let after = serde_json::to_value(&ready)?;
        ensure!(after["metadata"]["finalizers"] == recorded["metadata"]["finalizers"]);
        let ids = |object: &Value| {
            let entries = object["status"]["inventory"]["entries"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let mut ids: Vec<_> = entries.iter().map(|entry| entry["id"].to_string()).collect();
            ids.sort();
            ids
        };
        ensure!(ids(&after) == ids(recorded), "{:?}", ids(&after));
        ensure!(
            after["status"]["history"][1] == recorded["status"]["history"][0],
            "{:#}",
            after["status"]
        );
        Ok(())
    });
}

/// Takes over what another tool left, and compares with what Flux made of the same.
async fn as_flux_takes_it_over(test: Test, left: &str, adopted: &str, namespace: &str) -> Result<()> {
    let left = recorded(&test, left, namespace)?;
    let adopted = recorded(&test, adopted, namespace)?;
    let mut before = Vec::new();
    for object in &left {
        before.push(replay(&test.client, object).await?);
    }
    let repository = test.repository(&[("deploy/app.yaml", manifests(&test))])?;
    test.deliver(&repository, json!({})).await?;
    for (object, before) in left.iter().zip(&before) {
        let is_it = |other: &&Value| {
            other["kind"] == object["kind"] && other["metadata"]["name"] == object["metadata"]["name"]
        };
        let expected = adopted.iter().find(is_it).context("not recorded afterwards")?;
        let after = live(&test, object).await?;
        let name = format!("{} {:?}", object["kind"], before.metadata.name);
        ensure!(after.metadata.uid == before.metadata.uid, "{name} was made anew");
        let after = serde_json::to_value(&after)?;
        ensure!(
            owners_of_values(&after) == owners_of_values(expected),
            "{name}: {:#?}\n{:#?}",
            owners(&after),
            owners(expected)
        );
        ensure!(
            content(&after) == content(expected),
            "{name}: {:#}\n{:#}",
            content(&after),
            content(expected)
        );
    }
    Ok(())
}

#[test]
fn what_kubectl_left_ends_as_with_flux() {
    run("takeover-kubectl", |test| {
        let (left, adopted) = (
            include_str!("../cases/takeover/by-kubectl.json"),
            include_str!("../cases/takeover/by-kubectl-adopted.json"),
        );
        as_flux_takes_it_over(test, left, adopted, "by-kubectl")
    });
}

#[test]
fn what_helm_3_left_ends_as_with_flux() {
    run("takeover-helm3", |test| {
        let (left, adopted) = (
            include_str!("../cases/takeover/by-helm3.json"),
            include_str!("../cases/takeover/by-helm3-adopted.json"),
        );
        as_flux_takes_it_over(test, left, adopted, "by-helm3")
    });
}

#[test]
fn what_helm_4_left_ends_as_with_flux() {
    run("takeover-helm4", |test| {
        let (left, adopted) = (
            include_str!("../cases/takeover/by-helm4.json"),
            include_str!("../cases/takeover/by-helm4-adopted.json"),
        );
        as_flux_takes_it_over(test, left, adopted, "by-helm4")
    });
}
