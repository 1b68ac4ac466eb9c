//! Promotions that are attested, and gates that ask for it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, apply, condition, field, text};

use crate::world::{DELIVERY, KUSTOMIZE, Scene, app, play, release_of, waits};

/// Where the envelope of staging stands.
const ENVELOPE: &str = "/status/environments/1/history/0/attestation";

fn openssl(directory: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(directory)
        .output()
        .context("openssl is not there")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "openssl {arguments:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A pair of keys as people make them: NAME.key and NAME.pub.
fn pair(directory: &Path, name: &str) -> Result<()> {
    let (private, public) = (format!("{name}.key"), format!("{name}.pub"));
    let made = [
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-out",
        &private,
    ];
    openssl(directory, &made)?;
    openssl(directory, &["pkey", "-in", &private, "-pubout", "-out", &public]).map(drop)
}

async fn secret(scene: &Scene, name: &str, entry: &str, file: &Path) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": scene.namespace},
        "stringData": {entry: std::fs::read_to_string(file)?},
    });
    apply(&scene.client, &secret).await.map(drop)
}

/// Has production wait for the evidence of staging. Returns what it waits for, without what it is about.
fn evidence(pipeline: &DynamicObject, wanted: &str) -> bool {
    waits(pipeline, 2) == [format!("gate evidence: {wanted}")]
}

#[test]
fn a_promotion_is_attested_and_a_gate_believes_nothing_else() {
    play("attested", async |scene| {
        let [dev, staging, production] = scene.targets(["dev", "staging", "production"]).await?;
        let team = &scene.namespace;
        let home = testkit::scratch::directory("keys")?;
        let keys = home.path();
        for name in ["team", "other"] {
            pair(keys, name)?;
        }
        let repository = scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("staging", app(&staging, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let gate = json!({"environment": "staging", "secretRef": {"name": "trusted"}});
        let pipeline = json!({
            "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "shop", "namespace": team},
            "spec": {
                "serviceAccountName": "promoter", "interval": "1s",
                "apps": [{"kind": "Kustomization", "name": "shop"}],
                "attestation": {"secretRef": {"name": "signer"}},
                "environments": [
                    {"name": "dev", "targets": [{"namespace": dev}]},
                    {"name": "staging", "targets": [{"namespace": staging}]},
                    {"name": "production", "targets": [{"namespace": production}],
                        "gates": [{"name": "evidence", "attestation": gate,
                            "expr": "attestation.targets.size() == 1 && attestation.release.number == release.number"}]},
                ],
            },
        });
        secret(&scene, "trusted", "team.pub", &keys.join("team.pub")).await?;
        apply(&scene.client, &pipeline).await?;
        scene.wait(|pipeline| release_of(pipeline, 2) == Some(1)).await?;
        let (ok, said) = scene
            .windlass(&["verify", "pipeline/shop", "--key", &file(keys, "team.pub")])
            .await?;
        ensure!(ok && said.contains("has not promoted anything yet"), "{said}");

        // Without a key it goes on, says so, and nothing is let in for it.
        let deploy = |tag: &str| {
            let next = Change::write("dev/shop.yaml", app(&dev, team, tag));
            repository.commit("main", "by a person", &[next]).map(drop)
        };
        deploy("v2")?;
        let unsigned = |pipeline: &DynamicObject| {
            let is_said = condition(pipeline, "Ready").is_some_and(|(_, reason, message)| {
                reason == "AttestationFailed"
                    && message.starts_with("a promotion is not attested: ")
                    && message.contains("signer")
            });
            is_said && evidence(pipeline, "the promotion of release 2 to staging is not attested")
        };
        scene.wait(unsigned).await?;
        let (ok, said) = scene
            .windlass(&["verify", "pipeline/shop", "--key", &file(keys, "team.pub")])
            .await?;
        ensure!(!ok && said.contains("without a good attestation"), "{said}");

        // With one it is signed, and goes into production.
        secret(&scene, "signer", "signing.key", &keys.join("team.key")).await?;
        scene.windlass(&["reconcile", "pipeline/shop"]).await?;
        scene
            .has(
                (KUSTOMIZE, "Kustomization"),
                &production,
                "/spec/images/0/newTag",
                "v2",
            )
            .await?;
        let done = scene
            .wait(|pipeline| field(pipeline, "/status/environments/2/history/0/attestation").is_some())
            .await?;
        let envelope = text(&done, ENVELOPE).to_owned();
        let digest = text(&done, "/status/releases/1/digest").to_owned();
        let statement = opened(keys, &envelope)?;
        let subject = &statement["subject"][0];
        ensure!(
            subject["digest"]["sha256"] == digest.trim_start_matches("sha256:")
                && subject["name"] == "release",
            "{statement}"
        );
        let (ok, said) = scene
            .windlass(&["verify", "pipeline/shop", "--key", &file(keys, "team.pub")])
            .await?;
        let good = said
            .lines()
            .filter(|line| line.trim_end().ends_with("good"))
            .count();
        ensure!(ok && good == 2, "{said}");
        let wrong = ["verify", "pipeline/shop", "--key", &file(keys, "other.pub")];
        let (ok, said) = scene.windlass(&wrong).await?;
        ensure!(!ok && said.contains("invalid signature"), "{said}");

        // Who may write the status, and has no key, lets nothing in.
        let secrets = objects::api(&scene.client, "v1", "Secret", team);
        secrets.delete("signer", &DeleteParams::default()).await?;
        deploy("v3")?;
        scene
            .wait(|pipeline| evidence(pipeline, "the promotion of release 3 to staging is not attested"))
            .await?;
        let about = "the attestation of the promotion of release 3 to staging";
        let forge = async |envelope: &str| {
            let api = objects::api(&scene.client, DELIVERY, "Pipeline", team);
            let patch = json!([{"op": "add", "path": ENVELOPE, "value": envelope}]);
            let patch: Patch<Value> = Patch::Json(serde_json::from_value(patch)?);
            api.patch_status("shop", &PatchParams::default(), &patch).await?;
            Ok::<_, anyhow::Error>(())
        };
        forge(&envelope).await?;
        let replayed = format!("{about}: invalid or missing digest in claim: '{digest}' instead of '");
        let is_refused = |pipeline: &DynamicObject| {
            waits(pipeline, 2)
                .iter()
                .any(|wait| wait.starts_with(&format!("gate evidence: {replayed}")))
        };
        scene.wait(is_refused).await?;
        let digest = text(&scene.wait(|_| true).await?, "/status/releases/2/digest").to_owned();
        let mut forged = statement;
        forged["subject"][0]["digest"]["sha256"] = json!(digest.trim_start_matches("sha256:"));
        forge(&sealed(keys, "other", &forged)?).await?;
        let unknown = format!("{about}: invalid signature when validating with the public key");
        scene.wait(|pipeline| evidence(pipeline, &unknown)).await?;
        forge("[]").await?;
        let broken = format!("{about}: failed to parse the envelope");
        scene.wait(|pipeline| evidence(pipeline, &broken)).await?;
        // By the team's key, and about another pipeline.
        forged["predicate"]["pipeline"]["name"] = json!("other");
        forge(&sealed(keys, "team", &forged)?).await?;
        let other = format!("{about}: it is about the pipeline {team}/other");
        scene.wait(|pipeline| evidence(pipeline, &other)).await?;
        let file = repository.git(&["show", "main:production/shop.yaml"])?;
        ensure!(file.contains("newTag: v2"), "{file}");
        Ok(())
    });
}

fn file(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

/// What DSSE signs.
fn message(payload: &str) -> String {
    let kind = "application/vnd.in-toto+json";
    format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len())
}

/// The statement in an envelope that the team's key signed, as openssl says.
fn opened(keys: &Path, envelope: &str) -> Result<Value> {
    let envelope: Value = serde_json::from_str(envelope)?;
    let part = |pointer: &str| {
        STANDARD.decode(
            envelope
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
    };
    let payload = String::from_utf8(part("/payload")?)?;
    std::fs::write(keys.join("message"), message(&payload))?;
    std::fs::write(keys.join("signature"), part("/signatures/0/sig")?)?;
    openssl(
        keys,
        &[
            "dgst",
            "-sha256",
            "-verify",
            "team.pub",
            "-signature",
            "signature",
            "message",
        ],
    )?;
    Ok(serde_json::from_str(&payload)?)
}

/// An envelope that openssl makes.
fn sealed(keys: &Path, name: &str, statement: &Value) -> Result<String> {
    let payload = statement.to_string();
    std::fs::write(keys.join("message"), message(&payload))?;
    let key = format!("{name}.key");
    openssl(
        keys,
        &["dgst", "-sha256", "-sign", &key, "-out", "signature", "message"],
    )?;
    let signature = STANDARD.encode(std::fs::read(keys.join("signature"))?);
    let envelope = json!({
        "payloadType": "application/vnd.in-toto+json", "payload": STANDARD.encode(payload), "signatures": [{"sig": signature}],
    });
    Ok(envelope.to_string())
}
