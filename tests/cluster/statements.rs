//! Signed statements of deliveries (ADR 35): made with each delivery, the same at rest, demanded by `windlass verify`.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, text};
use testkit::{Controller, wait_for};

use crate::cli::Windlass;
use crate::world::{PATIENCE, Test, config_map, run};

const STATEMENT: &str = "/status/history/0/metadata/windlass.dev~1statement";

fn openssl(arguments: &[&str]) -> Result<String> {
    let made = Command::new("openssl").args(arguments).output()?;
    Ok(String::from_utf8(made.stdout)?)
}

/// A controller that signs, and the file with its public key.
async fn signing(test: &Test, folder: &std::path::Path) -> Result<(Controller, String)> {
    let name = format!("statements-{}", test.namespace);
    let (private, public) = (folder.join("signing.key"), folder.join("delivery.pub"));
    let (private, public) = (private.display().to_string(), public.display().to_string());
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private])?;
    openssl(&["pkey", "-in", &private, "-pubout", "-out", &public])?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
        "stringData": {"signing.key": std::fs::read_to_string(&private)?},
    });
    test.apply(&secret).await?;
    let mut options = test.own_shard();
    options.flags.push(format!("--delivery-statements-secret={name}"));
    let world = test.world;
    let controller =
        Controller::start_apply(world.control_plane.kubeconfig_path(), &world.source, options).await?;
    Ok((controller, public))
}

fn predicate(object: &DynamicObject) -> Result<Value> {
    let envelope: Value = serde_json::from_str(text(object, STATEMENT))?;
    let payload = STANDARD.decode(envelope["payload"].as_str().context("no payload")?)?;
    let mut statement: Value = serde_json::from_slice(&payload)?;
    Ok(statement["predicate"].take())
}

#[test]
fn each_delivery_is_signed_and_verified() {
    run("statements", |test| async move {
        let ns = &test.namespace;
        let folder = tempfile::tempdir()?;
        let (_apply, public) = signing(&test, folder.path()).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": ns},
            "stringData": {"password": "1234"},
        });
        let files = [
            ("deploy/map.yaml", config_map(ns, "map", "1")),
            ("deploy/secret.yaml", secret.to_string()),
        ];
        let repository = test.repository(&files)?;
        test.git_source(&repository).await?;
        let object = test.kustomization("app", json!({"retryInterval": "1h"}));
        test.apply(&test.in_own_shard(object)).await?;
        let first = format!("main@sha1:{}", repository.resolve("main")?);
        let object = test.ready("app", &first).await?;
        let said = predicate(&object)?;
        ensure!(
            said["revision"] == json!(first) && said["succeeded"] == true,
            "{said}"
        );
        ensure!(said["object"]["uid"] == json!(object.metadata.uid), "{said}");
        ensure!(
            said["controller"] == "kustomize-controller" && said.get("account").is_none(),
            "{said}"
        );
        let list = said["objects"]["list"].as_array().context("no list")?;
        let entry = |id: String| {
            list.iter()
                .find(|one| one["id"] == json!(id))
                .context("not listed")
        };
        ensure!(
            entry(format!("{ns}_map__ConfigMap"))?["digest"].is_string(),
            "{said}"
        );
        ensure!(
            entry(format!("{ns}_password__Secret"))?.get("digest").is_none(),
            "{said}"
        );

        // What is found good again changes nothing.
        let kustomizations = test.kustomizations();
        let token = objects::poke(&kustomizations, "app").await?;
        let handled = |object: &DynamicObject| text(object, "/status/lastHandledReconcileAt") == token;
        let again = wait_for(&kustomizations, "app", handled, PATIENCE).await?;
        ensure!(text(&again, STATEMENT) == text(&object, STATEMENT));

        let windlass = Windlass { test: &test };
        let verify = async |key: &str| {
            windlass
                .run(&["verify", "configmap/map", "--delivery-key", key], 3)
                .await
        };
        let has = |said: &str, verdict: &str, words: &str| {
            let mut lines = said.lines();
            lines.any(|line| line.starts_with(verdict) && line.contains("statement") && line.contains(words))
        };
        let said = verify(&public).await?;
        ensure!(
            has(
                &said,
                "good",
                &format!("has signed that it applied {first} as itself")
            ),
            "{said}"
        );
        let other = folder.path().join("other.pub").display().to_string();
        let private = folder.path().join("other.key").display().to_string();
        openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private])?;
        openssl(&["pkey", "-in", &private, "-pubout", "-out", &other])?;
        let said = verify(&other).await?;
        ensure!(has(&said, "broken", "its statement does not count"), "{said}");

        // A revision that fails is signed as one that failed.
        let invalid = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": ns}, "data": {"a": [1]}});
        test.push(
            &repository,
            &[Change::write("deploy/map.yaml", invalid.to_string())],
        )
        .await?;
        let failed = |object: &DynamicObject| {
            text(object, "/status/history/0/lastReconciledStatus") == "ReconciliationFailed"
        };
        let object = wait_for(&kustomizations, "app", failed, PATIENCE).await?;
        let said = predicate(&object)?;
        ensure!(
            said["succeeded"] == false && said["reason"] == "ReconciliationFailed",
            "{said}"
        );

        // Who may write statuses cannot claim that it was delivered.
        let mut history = object.data["status"]["history"].clone();
        history[0]["lastReconciledStatus"] = json!("ReconciliationSucceeded");
        let revision = text(&object, "/status/lastAttemptedRevision");
        let forged = Patch::Merge(json!({"status": {"history": history, "lastAppliedRevision": revision}}));
        kustomizations
            .patch_status("app", &PatchParams::default(), &forged)
            .await?;
        let said = verify(&public).await?;
        ensure!(has(&said, "broken", "it says that the delivery failed"), "{said}");
        Ok(())
    });
}
