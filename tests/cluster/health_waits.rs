//! Waits for health that something newer ends: in Events, at a notification-controller, and in the status.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::condition;
use testkit::{Controller, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{PATIENCE, Test, config_map, deployment, run};

/// Takes events as a notification-controller does, one per connection.
async fn receiver() -> Result<(String, Arc<Mutex<Vec<Value>>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/", listener.local_addr()?);
    let got: Arc<Mutex<Vec<Value>>> = Arc::default();
    let taken = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            if let Ok(event) = take(&mut connection).await {
                taken.lock().expect("nobody panics with it").push(event);
            }
        }
    });
    Ok((address, got))
}

async fn take(connection: &mut TcpStream) -> Result<Value> {
    let mut bytes = Vec::new();
    loop {
        ensure!(connection.read_buf(&mut bytes).await? > 0, "it ended early");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("no length")?.trim().parse()?;
        if body.len() >= length {
            let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            connection.write_all(answer).await?;
            return Ok(serde_json::from_str(body)?);
        }
    }
}

/// Waits for an Event of this reason and text.
async fn event(test: &Test, reason: &str, message: &str) -> Result<Event> {
    let events: Api<Event> = Api::namespaced(test.client.clone(), &test.namespace);
    let config = watcher::Config::default().fields(&format!("reason={reason}"));
    let mut seen = std::pin::pin!(watcher(events, config).applied_objects());
    let found = async {
        while let Some(event) = seen.next().await {
            if let Ok(event) = event
                && event.message.as_deref() == Some(message)
            {
                return Some(event);
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .ok()
        .flatten()
        .with_context(|| format!("no event {message:?}"))
}

/// Waits until an event whose message begins like this was posted.
async fn posted(got: &Mutex<Vec<Value>>, message: &str) -> Result<Value> {
    let begins = |event: &&Value| {
        event["message"]
            .as_str()
            .is_some_and(|text| text.starts_with(message))
    };
    let posted = async {
        loop {
            let found = got
                .lock()
                .expect("nobody panics with it")
                .iter()
                .find(begins)
                .cloned();
            if let Some(event) = found {
                return event;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, posted)
        .await
        .context("it was not posted")
}

fn waits(object: &DynamicObject) -> bool {
    condition(object, "Healthy").is_some_and(|(status, ..)| status == "Unknown")
}

#[test]
fn a_wait_that_is_given_up_is_told_of() {
    run("health-canceled", |test| async move {
        let ns = &test.namespace;
        let (address, got) = receiver().await?;
        let mut options = test.own_shard();
        options.flags.push(format!("--events-addr={address}"));
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, options).await?;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        let check = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "nosuch", "namespace": ns});
        let spec = json!({"wait": false, "healthChecks": [check], "timeout": "10m"});
        test.apply(&test.in_own_shard(test.kustomization("app", spec)))
            .await?;
        wait_for(&test.kustomizations(), "app", waits, PATIENCE).await?;

        let change = Change::write("deploy/a.yaml", config_map(ns, "a", "2"));
        test.push(&repository, &[change]).await?;
        let words = "Health checks canceled due to new reconciliation triggered by";
        let by_source = format!("{words} GitRepository/{ns}/app");
        event(&test, "HealthCheckCanceled", &by_source).await?;
        test.config_map_has("a", "key", "2").await?;
        wait_for(&test.kustomizations(), "app", waits, PATIENCE).await?;
        // Nothing runs after a suspension, so the status says it.
        let suspend = Patch::Merge(json!({"spec": {"suspend": true}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &suspend)
            .await?;
        let by_itself = format!("{words} Kustomization/{ns}/app");
        event(&test, "HealthCheckCanceled", &by_itself).await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "HealthCheckCanceled")
            .await?;
        ensure!(
            message == format!("New reconciliation triggered by Kustomization/{ns}/app"),
            "{message}"
        );

        let posted = posted(&got, &by_itself).await?;
        ensure!(
            posted["severity"] == "info" && posted["reason"] == "HealthCheckCanceled",
            "{posted}"
        );
        ensure!(
            posted["reportingController"] == "kustomize-controller",
            "{posted}"
        );
        ensure!(
            posted["involvedObject"]["name"] == "app" && posted["involvedObject"]["kind"] == "Kustomization"
        );
        let revision = posted["metadata"]["kustomize.toolkit.fluxcd.io/revision"].as_str();
        ensure!(
            revision.is_some_and(|revision| revision.starts_with("main@sha1:")),
            "{posted}"
        );

        // The end of a run asks for an update of the commit's status.
        test.apply(&test.in_own_shard(test.kustomization("plain", json!({"wait": false}))))
            .await?;
        let finished = self::posted(&got, "Reconciliation finished in ").await?;
        let update = &finished["metadata"]["kustomize.toolkit.fluxcd.io/commit_status"];
        ensure!(
            update == "update" && finished["involvedObject"]["name"] == "plain",
            "{finished}"
        );
        Ok(())
    });
}

/// A Deployment whose Pods no node will take.
fn unschedulable(namespace: &str, name: &str) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}], "nodeSelector": {"no": "such"}},
            },
        },
    })
    .to_string()
}

#[test]
fn a_health_check_without_api_version_is_of_apps_v1() {
    run("health-unversioned", |test| async move {
        let ns = &test.namespace;
        let repository =
            test.repository(&[("deploy/web.yaml", deployment(ns, "web", "example.com/web:1", 1))])?;
        let checks = json!([{"kind": "Deployment", "name": "web", "namespace": ns}]);
        let object = test.deliver(&repository, json!({"healthChecks": checks})).await?;
        let (status, ..) = condition(&object, "Healthy").context("no condition Healthy")?;
        ensure!(status == "True");
        Ok(())
    });
}

#[test]
fn a_request_during_a_wait_is_answered_by_one_run_that_ends_by_its_timeout() {
    run("health-requested", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/web.yaml", unschedulable(ns, "web"))])?;
        test.git_source(&repository).await?;
        let spec = json!({"wait": true, "timeout": "6s", "interval": "1h", "retryInterval": "1h"});
        test.apply(&test.kustomization("app", spec)).await?;
        let waits = |object: &DynamicObject| {
            condition(object, "Reconciling").is_some_and(|(_, _, message)| message.contains("health checks"))
        };
        wait_for(&test.kustomizations(), "app", waits, PATIENCE).await?;
        let request = "2026-11-23T10:00:00Z";
        let annotate =
            Patch::Merge(json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": request}}}));
        test.kustomizations()
            .patch("app", &PatchParams::default(), &annotate)
            .await?;
        let ended = |object: &DynamicObject| {
            object.data["status"]["lastHandledReconcileAt"] == request
                && condition(object, "Ready")
                    .is_some_and(|(status, reason, _)| status == "False" && reason == "HealthCheckFailed")
        };
        wait_for(&test.kustomizations(), "app", ended, PATIENCE).await?;
        let events: Api<Event> = Api::namespaced(test.client.clone(), ns);
        let canceled = events.list(&Default::default()).await?.items.into_iter();
        let canceled = canceled.filter(|event| event.reason.as_deref() == Some("HealthCheckCanceled"));
        let canceled: i32 = canceled.map(|event| event.count.unwrap_or(1)).sum();
        ensure!(canceled == 1, "{canceled} waits were given up for one request");
        Ok(())
    });
}
