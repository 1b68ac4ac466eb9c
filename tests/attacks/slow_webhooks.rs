//! A tenant stops notifications and webhooks for everybody by expressions that take hours.
//!
//! They hold: a Receiver with a filter, which they call themselves, and Providers with a `commitStatusExpr`, in a namespace of
//! their own. Meanwhile health must be answered, and so must a webhook of another tenant, which wakes a source.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use reqwest::Client as Http;
use serde_json::{Value, json};
use testkit::objects;
use testkit::wait_for;

use crate::scene::{KUSTOMIZE, PATIENCE, SOURCE, Scene, play};

const RECEIVER: &str = "notification.toolkit.fluxcd.io/v1";
const ALERTS: &str = "notification.toolkit.fluxcd.io/v1beta3";
const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";

/// A million patterns, each of which takes a millisecond to compile and costs no step.
fn slow(text: &str) -> String {
    let numbers: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    let range = format!("[{}]", numbers.join(","));
    let matches = format!("!{text}.matches(string(x) + '(a|b){{1,300}}' + string(y) + string(z))");
    format!("{range}.all(x, {range}.all(y, {range}.all(z, {matches})))")
}

#[test]
fn filters_and_names_of_statuses_without_end_hold_nobody_else() {
    play("slow-webhooks", |scene| async move {
        let http = Http::builder()
            .no_proxy()
            .timeout(Duration::from_secs(90))
            .build()?;
        let own = receiver(
            &scene,
            &scene.victim,
            "hook",
            "res.metadata.name == 'app'".to_owned(),
        )
        .await?;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..8 {
            let filter = slow("res.metadata.name");
            let attack = receiver(&scene, &scene.attacker, &format!("hook-{number}"), filter).await?;
            for _ in 0..4 {
                calls.spawn(http.post(&attack).body("{}").send());
            }
        }
        for number in 0..4 {
            provider(&scene, &format!("slow-{number}")).await?;
        }
        for number in 0..8 {
            calls.spawn(
                http.post(scene.world.notification.events_url())
                    .json(&event(&scene, number))
                    .send(),
            );
        }
        tokio::time::sleep(Duration::from_millis(300)).await;

        let health = format!("http://{}/metrics", scene.world.notification.metrics_address());
        let patience = Duration::from_secs(20);
        for _ in 0..10 {
            let asked = http.get(&health).timeout(patience).send().await;
            asked.context("health is not answered while expressions run")?;
            let called = http.post(&own).timeout(patience).body("{}").send().await;
            let answer = called.context("another tenant's webhook is not answered")?;
            ensure!(answer.status() == 200, "it is answered with {}", answer.status());
        }
        let sources = scene.api(SOURCE, "GitRepository", &scene.victim);
        let woken = |object: &DynamicObject| object.annotations().contains_key(REQUESTED_AT);
        wait_for(&sources, "app", woken, PATIENCE).await?;
        // Those who called for it are answered, too.
        while let Some(called) = calls.join_next().await {
            called?.context("a call with a slow filter is not answered")?;
        }
        Ok(())
    });
}

/// A Receiver of a suspended source; returns the address of its webhook.
async fn receiver(scene: &Scene, namespace: &str, name: &str, filter: String) -> Result<String> {
    let source = objects::git_repository(namespace, "app", "http://127.0.0.1:1/none", "main");
    scene
        .apply(&objects::with_spec(source, json!({"suspend": true})))
        .await?;
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace},
        "stringData": {"token": "any"}});
    scene.apply(&token).await?;
    let spec = json!({"type": "generic", "secretRef": {"name": "token"}, "resourceFilter": filter,
        "resources": [{"kind": "GitRepository", "name": "app"}]});
    let object = json!({"apiVersion": RECEIVER, "kind": "Receiver",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    scene.apply(&object).await?;
    let receivers = scene.api(RECEIVER, "Receiver", namespace);
    let ready = wait_for(&receivers, name, objects::is_ready, PATIENCE).await?;
    let path = objects::text(&ready, "/status/webhookPath");
    Ok(format!("{}{path}", scene.world.notification.receiver_url()))
}

/// A Provider of the attacker with a slow name for its status, and an Alert that uses it.
async fn provider(scene: &Scene, name: &str) -> Result<()> {
    let metadata = json!({"name": name, "namespace": scene.attacker});
    let expression = format!("{} ? 'a' : 'b'", slow("event.message"));
    let provider = json!({"apiVersion": ALERTS, "kind": "Provider", "metadata": metadata,
        "spec": {"type": "github", "address": "https://127.0.0.1:1/org/app", "commitStatusExpr": expression,
            "secretRef": {"name": "token"}}});
    scene.apply(&provider).await?;
    let alert = json!({"apiVersion": ALERTS, "kind": "Alert", "metadata": metadata,
        "spec": {"providerRef": {"name": name}, "eventSources": [{"kind": "Kustomization", "name": "*"}]}});
    scene.apply(&alert).await
}

fn event(scene: &Scene, number: usize) -> Value {
    json!({
        "involvedObject": {"apiVersion": KUSTOMIZE, "kind": "Kustomization", "name": format!("app-{number}"),
            "namespace": scene.attacker, "uid": "1"},
        "severity": "info", "timestamp": "2026-01-01T00:00:00Z", "message": format!("message {number}"),
        "reason": "ReconciliationSucceeded", "reportingController": "kustomize-controller",
        "metadata": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:0000000000000000000000000000000000000001"},
    })
}
