//! `ArtifactGenerator` on the real API server: ExternalArtifacts made, fixed, removed, and delivered.

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, field, is_ready, text};
use testkit::{wait_for, wait_until_gone};

use crate::world::{PATIENCE, SOURCE, Test, config_map, run};

const GENERATOR: &str = "source.extensions.fluxcd.io/v1beta1";
const FINALIZER: &str = "source.extensions.fluxcd.io/finalizer";
const MANAGED_BY: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

#[test]
fn artifacts_of_several_sources_are_made_followed_and_delivered() {
    run("generator", |test| async move {
        let sources = Sources::start(&test).await?;
        test.apply(&generator(&test, &both())).await?;
        let generators = generators(&test);
        let object = wait_for(&generators, "app", is_ready, PATIENCE).await?;
        let message = objects::condition(&object, "Ready").map(|(_, _, message)| message);
        ensure!(
            message == Some("reconciliation succeeded, generated 2 artifact(s)"),
            "{message:?}"
        );
        ensure!(object.metadata.finalizers == Some(vec![FINALIZER.to_owned()]));

        let first = format!("main@sha1:{}", sources.repository.resolve("main")?);
        let both = made(&test).get("both").await?;
        ensure!(is_ready(&both) && text(&both, "/status/artifact/revision") == first);
        ensure!(text(&both, "/spec/sourceRef/kind") == "ArtifactGenerator");
        ensure!(text(&both, "/spec/sourceRef/name") == "app");
        let labels = both.metadata.labels.clone().unwrap_or_default();
        ensure!(
            labels
                .get("app.kubernetes.io/managed-by")
                .is_some_and(|by| by == "source-watcher")
        );
        ensure!(labels.get("source.extensions.fluxcd.io/generator") == object.metadata.uid.as_ref());
        let managers = both.metadata.managed_fields.clone().unwrap_or_default();
        let applied: Vec<_> = managers
            .iter()
            .map(|entry| {
                let text = |field: &Option<String>| field.clone().unwrap_or_default();
                format!(
                    "{} {} {}",
                    text(&entry.manager),
                    text(&entry.operation),
                    text(&entry.subresource)
                )
            })
            .collect();
        ensure!(
            applied.contains(&"source-watcher Apply ".to_owned()),
            "{applied:?}"
        );
        ensure!(
            applied.contains(&"source-watcher Apply status".to_owned()),
            "{applied:?}"
        );
        // One without a revision of its own is named by its content.
        let one = made(&test).get("one").await?;
        ensure!(text(&one, "/status/artifact/revision").starts_with("latest@sha256:"));

        // A Kustomization delivers it, files of both sources in one build.
        let kustomization =
            objects::kustomization(&test.namespace, "app", ("ExternalArtifact", "both"), "./deploy");
        test.apply(&kustomization).await?;
        test.ready("app", &first).await?;
        test.config_map_has("from-git", "key", "1").await?;
        test.config_map_has("from-oci", "key", "1").await?;

        // A new revision of one source is there without a poll. So is one of the other.
        let second = sources.push(&test, "2").await?;
        test.ready("app", &second).await?;
        test.config_map_has("from-git", "key", "2").await?;
        sources.push_oci(&test, "2").await?;
        test.config_map_has("from-oci", "key", "2").await?;

        test.delete_kustomization("app").await?;
        test.no_config_map("from-git").await
    });
}

#[test]
fn a_changed_artifact_is_mended_and_an_orphan_removed() {
    run("generator-drift", |test| async move {
        let sources = Sources::start(&test).await?;
        test.apply(&generator(&test, &both())).await?;
        wait_for(&generators(&test), "app", is_ready, PATIENCE).await?;
        let revision = format!("main@sha1:{}", sources.repository.resolve("main")?);
        let is_whole = |object: &DynamicObject| {
            is_ready(object)
                && text(object, "/status/artifact/revision") == revision
                && object.metadata.labels.as_ref().is_some_and(|labels| {
                    labels
                        .get("app.kubernetes.io/managed-by")
                        .is_some_and(|by| by == "source-watcher")
                })
        };
        let api = made(&test);
        let before = wait_for(&api, "both", is_whole, PATIENCE).await?;

        let status =
            json!({"status": {"artifact": {"revision": "evil", "url": "http://127.0.0.1:1/evil.tar.gz"}}});
        api.patch_status("both", &PatchParams::default(), &Patch::Merge(status))
            .await?;
        wait_for(&api, "both", is_whole, PATIENCE).await?;
        let remove = json!([{"op": "remove", "path": MANAGED_BY}]);
        let remove: kube::core::params::Patch<()> = Patch::Json(serde_json::from_value(remove)?);
        api.patch("both", &PatchParams::default(), &remove).await?;
        wait_for(&api, "both", is_whole, PATIENCE).await?;
        api.delete("both", &DeleteParams::default()).await?;
        let uid = before.metadata.uid.clone();
        let again = wait_for(
            &api,
            "both",
            |object| is_whole(object) && object.metadata.uid != uid,
            PATIENCE,
        );
        let again = again.await?;
        ensure!(field(&again, "/status/artifact/digest") == field(&before, "/status/artifact/digest"));

        // What the spec drops goes, and so does its archive.
        let one = api.get("one").await?;
        let url = text(&one, "/status/artifact/url").to_owned();
        ensure!(reqwest::get(&url).await?.status() == 200);
        let Value::Array(mut artifacts) = both() else {
            unreachable!()
        };
        artifacts.truncate(1);
        test.apply(&generator(&test, &Value::from(artifacts))).await?;
        wait_until_gone(&api, "one", PATIENCE).await?;
        let has_one = |object: &DynamicObject| {
            field(object, "/status/inventory")
                .and_then(Value::as_array)
                .is_some_and(|all| all.len() == 1)
        };
        wait_for(&generators(&test), "app", has_one, PATIENCE).await?;
        ensure!(reqwest::get(&url).await?.status() == 404);
        ensure!(is_whole(&api.get("both").await?));
        Ok(())
    });
}

#[test]
fn a_generator_that_is_suspended_makes_nothing_and_a_deleted_one_takes_all_with_it() {
    run("generator-end", |test| async move {
        let sources = Sources::start(&test).await?;
        test.apply(&generator(&test, &both())).await?;
        let generators = generators(&test);
        wait_for(&generators, "app", is_ready, PATIENCE).await?;
        let first = text(&made(&test).get("both").await?, "/status/artifact/revision").to_owned();

        let annotate = async |value: Value| {
            let patch =
                json!({"metadata": {"annotations": {"source.extensions.fluxcd.io/reconcile": value}}});
            generators
                .patch("app", &PatchParams::default(), &Patch::Merge(patch))
                .await
        };
        annotate(json!("disabled")).await?;
        let second = sources.push(&test, "2").await?;
        let has_second = |object: &DynamicObject| text(object, "/status/artifact/revision") == second;
        wait_for(&test.git_repositories(), "app", has_second, PATIENCE).await?;
        let token = objects::poke(&generators, "app").await?;
        let handled = |object: &DynamicObject| text(object, "/status/lastHandledReconcileAt") == token;
        wait_for(&generators, "app", handled, PATIENCE).await?;
        ensure!(text(&made(&test).get("both").await?, "/status/artifact/revision") == first);
        annotate(Value::Null).await?;
        let both = wait_for(&made(&test), "both", has_second, PATIENCE).await?;

        let url = text(&both, "/status/artifact/url").to_owned();
        ensure!(reqwest::get(&url).await?.status() == 200);
        generators.delete("app", &DeleteParams::default()).await?;
        wait_until_gone(&generators, "app", PATIENCE).await?;
        ensure!(made(&test).list(&Default::default()).await?.items.is_empty());
        ensure!(reqwest::get(&url).await?.status() == 404);
        Ok(())
    });
}

#[test]
fn a_source_that_is_not_there_is_named_and_waited_for() {
    run("generator-waits", |test| async move {
        test.apply(&generator(&test, &both())).await?;
        let message = test
            .not_ready(&generators(&test), "app", "SourceFetchFailed")
            .await?;
        ensure!(
            message.contains("gitrepositories") && message.contains("not found"),
            "{message}"
        );
        Sources::start(&test).await?;
        wait_for(&generators(&test), "app", is_ready, PATIENCE).await?;

        // What cannot be built is told, and what was made before stays.
        let digest = text(&made(&test).get("both").await?, "/status/artifact/digest").to_owned();
        let copy = json!([{"from": "@git/nowhere.yaml", "to": "@artifact/"}]);
        test.apply(&generator(&test, &json!([{"name": "both", "copy": copy}])))
            .await?;
        let message = test.not_ready(&generators(&test), "app", "BuildFailed").await?;
        ensure!(message.contains("nowhere.yaml"), "{message}");
        ensure!(text(&made(&test).get("both").await?, "/status/artifact/digest") == digest);
        Ok(())
    });
}

/// A Git repository and an OCI repository, as sources `app` and `base`.
struct Sources {
    repository: Repository,
}

impl Sources {
    async fn start(test: &Test) -> Result<Self> {
        let repository =
            test.repository(&[("manifests/git.yaml", config_map(&test.namespace, "from-git", "1"))])?;
        test.git_source(&repository).await?;
        let sources = Self { repository };
        sources.push_manifest(test, "1").await?;
        let url = test.world.registry.url(&test.namespace);
        test.apply(&objects::oci_repository(&test.namespace, "base", &url, "latest"))
            .await?;
        Ok(sources)
    }

    async fn push(&self, test: &Test, value: &str) -> Result<String> {
        let content = config_map(&test.namespace, "from-git", value);
        test.push(&self.repository, &[Change::write("manifests/git.yaml", content)])
            .await
    }

    async fn push_oci(&self, test: &Test, value: &str) -> Result<()> {
        self.push_manifest(test, value).await?;
        objects::poke(&test.oci_repositories(), "base").await.map(drop)
    }

    async fn push_manifest(&self, test: &Test, value: &str) -> Result<()> {
        let content = config_map(&test.namespace, "from-oci", value);
        let files = [("oci.yaml", content.as_str()), ("README.md", "not copied")];
        let revision = format!("v{value}");
        let pushed = test
            .world
            .registry
            .push_files(&test.namespace, &["latest"], &revision, &files);
        pushed.await.map(drop).context("failed to push")
    }
}

/// One artifact of both sources, which is named by the commit, and one of the OCI repository alone.
fn both() -> Value {
    json!([
        {"name": "both", "revision": "@git", "copy": [
            {"from": "@git/manifests/*.yaml", "to": "@artifact/deploy/"},
            {"from": "@oci/**", "to": "@artifact/deploy/base/", "exclude": ["*.md"]},
        ]},
        {"name": "one", "copy": [{"from": "@oci/**", "to": "@artifact/"}]},
    ])
}

fn generator(test: &Test, artifacts: &Value) -> Value {
    json!({
        "apiVersion": GENERATOR, "kind": "ArtifactGenerator",
        "metadata": {"name": "app", "namespace": test.namespace},
        "spec": {
            "sources": [
                {"alias": "git", "kind": "GitRepository", "name": "app"},
                {"alias": "oci", "kind": "OCIRepository", "name": "base"},
            ],
            "artifacts": artifacts,
        },
    })
}

fn generators(test: &Test) -> Api<DynamicObject> {
    test.objects(GENERATOR, "ArtifactGenerator")
}

fn made(test: &Test) -> Api<DynamicObject> {
    test.objects(SOURCE, "ExternalArtifact")
}
