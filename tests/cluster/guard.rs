//! Tests of the prune guard: objects that are kept until someone confirms, and how to confirm.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition, is_ready};
use testkit::{Controller, wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, inventory_of, run};

const CONFIRM: &str = "windlass.dev/confirm-prune";

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

fn namespaces(test: &Test) -> Api<Namespace> {
    Api::all(test.client.clone())
}

/// Makes an object that no Kustomization manages.
async fn foreign(test: &Test, namespace: &str, name: &str) -> Result<()> {
    test.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}),
    )
    .await
}

/// Waits until a prune is refused; returns the message.
async fn refused(test: &Test, name: &str) -> Result<String> {
    test.not_ready(&test.kustomizations(), name, "PruneRefused").await
}

/// Does what the message says.
async fn confirm(test: &Test, name: &str, message: &str) -> Result<()> {
    let (_, rest) = message.split_once(&format!("{CONFIRM}=")).context("no token")?;
    let token: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    ensure!(token.len() == 12, "{message}");
    annotate(&test.kustomizations(), name, CONFIRM, &token).await
}

async fn annotate(api: &Api<DynamicObject>, name: &str, key: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    api.patch_metadata(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A Kustomization that manages a namespace with a ConfigMap in it, and one beside it.
async fn with_namespace(test: &Test, spec: Value) -> Result<(Repository, String)> {
    let (ns, team) = (&test.namespace, format!("{}-team", test.namespace));
    let repository = test.repository(&[
        ("deploy/namespace.yaml", namespace(&team)),
        ("deploy/inside.yaml", config_map(&team, "ours", "1")),
        ("deploy/beside.yaml", config_map(ns, "beside", "1")),
    ])?;
    test.deliver(&repository, spec).await?;
    Ok((repository, team))
}

#[test]
fn a_namespace_with_foreign_content_stays_until_exactly_that_is_confirmed() {
    run("guard-namespace", |test| async move {
        let (repository, team) = with_namespace(&test, json!({})).await?;
        foreign(&test, &team, "theirs").await?;
        let changes = [
            Change::delete("deploy/namespace.yaml"),
            Change::delete("deploy/inside.yaml"),
            Change::write("deploy/beside.yaml", config_map(&test.namespace, "beside", "2")),
        ];
        let revision = test.push(&repository, &changes).await?;
        let first = refused(&test, "app").await?;
        ensure!(
            first.contains(&format!(
                "Namespace/{team} has 1 object of others: ConfigMap/{team}/theirs"
            )),
            "{first}"
        );
        // Everything else is done, and nothing is lost.
        test.config_map_has("beside", "key", "2").await?;
        wait_until_gone::<k8s_openapi::api::core::v1::ConfigMap>(
            &Api::namespaced(test.client.clone(), &team),
            "ours",
            PATIENCE,
        )
        .await?;
        let object = test.kustomizations().get("app").await?;
        ensure!(inventory_of(&object).contains(&format!("_{team}__Namespace")));

        // One more object, and the first confirmation is for something else.
        foreign(&test, &team, "more").await?;
        confirm(&test, "app", &first).await?;
        let changed = |object: &DynamicObject| {
            condition(object, "Ready")
                .is_some_and(|(_, _, message)| message.contains("has 2 objects of others"))
        };
        let object = wait_for(&test.kustomizations(), "app", changed, PATIENCE).await?;
        ensure!(
            namespaces(&test)
                .get(&team)
                .await?
                .metadata
                .deletion_timestamp
                .is_none()
        );
        let second = condition(&object, "Ready").map(|(_, _, message)| message.to_owned());
        confirm(&test, "app", &second.unwrap_or_default()).await?;
        test.ready("app", &revision).await?;
        wait_until_gone(&namespaces(&test), &team, PATIENCE).await
    });
}

#[test]
fn a_namespace_stays_while_the_source_still_has_something_in_it() {
    run("guard-kept", |test| async move {
        let (repository, team) = with_namespace(&test, json!({"retryInterval": "1s"})).await?;
        let revision = test
            .push(&repository, &[Change::delete("deploy/namespace.yaml")])
            .await?;
        let message = refused(&test, "app").await?;
        ensure!(
            message.contains(&format!(
                "has 1 object that are still applied: ConfigMap/{team}/ours"
            )),
            "{message}"
        );
        // To be kept by annotation it needs no confirmation.
        let patch = Patch::Merge(
            json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}}),
        );
        namespaces(&test)
            .patch(&team, &PatchParams::default(), &patch)
            .await?;
        test.ready("app", &revision).await?;
        ensure!(
            namespaces(&test)
                .get(&team)
                .await?
                .metadata
                .deletion_timestamp
                .is_none()
        );
        namespaces(&test).delete(&team, &DeleteParams::default()).await?;
        Ok(())
    });
}

#[test]
fn a_deleted_kustomization_waits_until_the_foreign_content_is_gone() {
    run("guard-finalizer", |test| async move {
        let (_, team) = with_namespace(&test, json!({})).await?;
        foreign(&test, &team, "theirs").await?;
        test.kustomizations()
            .delete("app", &DeleteParams::default())
            .await?;
        let message = refused(&test, "app").await?;
        ensure!(message.contains(&format!("ConfigMap/{team}/theirs")), "{message}");
        // What was dangerous to no one is gone by now, and what is left is in the inventory.
        test.config_map_gone("beside").await?;
        let left = inventory_of(&test.kustomizations().get("app").await?);
        ensure!(left == [format!("_{team}__Namespace")], "{left:?}");
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(test.client.clone(), &team);
        maps.delete("theirs", &DeleteParams::default()).await?;
        wait_until_gone(&test.kustomizations(), "app", PATIENCE).await?;
        wait_until_gone(&namespaces(&test), &team, PATIENCE).await
    });
}

#[test]
fn a_definition_with_foreign_objects_stays_until_it_is_confirmed() {
    run("guard-definition", |test| async move {
        let (ns, group) = (&test.namespace, format!("{}.example.com", test.namespace));
        let name = format!("widgets.{group}");
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
        });
        let widget = |name: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name, "namespace": ns}});
        let repository = test.repository(&[
            ("deploy/crd.yaml", definition.to_string()),
            ("deploy/widget.yaml", widget("ours").to_string()),
            ("deploy/a.yaml", config_map(ns, "a", "1")),
        ])?;
        test.deliver(&repository, json!({"wait": false})).await?;
        test.apply(&widget("theirs")).await?;
        let changes = [
            Change::delete("deploy/crd.yaml"),
            Change::delete("deploy/widget.yaml"),
        ];
        let revision = test.push(&repository, &changes).await?;
        let message = refused(&test, "app").await?;
        ensure!(
            message.contains(&format!("has 1 object of others: Widget.{group}/{ns}/theirs"))
                || message.contains(&format!("Widget/{ns}/theirs")),
            "{message}"
        );
        ensure!(
            test.objects(&format!("{group}/v1"), "Widget")
                .get_opt("theirs")
                .await?
                .is_some()
        );
        confirm(&test, "app", &message).await?;
        test.ready("app", &revision).await?;
        let definitions = objects::api_of(&test.client, &definition)?.0;
        wait_until_gone(&definitions, &name, PATIENCE).await
    });
}

#[test]
fn the_controllers_own_namespace_is_never_deleted_unconfirmed() {
    run("guard-own", |test| async move {
        let own = format!("{}-system", test.namespace);
        test.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}}))
            .await?;
        let mut options = test.own_shard();
        options.namespace = own.clone();
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        // Both are in it: apply-controller reads the artifact service as an account of its own namespace.
        let source = Controller::start_source(kubeconfig, options.clone()).await?;
        options.flags.push("--prune-foreign=allow".to_owned());
        let _apply = Controller::start_apply(kubeconfig, &source, options).await?;
        let repository = test.repository(&[
            ("deploy/own.yaml", namespace(&own)),
            ("deploy/team.yaml", namespace(&format!("{}-team", test.namespace))),
        ])?;
        let git = objects::git_repository(&test.namespace, "app", repository.url(), "main");
        test.apply(&test.in_own_shard(git)).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
            .await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        foreign(&test, &format!("{}-team", test.namespace), "theirs").await?;
        test.kustomizations()
            .delete("app", &DeleteParams::default())
            .await?;
        let message = refused(&test, "app").await?;
        ensure!(
            message.contains(&format!(
                "refused to delete 1 object\nNamespace/{own} is the namespace of this controller"
            )),
            "{message}"
        );
        let live = namespaces(&test).get(&own).await?;
        ensure!(live.metadata.deletion_timestamp.is_none());
        confirm(&test, "app", &message).await?;
        wait_until_gone(&test.kustomizations(), "app", PATIENCE).await
    });
}

#[test]
fn more_than_the_share_is_not_deleted_at_once() {
    run("guard-share", |test| async move {
        let mut options = test.own_shard();
        options.flags.push("--prune-max-share=50".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let mut apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        let map = |n: usize| {
            (
                format!("deploy/{n}.yaml"),
                config_map(&test.namespace, &format!("m{n}"), "1"),
            )
        };
        let repository = test.repository(&(0..10).map(map).collect::<Vec<_>>())?;
        test.git_source(&repository).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({"retryInterval": "1s"}))))
            .await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;

        let remove = |range: std::ops::Range<usize>| -> Vec<Change> {
            range
                .map(|n| Change::delete(&format!("deploy/{n}.yaml")))
                .collect()
        };
        test.push(&repository, &remove(0..6)).await?;
        let message = refused(&test, "app").await?;
        ensure!(
            message.contains("refused to delete 6 objects of 10 at once, more than 50 %: ConfigMap/"),
            "{message}"
        );
        // What joins the inventory, and a restart, do not make the six fewer.
        let revision = test
            .push(
                &repository,
                &(10..20)
                    .map(map)
                    .map(|(p, t)| Change::write(&p, t))
                    .collect::<Vec<_>>(),
            )
            .await?;
        test.config_map_has("m19", "key", "1").await?;
        test.not_ready_at("app", &revision).await?;
        apply.kill();
        apply.restart().await?;
        let object = test.kustomizations().get("app").await?;
        ensure!(inventory_of(&object).len() == 20, "{:?}", inventory_of(&object));
        test.config_map_has("m0", "key", "1").await?;
        confirm(&test, "app", &refused(&test, "app").await?).await?;
        test.ready("app", &revision).await?;
        test.config_map_gone("m0").await?;
        // Half of it may go without a question.
        let revision = test.push(&repository, &remove(6..13)).await?;
        test.ready("app", &revision).await?;
        test.delete_kustomization("app").await
    });
}
