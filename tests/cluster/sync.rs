//! The main job: a commit, or a tag in a registry, becomes objects; the next one changes them; what left is pruned.

use anyhow::ensure;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::{self, condition, field, text};
use testkit::registry::Kind;
use testkit::wait_for;

use crate::world::{PATIENCE, config_map, deployment, inventory_of, run};

#[test]
fn a_commit_becomes_objects_and_status_is_as_flux_writes_it() {
    run("first-sync", |test| async move {
        let ns = &test.namespace;
        let files = [
            ("deploy/map.yaml", config_map(ns, "one", "1")),
            ("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1)),
            ("deploy/notes.md", "not a manifest".to_owned()),
        ];
        let repository = test.repository(&files)?;
        let object = test.deliver(&repository, json!({})).await?;
        let sha = repository.resolve("main")?;

        let source = test.git_repositories().get("app").await?;
        let artifact = |name: &str| text(&source, &format!("/status/artifact/{name}")).to_owned();
        ensure!(artifact("revision") == format!("main@sha1:{sha}"));
        ensure!(artifact("path") == format!("gitrepository/{ns}/app/{sha}.tar.gz"));
        ensure!(artifact("url").ends_with(&artifact("path")) && artifact("digest").starts_with("sha256:"));
        // Beside what Flux writes: who made the commit, for those who keep a record of deliveries.
        let of_commit = field(&source, "/status/artifact/metadata")
            .cloned()
            .unwrap_or_default();
        ensure!(of_commit["windlass.dev/author"] == "Testkit", "{of_commit}");
        let made = of_commit["org.opencontainers.image.created"].as_str();
        ensure!(
            made.is_some_and(|made| made.parse::<jiff::Timestamp>().is_ok()),
            "{of_commit}"
        );
        let (status, reason, message) = condition(&source, "Ready").unwrap_or_default();
        ensure!(
            (status, reason) == ("True", "Succeeded"),
            "{status} {reason} {message}"
        );
        ensure!(
            message == format!("stored artifact for revision 'main@sha1:{sha}'"),
            "{message}"
        );
        ensure!(condition(&source, "ArtifactInStorage").is_some_and(|(status, ..)| status == "True"));

        let (_, reason, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            reason == "ReconciliationSucceeded" && message == format!("Applied revision: main@sha1:{sha}")
        );
        ensure!(condition(&object, "Healthy").is_some_and(|(status, ..)| status == "True"));
        ensure!(condition(&object, "Reconciling").is_none());
        let inventory = inventory_of(&object);
        ensure!(
            inventory
                == [
                    format!("{ns}_one__ConfigMap"),
                    format!("{ns}_web_apps_Deployment")
                ],
            "{inventory:?}"
        );
        ensure!(object.metadata.finalizers == Some(vec!["finalizers.fluxcd.io".to_owned()]));
        ensure!(field(&object, "/status/history/0/totalReconciliations") == Some(&json!(1)));

        let map = test.config_map_has("one", "key", "1").await?;
        let labels = map.metadata.labels.unwrap_or_default();
        ensure!(labels.get("kustomize.toolkit.fluxcd.io/name").map(String::as_str) == Some("app"));
        ensure!(labels.get("kustomize.toolkit.fluxcd.io/namespace") == Some(ns));
        let managers = map.metadata.managed_fields.unwrap_or_default();
        ensure!(managers.len() == 1 && managers[0].manager.as_deref() == Some("kustomize-controller"));
        Ok(())
    });
}

#[test]
fn a_new_commit_rolls_out_and_prunes_what_left() {
    run("new-commit", |test| async move {
        let ns = &test.namespace;
        let files = [
            ("deploy/map.yaml", config_map(ns, "stays", "1")),
            ("deploy/gone.yaml", config_map(ns, "goes", "1")),
            ("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1)),
        ];
        let repository = test.repository(&files)?;
        test.deliver(&repository, json!({})).await?;
        let changes = [
            Change::write("deploy/web.yaml", deployment(ns, "web", "example.com/web:2", 1)),
            Change::delete("deploy/gone.yaml"),
        ];
        let revision = test.push(&repository, &changes).await?;
        let object = test.ready("app", &revision).await?;
        test.config_map_gone("goes").await?;
        let deployments: Api<Deployment> = Api::namespaced(test.client.clone(), ns);
        let web = deployments.get("web").await?;
        let image = web
            .spec
            .and_then(|s| s.template.spec)
            .and_then(|s| s.containers[0].image.clone());
        ensure!(image.as_deref() == Some("example.com/web:2"));
        // Ready means that the new revision is available, not that it was sent.
        let status = web.status.unwrap_or_default();
        ensure!(
            status.updated_replicas == Some(1) && status.available_replicas == Some(1),
            "{status:?}"
        );
        ensure!(!inventory_of(&object).iter().any(|id| id.contains("goes")));
        Ok(())
    });
}

#[test]
fn without_prune_what_left_stays() {
    run("no-prune", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("deploy/a.yaml", config_map(ns, "a", "1")),
            ("deploy/b.yaml", config_map(ns, "b", "1")),
        ])?;
        test.deliver(&repository, json!({"prune": false})).await?;
        let revision = test.push(&repository, &[Change::delete("deploy/b.yaml")]).await?;
        test.ready("app", &revision).await?;
        test.config_map_has("b", "key", "1").await?;
        Ok(())
    });
}

#[test]
fn a_commit_that_touches_nothing_of_ours_moves_the_revision_and_nothing_else() {
    run("closure", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let before = test.config_maps().get("a").await?.metadata.resource_version;
        let revision = test
            .push(&repository, &[Change::write("elsewhere/file", "text")])
            .await?;
        let object = test.ready("app", &revision).await?;
        ensure!(test.config_maps().get("a").await?.metadata.resource_version == before);
        ensure!(text(&object, "/status/lastAttemptedRevision") == revision);
        // And one that does touch it is built again.
        let changes = [Change::write("deploy/a.yaml", config_map(ns, "a", "2"))];
        let revision = test.push(&repository, &changes).await?;
        test.ready("app", &revision).await?;
        test.config_map_has("a", "key", "2").await?;
        // So is a file that only comes to be where the build looked.
        let kustomization = "resources: [a.yaml]\nnamePrefix: x-\n";
        let revision = test
            .push(
                &repository,
                &[Change::write("deploy/kustomization.yaml", kustomization)],
            )
            .await?;
        test.ready("app", &revision).await?;
        test.config_map_has("x-a", "key", "2").await?;
        test.config_map_gone("a").await
    });
}

#[test]
fn the_spec_transforms_what_the_folder_says() {
    run("transform", |test| async move {
        let ns = &test.namespace;
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: '1'}\n";
        let repository = test.repository(&[
            ("deploy/a.yaml", map.to_owned()),
            (
                "deploy/web.yaml",
                deployment("default", "web", "example.com/web:1", 0),
            ),
        ])?;
        let spec = json!({
            "targetNamespace": ns, "namePrefix": "pre-", "nameSuffix": "-post",
            "images": [{"name": "example.com/web", "newTag": "7"}],
            "patches": [{"patch": "- op: replace\n  path: /data/key\n  value: patched", "target": {"kind": "ConfigMap"}}],
            "commonMetadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}},
        });
        test.deliver(&repository, spec).await?;
        let map = test.config_map_has("pre-a-post", "key", "patched").await?;
        ensure!(
            map.metadata
                .labels
                .unwrap_or_default()
                .get("team")
                .map(String::as_str)
                == Some("x")
        );
        ensure!(
            map.metadata
                .annotations
                .unwrap_or_default()
                .get("note")
                .map(String::as_str)
                == Some("y")
        );
        let deployments: Api<Deployment> = Api::namespaced(test.client.clone(), ns);
        let web = deployments.get("pre-web-post").await?;
        let image = web
            .spec
            .and_then(|s| s.template.spec)
            .and_then(|s| s.containers[0].image.clone());
        ensure!(image.as_deref() == Some("example.com/web:7"), "{image:?}");
        Ok(())
    });
}

#[test]
fn definitions_are_applied_before_what_they_define() {
    run("definitions", |test| async move {
        let ns = &test.namespace;
        let group = format!("{ns}.example.com");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        let inner = format!("{ns}-inner");
        let widget = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w", "namespace": inner}, "spec": {"a": 1},
        });
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}});
        // The names are such that the order of files is the wrong one.
        let repository = test.repository(&[
            ("deploy/a.yaml", widget.to_string()),
            ("deploy/b.yaml", config_map(&inner, "m", "1")),
            ("deploy/y.yaml", namespace.to_string()),
            ("deploy/z.yaml", definition.to_string()),
        ])?;
        let object = test.deliver(&repository, json!({})).await?;
        ensure!(inventory_of(&object).len() == 4);
        let widgets = objects::api(&test.client, &format!("{group}/v1"), "Widget", &inner);
        ensure!(widgets.get("w").await?.data["spec"]["a"] == 1);
        Ok(())
    });
}

#[test]
fn an_oci_artifact_becomes_objects_and_a_moved_tag_is_seen() {
    run("oci", |test| async move {
        let ns = &test.namespace;
        let registry = &test.world.registry;
        let first = registry
            .push_files(
                ns,
                &["latest"],
                "main@sha1:1",
                &[("a.yaml", &config_map(ns, "a", "1"))],
            )
            .await?;
        test.apply(&objects::oci_repository(ns, "app", &registry.url(ns), "latest"))
            .await?;
        test.apply(&objects::kustomization(ns, "app", ("OCIRepository", "app"), "./"))
            .await?;
        let object = test.ready("app", &format!("latest@{first}")).await?;
        ensure!(text(&object, "/status/lastAppliedOriginRevision") == "main@sha1:1");
        test.config_map_has("a", "key", "1").await?;

        let second = registry
            .push_files(
                ns,
                &["latest"],
                "main@sha1:2",
                &[("a.yaml", &config_map(ns, "a", "2"))],
            )
            .await?;
        objects::poke(&test.oci_repositories(), "app").await?;
        test.ready("app", &format!("latest@{second}")).await?;
        test.config_map_has("a", "key", "2").await?;
        Ok(())
    });
}

#[test]
fn a_source_that_did_not_move_is_asked_once_and_nothing_else_happens() {
    run("no-op", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        let object = test.deliver(&repository, json!({})).await?;
        let registry = &test.world.registry;
        registry
            .push_files(
                ns,
                &["latest"],
                "main@sha1:1",
                &[("a.yaml", &config_map(ns, "b", "1"))],
            )
            .await?;
        test.apply(&objects::oci_repository(ns, "app", &registry.url(ns), "latest"))
            .await?;
        wait_for(&test.oci_repositories(), "app", objects::is_ready, PATIENCE).await?;

        let (git_before, oci_before) = (test.world.git.counts(repository.name()), registry.kinds(ns).len());
        for api in [test.git_repositories(), test.oci_repositories()] {
            let token = objects::poke(&api, "app").await?;
            let handled = |o: &_| text(o, "/status/lastHandledReconcileAt") == token && objects::is_ready(o);
            wait_for(&api, "app", handled, PATIENCE).await?;
        }
        let git = test.world.git.counts(repository.name());
        ensure!(
            git.ls_refs == git_before.ls_refs + 1 && git.fetch == git_before.fetch,
            "{git:?}"
        );
        let kinds = registry.kinds(ns);
        ensure!(
            kinds[oci_before..] == [Kind::ManifestHead],
            "{:?}",
            &kinds[oci_before..]
        );
        // The Kustomization was not even written.
        let after = test.kustomizations().get("app").await?;
        ensure!(after.metadata.resource_version == object.metadata.resource_version);
        Ok(())
    });
}
