//! Webhooks that start a pipeline: what is listed, and what a signed call does.

use anyhow::{Context as _, ensure};
use aws_lc_rs::hmac;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{apply, field, text};

use crate::world::{app, play, release_of};

fn signature(token: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

fn triggers(pipeline: &DynamicObject) -> Vec<&Value> {
    let all = field(pipeline, "/status/triggers").and_then(Value::as_array);
    all.into_iter().flatten().collect()
}

#[test]
fn a_pipeline_lists_its_webhooks_and_a_signed_call_wakes_it() {
    play("hooks", async |scene| {
        let [dev, production] = scene.targets(["dev", "production"]).await?;
        let team = &scene.namespace;
        scene
            .fleet(&[
                ("dev", app(&dev, team, "v1")),
                ("production", app(&production, team, "v1")),
            ])
            .await?;
        let environments = json!([
            {"name": "dev", "targets": [{"namespace": dev}]},
            {"name": "production", "targets": [{"namespace": production}]},
        ]);
        scene.pipeline("Kustomization", environments).await?;
        let settled = scene.wait(|pipeline| release_of(pipeline, 1) == Some(1)).await?;
        ensure!(triggers(&settled).is_empty(), "{:?}", triggers(&settled));

        let token = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": team},
            "stringData": {"token": "s3cret"},
        });
        apply(&scene.client, &token).await?;
        let version = "notification.toolkit.fluxcd.io/v1";
        for (name, type_, resource) in [
            ("ci", "generic-hmac", json!({"kind": "Pipeline", "name": "shop"})),
            (
                "push",
                "generic",
                json!({"kind": "GitRepository", "name": "fleet"}),
            ),
            (
                "other",
                "generic-hmac",
                json!({"kind": "Pipeline", "name": "bank"}),
            ),
        ] {
            let receiver = json!({
                "apiVersion": version, "kind": "Receiver", "metadata": {"name": name, "namespace": team},
                "spec": {"type": type_, "resources": [resource], "secretRef": {"name": "token"}},
            });
            apply(&scene.client, &receiver).await?;
        }
        // That of the source of the first environment is one, too; its path is a key, and is not shown.
        let listed = scene.wait(|pipeline| triggers(pipeline).len() == 2).await?;
        let all = triggers(&listed);
        ensure!(
            all[0]["receiver"] == "ci" && all[0]["reconciles"] == format!("Pipeline/{team}/shop"),
            "{all:?}"
        );
        ensure!(
            all[1]["receiver"] == "push"
                && all[1]["reconciles"] == format!("GitRepository/{team}/fleet")
                && all[1].get("url").is_none(),
            "{all:?}"
        );
        let url = all[0]["url"].as_str().context("there is no URL")?;
        let path = url
            .strip_prefix("https://hooks.example.com")
            .context("the address is another one")?;

        let http = reqwest::Client::builder().no_proxy().build()?;
        let call = |signed: String| {
            let request = http.post(format!("{}{path}", scene.world.notifying.receiver_url()));
            request.header("X-Signature", signed).body("{}").send()
        };
        let refused = call(signature("guessed", "{}")).await?;
        ensure!(refused.status() == 400, "{}", refused.status());
        let before = text(&listed, "/status/lastHandledReconcileAt").to_owned();
        let accepted = call(signature("s3cret", "{}")).await?;
        ensure!(accepted.status().is_success(), "{}", accepted.status());
        scene
            .wait(|pipeline| {
                let handled = text(pipeline, "/status/lastHandledReconcileAt");
                !handled.is_empty() && handled != before
            })
            .await?;
        let (ok, said) = scene.windlass(&["tree", "pipeline/shop"]).await?;
        let line = format!(
            "started by Receiver ci (generic-hmac, reconciles Pipeline/{team}/shop): https://hooks.example.com/hook/"
        );
        ensure!(ok && said.contains(&line), "{said}");

        // What is gone starts nothing.
        let receivers = testkit::objects::api(&scene.client, version, "Receiver", team);
        receivers
            .delete("ci", &kube::api::DeleteParams::default())
            .await?;
        scene
            .wait(|pipeline| triggers(pipeline).len() == 1)
            .await
            .map(drop)
    });
}
