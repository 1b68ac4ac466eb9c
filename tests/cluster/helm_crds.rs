//! CRDs of charts, by what the HelmRelease says of them.

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use testkit::objects::{self, condition};
use testkit::registry::tar_gz;
use testkit::wait_for;

use crate::helm::{HelmTest, run};
use crate::world::PATIENCE;

/// A definition of Things of a group.
fn definition(group: &str, description: &str) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "description": description,
                "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    })
    .to_string()
}

/// Has the OCIRepository `web` point at a chart of a version with that definition, and a Thing if the values ask for one.
async fn choose(test: &HelmTest, version: &str, description: &str) -> Result<()> {
    let group = group(test);
    let metadata = format!("apiVersion: v2\nname: web\nversion: {version}\n");
    let thing = format!(
        "{{{{- if .Values.thing }}}}\napiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: {{{{ .Release.Name }}}}}}\nspec: \
         {{version: {version}}}\n{{{{- end }}}}\n"
    );
    let chart = tar_gz(&[
        ("web/Chart.yaml", metadata.as_str()),
        ("web/crds/things.yaml", &definition(&group, description)),
        ("web/templates/thing.yaml", &thing),
    ])?;
    test.oci_chart(version, chart).await.map(drop)
}

fn group(test: &HelmTest) -> String {
    format!("{}.example.com", test.namespace)
}

fn definitions(test: &HelmTest) -> Api<DynamicObject> {
    let resource = kube::api::ApiResource::erase::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >(&());
    Api::all_with(test.client.clone(), &resource)
}

/// Description in the cluster's definition; None if there is none.
async fn described(test: &HelmTest) -> Result<Option<String>> {
    let found = definitions(test)
        .get_opt(&format!("things.{}", group(test)))
        .await?;
    Ok(found.map(|found| {
        let description = "/spec/versions/0/schema/openAPIV3Schema/description";
        objects::text(&found, description).to_owned()
    }))
}

#[test]
fn crds_are_made_skipped_and_replaced_as_the_spec_says() {
    run("helm-crds", |test| async move {
        // An install without them fails where it needs them.
        choose(&test, "1.0.0", "first").await?;
        let spec = |thing: bool, more: Value| {
            let mut spec = json!({"values": {"thing": thing}});
            if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
                spec.extend(more);
            }
            test.release(spec)
        };
        let skipped = json!({"install": {"crds": "Skip", "remediation": {"retries": 0}}});
        test.apply(&spec(true, skipped.clone())).await?;
        let message = test.refused("InstallFailed").await?;
        ensure!(message.contains("Thing"), "{message}");
        test.apply(&spec(false, skipped)).await?;
        test.ready().await?;
        ensure!(described(&test).await?.is_none());
        test.delete().await?;

        // The default makes them, before the objects that need them; an upgrade leaves those that are there.
        test.apply(&spec(true, json!({}))).await?;
        test.ready().await?;
        ensure!(described(&test).await?.as_deref() == Some("first"));
        let things = test.objects(&format!("{}/v1", group(&test)), "Thing");
        let thing = things.get("web").await.context("there is no Thing")?;
        ensure!(objects::text(&thing, "/spec/version") == "1.0.0");
        choose(&test, "2.0.0", "second").await?;
        test.ready_at(2).await?;
        ensure!(described(&test).await?.as_deref() == Some("first"));

        test.apply(&spec(true, json!({"upgrade": {"crds": "CreateReplace"}})))
            .await?;
        choose(&test, "3.0.0", "third").await?;
        let is_third = |object: &DynamicObject| {
            objects::is_ready(object)
                && condition(object, "Ready").is_some_and(|(_, _, message)| message.contains("3.0.0"))
        };
        wait_for(&test.releases(), "web", is_third, PATIENCE).await?;
        ensure!(described(&test).await?.as_deref() == Some("third"));
        let thing = things.get("web").await.context("there is no Thing")?;
        ensure!(objects::text(&thing, "/spec/version") == "3.0.0");

        // They stay when the release goes, and so do other Things.
        test.delete().await?;
        ensure!(described(&test).await?.as_deref() == Some("third"));
        ensure!(things.get_opt("web").await?.is_none());
        let name = format!("things.{}", group(&test));
        definitions(&test).delete(&name, &DeleteParams::default()).await?;
        Ok(())
    });
}
