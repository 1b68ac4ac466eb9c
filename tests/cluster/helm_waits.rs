//! Tests of how the wait of an action ends, and what is reported meanwhile.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::objects::{condition, is_ready};
use testkit::{Controller, wait_for};

use crate::helm::{DEPLOYMENT, HelmTest, chart, ensure_condition, run};
use crate::world::PATIENCE;

/// A Deployment that becomes available unless `stuck` is set: no node has such a label.
fn sometimes_stuck() -> String {
    DEPLOYMENT.replace(
        "      containers:",
        "      {{- if .Values.stuck }}\n      nodeSelector: {no: such-node}\n      {{- end }}\n      containers:",
    )
}

/// Waits until an action of the release `web` waits for its objects.
async fn waiting(test: &HelmTest) -> Result<DynamicObject> {
    test.when(|object| {
        condition(object, "Reconciling").is_some_and(|(status, reason, message)| {
            status == "True" && reason == "Progressing" && message.starts_with("Running '")
        })
    })
    .await
}

/// helm-controller for this test alone, with a gate open.
async fn with_gate(test: &HelmTest, gate: &str) -> Result<Controller> {
    let mut options = test.own_shard();
    options.flags.push(format!("--feature-gates={gate}=true"));
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_helm(kubeconfig, &test.world.source, options).await
}

#[test]
fn a_newer_spec_or_chart_ends_the_wait_when_the_gate_is_open() {
    run("helm-cancel", |test| async move {
        let _helm = with_gate(&test, "CancelHealthCheckOnNewRevision").await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", &sometimes_stuck())])?)
            .await?;
        // No one waits for ten minutes here.
        let release = |values: Value| {
            let retry = json!({"strategy": {"name": "RetryOnFailure", "retryInterval": "10m"}});
            let spec = json!({"timeout": "10m", "values": values, "install": retry, "upgrade": retry});
            test.in_own_shard(test.release(spec))
        };
        test.apply(&release(json!({"stuck": true}))).await?;
        waiting(&test).await?;
        test.apply(&release(json!({"value": "second"}))).await?;
        test.ready().await?;
        test.map_has("value", "second").await?;

        test.apply(&release(json!({"stuck": true, "value": "third"})))
            .await?;
        waiting(&test).await?;
        test.map_has("value", "third").await?;
        let mended = chart("1.1.0", &[("web.yaml", DEPLOYMENT)])?;
        test.push_chart("1.1.0", mended).await?;
        test.choose_tag("1.1.0").await?;
        let is_mended = |object: &DynamicObject| {
            is_ready(object)
                && condition(object, "Ready").is_some_and(|(_, _, message)| message.contains("web@1.1.0+"))
        };
        test.when(is_mended).await?;
        let records = test.records("web").await?;
        ensure!(
            records.last().is_some_and(|(_, status)| status == "deployed"),
            "{records:?}"
        );
        ensure!(
            !records.iter().any(|(_, status)| status.starts_with("pending")),
            "{records:?}"
        );
        Ok(())
    });
}

#[test]
fn without_the_gate_a_wait_lasts_until_its_timeout() {
    run("helm-uncancelled", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", &sometimes_stuck())])?)
            .await?;
        test.apply(&test.release(json!({"timeout": "4s", "values": {"stuck": true}})))
            .await?;
        waiting(&test).await?;
        test.apply(&test.release(json!({"timeout": "4s", "values": {}})))
            .await?;
        test.ready().await?;
        let events = test.objects("v1", "Event").list(&Default::default()).await?;
        let is_timeout = |event: &DynamicObject| {
            let message = event.data["message"].as_str().unwrap_or_default();
            message.contains("Helm install failed") && message.contains("timeout waiting for")
        };
        ensure!(events.iter().any(is_timeout), "the wait was ended");
        Ok(())
    });
}

/// A Deployment whose image no one can pull.
fn unpullable() -> String {
    DEPLOYMENT.replace(
        "      labels: {app: {{ .Release.Name }}}\n    spec",
        "      labels: {app: {{ .Release.Name }}, testkit.windlass.dev/outcome: image-pull-error}\n    spec",
    )
}

/// A Job that is to run before an install, and never starts.
const STUCK_HOOK: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {no: such-node}
      containers: [{name: hook, image: example.com/hook:1}]
";

/// Waits until Ready and Reconciling tell what an install waits for; returns the words.
async fn told(test: &HelmTest, cause: &str) -> Result<String> {
    let running = "Running 'install' action with timeout of 5m0s, waiting for: [";
    let tells = |object: &DynamicObject, type_: &str| {
        condition(object, type_).is_some_and(|(_, reason, message)| {
            reason == "Progressing" && message.starts_with(running) && message.contains(cause)
        })
    };
    let object = test
        .when(|object| tells(object, "Ready") && tells(object, "Reconciling"))
        .await?;
    ensure_condition(&object, "Ready", "Unknown", "Progressing")?;
    let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
    Ok(message.to_owned())
}

#[test]
fn what_an_install_waits_for_is_told_with_its_cause_and_deletion_ends_it() {
    run("helm-telling", |test| async move {
        let web = unpullable();
        test.oci_chart("1.0.0", chart("1.0.0", &[("web.yaml", &web)])?)
            .await?;
        test.apply(&test.release(json!({"timeout": "5m"}))).await?;
        let message = told(&test, "ImagePullBackOff").await?;
        let deployment = format!("[Deployment/{}/web status: 'InProgress'", test.namespace);
        ensure!(message.contains(&deployment), "{message}");
        test.delete().await?;
        test.config_map_gone("web-map").await
    });
}

#[test]
fn a_hook_that_hangs_is_told_and_ends_with_its_object() {
    run("helm-hook-hangs", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[("hook.yaml", STUCK_HOOK)])?)
            .await?;
        test.apply(&test.release(json!({"timeout": "5m"}))).await?;
        let job = format!("Job/{}/web-hook status: 'InProgress'", test.namespace);
        told(&test, &job).await?;
        test.delete().await?;
        ensure!(test.records("web").await?.is_empty());
        Ok(())
    });
}

#[test]
fn a_process_that_is_told_to_end_leaves_its_waits_and_the_next_goes_on() {
    run("helm-shutdown", |test| async move {
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let mut controller = Controller::start_helm(kubeconfig, &test.world.source, test.own_shard()).await?;
        let (hook, web) = (
            STUCK_HOOK.replace("pre-install", "pre-upgrade"),
            sometimes_stuck(),
        );
        let templates = [("hook.yaml", hook.as_str()), ("web.yaml", web.as_str())];
        test.oci_chart("1.0.0", chart("1.0.0", &templates)?).await?;
        let release =
            |values: Value| test.in_own_shard(test.release(json!({"timeout": "5m", "values": values})));
        // While objects are waited for, then while a hook is.
        test.apply(&release(json!({"stuck": true}))).await?;
        waiting(&test).await?;
        test.map_has("value", "default").await?;
        controller.terminate(Duration::from_secs(10))?;
        let records = test.records("web").await?;
        ensure!(records == [(1, "failed".to_owned())], "{records:?}");
        test.oci_chart("1.1.0", chart("1.1.0", &[("web.yaml", &web)])?)
            .await?;
        test.apply(&release(json!({}))).await?;
        controller.restart().await?;
        test.ready_at(2).await?;

        test.push_chart("1.2.0", chart("1.2.0", &templates)?).await?;
        test.choose_tag("1.2.0").await?;
        waiting(&test).await?;
        let jobs = test.objects("batch/v1", "Job");
        wait_for(&jobs, "web-hook", |_| true, PATIENCE).await?;
        controller.terminate(Duration::from_secs(10))?;
        let records = test.records("web").await?;
        ensure!(
            records.last().is_some_and(|(_, status)| status == "failed"),
            "{records:?}"
        );
        test.choose_tag("1.1.0").await?;
        controller.restart().await?;
        test.ready().await.map(drop)
    });
}
