//! Releases that fail: what is said of them, what is undone, and that a change always starts afresh.

use anyhow::ensure;
use serde_json::json;
use testkit::objects::{self, condition};

use crate::helm::{chart, ensure_condition, newest, run, said};

/// A ConfigMap that the API server refuses when `broken` is set.
const BREAKABLE: &str = "\
{{- if .Values.broken }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: Not_A_Name
{{- end }}
";

/// A Job that is to run before an upgrade; kwok completes it.
const HOOK: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: hook
        image: example.com/hook:1
";

/// A test, which kwok completes.
const TEST: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-test
  annotations:
    helm.sh/hook: test
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: test
        image: example.com/test:1
";

#[test]
fn a_failed_upgrade_is_rolled_back_and_a_change_starts_afresh() {
    run("helm-rollback", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[("broken.yaml", BREAKABLE)])?)
            .await?;
        let spec = |values: serde_json::Value| {
            test.release(json!({
                "values": values, "upgrade": {"remediation": {"retries": 0, "remediateLastFailure": true}},
            }))
        };
        test.apply(&spec(json!({"value": "good"}))).await?;
        test.ready().await?;
        test.apply(&spec(json!({"value": "bad", "broken": true}))).await?;
        let rolled_back = |object: &_| {
            condition(object, "Remediated").is_some_and(|(status, ..)| status == "True")
                && condition(object, "Stalled").is_some()
        };
        let object = test.when(rolled_back).await?;
        ensure_condition(&object, "Released", "False", "UpgradeFailed")?;
        ensure_condition(&object, "Remediated", "True", "RollbackSucceeded")?;
        ensure_condition(&object, "Ready", "False", "RollbackSucceeded")?;
        test.map_has("value", "good").await?;
        test.apply(&spec(json!({"value": "better"}))).await?;
        let object = test.ready().await?;
        ensure!(objects::field(&object, "/status/upgradeFailures").is_none());
        test.map_has("value", "better").await
    });
}

#[test]
fn a_failed_install_is_uninstalled_and_tried_again_as_often_as_the_spec_says() {
    run("helm-install-fails", |test| async move {
        test.oci_chart("1.0.0", chart("1.0.0", &[("broken.yaml", BREAKABLE)])?)
            .await?;
        let spec = |values: serde_json::Value| {
            test.release(json!({
                "values": values,
                "install": {"remediation": {"retries": 1, "remediateLastFailure": true}},
            }))
        };
        test.apply(&spec(json!({"broken": true}))).await?;
        let object = test
            .when(|object| {
                condition(object, "Stalled").is_some_and(|(_, reason, _)| reason == "RetriesExceeded")
            })
            .await?;
        ensure!(objects::field(&object, "/status/installFailures") == Some(&json!(2)));
        test.no_config_map("web-map").await?;
        test.apply(&spec(json!({}))).await?;
        let object = test.ready().await?;
        ensure!(said(&object, "lastAttemptedReleaseAction") == "install");
        Ok(())
    });
}

#[test]
fn a_chart_that_cannot_be_rendered_is_said_in_helms_words() {
    run("helm-render-fails", |test| async move {
        let template = "{{ required \"say who\" .Values.who }}\n";
        test.oci_chart("1.0.0", chart("1.0.0", &[("who.yaml", template)])?)
            .await?;
        test.apply(&test.release(json!({}))).await?;
        let message = test.refused("InstallFailed").await?;
        ensure!(
            message.contains("say who") && message.contains("Helm install failed"),
            "{message}"
        );
        test.apply(&test.release(json!({"values": {"who": "# me"}})))
            .await?;
        test.ready().await.map(drop)
    });
}

#[test]
fn hooks_run_and_tests_are_told() {
    run("helm-hooks", |test| async move {
        let templates = [("hook.yaml", HOOK), ("test.yaml", TEST)];
        test.oci_chart("1.0.0", chart("1.0.0", &templates)?).await?;
        test.apply(&test.release(json!({"test": {"enable": true}})))
            .await?;
        let object = test.ready().await?;
        ensure_condition(&object, "TestSuccess", "True", "TestSucceeded")?;
        ensure!(
            newest(&object)["testHooks"]["web-test"]["phase"] == "Succeeded",
            "{}",
            newest(&object)
        );
        test.objects("batch/v1", "Job").get("web-hook").await?;
        Ok(())
    });
}
