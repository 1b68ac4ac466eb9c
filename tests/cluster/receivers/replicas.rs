//! Tests of several replicas: each answers, one is at work.

use anyhow::{Result, ensure};
use reqwest::StatusCode;
use testkit::Controller;
use testkit::controller::ControllerOptions;

use super::{Receivers, push_of};
use crate::world::{PATIENCE, Test, run};

/// A replica; that it is ready does not say that it leads.
async fn replica(test: &Test) -> Result<Receivers<'_>> {
    let flags = [
        "--watch-all-namespaces=false",
        "--enable-leader-election",
        "--leader-election-lease-duration=8s",
        "--leader-election-renew-deadline=6s",
        "--leader-election-retry-period=200ms",
    ];
    let options = ControllerOptions {
        namespace: test.namespace.clone(),
        flags: flags.map(str::to_owned).to_vec(),
        environment: vec![("POD_IP".to_owned(), "127.0.0.1".to_owned())],
        ..ControllerOptions::default()
    };
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Ok(Receivers {
        test,
        controller: Controller::start_notification(kubeconfig, options).await?,
        http: reqwest::Client::builder().no_proxy().build()?,
    })
}

/// Pushes until it is taken; returns the answers before that. Each push has one.
async fn pushed(receivers: &Receivers<'_>, path: &str, commit: &str) -> Result<Vec<StatusCode>> {
    let mut before = Vec::new();
    let taken = async {
        loop {
            match receivers.push(path, &push_of(commit)).await? {
                StatusCode::OK => return anyhow::Ok(()),
                other => before.push(other),
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, taken).await??;
    Ok(before)
}

#[test]
fn a_replica_that_does_not_lead_passes_webhooks_on_and_takes_over() {
    run("receivers-replicas", |test| async move {
        let first = replica(&test).await?;
        first.target(&test.namespace, "app", "a").await?;
        let resources = serde_json::json!([{"kind": "GitRepository", "name": "app"}]);
        let spec = serde_json::json!({"type": "github", "events": ["push"], "resources": resources});
        let path = first.ready("hook", spec).await?;
        let second = replica(&test).await?;
        // Until it has looked at the Lease it asks to come again.
        let before = pushed(&second, &path, "one").await?;
        ensure!(before.iter().all(|status| *status == 503), "{before:?}");
        let annotated = first.annotated(&test.namespace, "app").await?;
        ensure!(!annotated.is_empty());
        // It answers as the leader does, also to those who may not call.
        ensure!(second.post(&path, &[("X-GitHub-Event", "push")], "{}").await? == 400);
        ensure!(second.post("/hook/none", &[], "").await? == 404);

        first.controller.kill();
        let before = pushed(&second, &path, "two").await?;
        ensure!(before.iter().all(|status| *status == 503), "{before:?}");
        ensure!(second.annotated(&test.namespace, "app").await? != annotated);
        Ok(())
    });
}
