//! Why something failed: in the message of Ready for people, in the history for programs.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::condition;
use testkit::wait_for;

use crate::tenants::account;
use crate::world::{PATIENCE, Test, config_map, run};

/// A workload whose Pods fare as the label says.
fn workload(ns: &str, kind: &str, name: &str, outcome: &str, pod: Value) -> Value {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "example.com/app:nope",
            "resources": {"limits": {"memory": "64Mi"}}}],
    });
    let more = pod.as_object().cloned().unwrap_or_default();
    spec.as_object_mut()
        .into_iter()
        .for_each(|spec| spec.extend(more.clone()));
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": ns},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name, "testkit.windlass.dev/outcome": outcome}}, "spec": spec,
        }},
    })
}

/// A Deployment whose Pods have this status; kwok runs no containers.
fn deployment_with_status(ns: &str, name: &str, status: &Value) -> Value {
    let mut object = workload(ns, "Deployment", name, "annotated", json!({}));
    let mut status = status.clone();
    status["startTime"] = json!("2026-01-01T00:00:00Z");
    object["spec"]["template"]["metadata"]["annotations"] =
        json!({"testkit.windlass.dev/status": status.to_string()});
    object
}

fn container(more: Value) -> Value {
    let mut container =
        json!({"name": "main", "image": "a", "imageID": "", "ready": false, "restartCount": 3});
    let more = more.as_object().cloned().unwrap_or_default();
    container
        .as_object_mut()
        .into_iter()
        .for_each(|container| container.extend(more.clone()));
    container
}

fn file(object: &Value) -> (String, String) {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let path = format!(
        "deploy/{}-{}.yaml",
        text("/kind").to_lowercase(),
        text("/metadata/name")
    );
    (path, object.to_string())
}

/// Delivers the objects, which do not become healthy within the time.
async fn deliver(test: &Test, objects: &[Value], spec: Value) -> Result<()> {
    let files: Vec<_> = objects.iter().map(file).collect();
    let repository = test.repository(&files)?;
    test.git_source(&repository).await?;
    let mut spec = spec;
    spec["retryInterval"] = json!("1h");
    test.apply(&test.kustomization("app", spec)).await
}

/// Message of Ready, and the list, once the Kustomization has failed.
async fn failure(test: &Test, reason: &str) -> Result<(String, Vec<Value>)> {
    let message = test.not_ready(&test.kustomizations(), "app", reason).await?;
    let object = test.kustomizations().get("app").await?;
    let list = object.data["status"]["history"][0]["metadata"]["windlass.dev/why"]
        .as_str()
        .with_context(|| format!("no list beside {message}"))?;
    ensure!(list.len() <= 4096, "{} bytes", list.len());
    Ok((message, serde_json::from_str(list)?))
}

/// Finds the entry of an object, and checks its word.
fn entry<'a>(list: &'a [Value], object: &str, cause: &str) -> Result<&'a Value> {
    let found = list.iter().find(|entry| entry["object"] == object);
    let entry = found.with_context(|| format!("{object} is not in {list:?}"))?;
    ensure!(entry["cause"] == cause, "{cause} is not the cause in {entry}");
    Ok(entry)
}

#[test]
fn the_cause_of_each_unhealthy_object_is_told_while_it_is_waited_for_and_at_the_end() {
    run("why", |test| async move {
        let ns = &test.namespace;
        let waiting = |reason: &str, message: &str| {
            json!({"phase": "Pending", "containerStatuses": [
                container(json!({"state": {"waiting": {"reason": reason, "message": message}}}))]})
        };
        let oom = json!({"phase": "Running", "containerStatuses": [container(json!({
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}}}))]});
        let crash = json!({"phase": "Pending", "initContainerStatuses": [container(json!({
            "name": "migrate", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no database",
                "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}}}))]});
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": ns},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gone",
                "resources": {"requests": {"storage": "1Gi"}}}});
        let objects = [
            workload(ns, "Deployment", "image", "image-pull-error", json!({})),
            workload(ns, "Deployment", "probe", "probe-failure", json!({})),
            workload(
                ns,
                "Deployment",
                "node",
                "runs",
                json!({"nodeSelector": {"no": "such-node"}}),
            ),
            workload(
                ns,
                "StatefulSet",
                "account",
                "runs",
                json!({"serviceAccountName": "nobody"}),
            ),
            workload(ns, "DaemonSet", "daemon", "image-pull-error", json!({})),
            deployment_with_status(
                ns,
                "config",
                &waiting("CreateContainerConfigError", "configmap \"settings\" not found"),
            ),
            deployment_with_status(ns, "memory", &oom),
            deployment_with_status(ns, "init", &crash),
            claim,
        ]
        .map(|mut object| {
            if object["kind"] == "DaemonSet" {
                object["spec"]
                    .as_object_mut()
                    .into_iter()
                    .for_each(|spec| drop(spec.remove("replicas")));
            }
            object
        });
        deliver(&test, &objects, json!({"timeout": "30s"})).await?;

        let tells = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, _, message)| {
                status == "Unknown"
                    && message.starts_with("Reconciliation in progress, waiting for: [")
                    && message.contains(": pod ")
            })
        };
        let object = wait_for(&test.kustomizations(), "app", tells, PATIENCE).await?;
        let (_, _, reconciling) = condition(&object, "Reconciling").context("it is not reconciling")?;
        ensure!(
            reconciling.starts_with("Running health checks for revision")
                && reconciling.contains("and 6 more]"),
            "{reconciling}"
        );

        let (message, list) = failure(&test, "HealthCheckFailed").await?;
        for (object, cause, container, words) in [
            (
                "Deployment/image",
                "ImagePull",
                Some("main"),
                "example.com/app:nope",
            ),
            (
                "DaemonSet/daemon",
                "ImagePull",
                Some("main"),
                "example.com/app:nope",
            ),
            (
                "Deployment/probe",
                "Probe",
                Some("main"),
                "Readiness probe failed: HTTP probe failed with statuscode: 503",
            ),
            (
                "Deployment/node",
                "Unschedulable",
                None,
                "didn't match Pod's node affinity/selector",
            ),
            (
                "StatefulSet/account",
                "ServiceAccount",
                None,
                "serviceaccount \"nobody\" not found",
            ),
            (
                "Deployment/config",
                "MissingConfig",
                Some("main"),
                "configmap \"settings\" not found",
            ),
            (
                "Deployment/memory",
                "OutOfMemory",
                Some("main"),
                "exit code 137 (OOMKilled, memory limit 64Mi)",
            ),
            (
                "Deployment/init",
                "Crash",
                Some("migrate"),
                "init container migrate: CrashLoopBackOff after 3 restarts: exit code 3 (Error): no database",
            ),
            (
                "PersistentVolumeClaim/data",
                "Volume",
                None,
                "storageclass.storage.k8s.io \"gone\" not found",
            ),
        ] {
            let (kind, name) = object.split_once('/').context("no kind")?;
            let entry = entry(&list, &format!("{kind}/{ns}/{name}"), cause)?;
            let told = entry["message"].as_str().unwrap_or_default();
            ensure!(told.contains(words), "{words} is not in {entry}");
            ensure!(message.contains(words), "{words} is not in {message}");
            ensure!(entry["container"].as_str() == container, "{entry}");
            ensure!(entry["status"] == "InProgress", "{entry}");
            ensure!(
                container.is_none() || entry["pod"].as_str().is_some_and(|pod| pod.starts_with(name)),
                "{entry}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_job_that_fails_and_an_object_of_flux_that_is_not_ready_are_told() {
    run("why-job", |test| async move {
        let ns = &test.namespace;
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": ns},
            "spec": {"backoffLimit": 0, "template": {
                "metadata": {"labels": {"testkit.windlass.dev/outcome": "job-failure"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/job:1"}]},
            }},
        });
        deliver(&test, &[job], json!({})).await?;
        let (message, list) = failure(&test, "HealthCheckFailed").await?;
        ensure!(
            message.contains("failed early due to stalled resources"),
            "{message}"
        );
        ensure!(message.contains("BackoffLimitExceeded"), "{message}");
        let entry = entry(&list, &format!("Job/{ns}/migrate"), "Crash")?;
        ensure!(
            entry["status"] == "Failed" && entry["container"] == "main",
            "{entry}"
        );
        ensure!(
            entry["message"]
                .as_str()
                .is_some_and(|told| told.contains("exit code 1 (Error)")),
            "{entry}"
        );
        Ok(())
    });
    run("why-nested", |test| async move {
        let ns = &test.namespace;
        let child = test.kustomization("child", json!({"path": "./nowhere", "retryInterval": "1h"}));
        deliver(&test, &[child], json!({"timeout": "30s"})).await?;
        let (message, list) = failure(&test, "HealthCheckFailed").await?;
        let words = "kustomization path not found: ./nowhere";
        ensure!(
            message.contains(&format!("Kustomization/{ns}/child status: 'InProgress'")),
            "{message}"
        );
        ensure!(message.contains(words), "{message}");
        // Its Ready says it, so the event that says the same adds nothing.
        ensure!(list[0]["cause"].is_null(), "{list:?}");
        ensure!(
            list[0]["message"]
                .as_str()
                .is_some_and(|told| told.contains(words)),
            "{list:?}"
        );
        Ok(())
    });
}

#[test]
fn what_refuses_pods_is_told() {
    run("why-quota", |test| async move {
        let ns = &test.namespace;
        test.apply(&json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": ns}, "spec": {"hard": {"pods": "0"}}}))
            .await?;
        let objects = [
            workload(ns, "Deployment", "web", "runs", json!({})),
            workload(ns, "StatefulSet", "db", "runs", json!({})),
        ];
        deliver(&test, &objects, json!({"timeout": "30s"})).await?;
        let (message, list) = failure(&test, "HealthCheckFailed").await?;
        for name in ["Deployment/web", "StatefulSet/db"] {
            let (kind, name) = name.split_once('/').context("no kind")?;
            let entry = entry(&list, &format!("{kind}/{ns}/{name}"), "Quota")?;
            let told = entry["message"].as_str().unwrap_or_default();
            ensure!(
                told.contains("exceeded quota: none, requested: pods=1"),
                "{entry}"
            );
            ensure!(message.contains(told), "{told} is not in {message}");
        }
        Ok(())
    });
}

#[test]
fn an_account_that_may_not_look_at_pods_is_told_so() {
    run("why-account", |test| async move {
        let ns = &test.namespace;
        account(&test, "tenant", &["apps"], &["deployments"]).await?;
        let objects = [workload(ns, "Deployment", "web", "image-pull-error", json!({}))];
        let spec = json!({"timeout": "30s", "serviceAccountName": "tenant"});
        deliver(&test, &objects, spec).await?;
        let (message, list) = failure(&test, "HealthCheckFailed").await?;
        let words = format!(
            "the cause cannot be looked up: replicasets.apps is forbidden: User \"system:serviceaccount:{ns}:tenant\" \
             cannot list resource \"replicasets\" in API group \"apps\" in the namespace \"{ns}\""
        );
        ensure!(message.contains(&words), "{message}");
        let entry = entry(&list, &format!("Deployment/{ns}/web"), "Unreadable")?;
        ensure!(entry["message"] == words, "{entry}");
        Ok(())
    });
}

/// Comes back when the API server refuses a ConfigMap of this name. Nothing tells when a policy or webhook is in force.
async fn refused(test: &Test, name: &str) -> Result<()> {
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"refused": name}}}))?;
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let refusal = async {
        while test.config_maps().create(&dry_run, &map).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refusal)
        .await
        .with_context(|| format!("{name} is not refused"))
}

/// Makes the API server refuse ConfigMaps of this test with the label `refused`: by a policy, and by a webhook that is not
/// there.
async fn refuse(test: &Test) -> Result<()> {
    let ns = &test.namespace;
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": ns}});
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]);
    let version = "admissionregistration.k8s.io/v1";
    test.apply(
        &json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": ns},
        "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": here, "resourceRules": rules,
                "objectSelector": {"matchLabels": {"refused": "policy"}}},
            "validations": [{"expression": "false", "message": "the house does not allow it"}]}}),
    )
    .await?;
    test.apply(
        &json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": ns},
        "spec": {"policyName": ns, "validationActions": ["Deny"]}}),
    )
    .await?;
    test.apply(&json!({"apiVersion": version, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": ns},
        "webhooks": [{"name": "away.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "namespaceSelector": here, "rules": rules, "objectSelector": {"matchLabels": {"refused": "webhook"}},
            "clientConfig": {"service": {"namespace": ns, "name": "nobody"}}}]}))
        .await?;
    refused(test, "policy").await?;
    refused(test, "webhook").await
}

#[test]
fn refusals_of_an_apply_are_listed_with_file_line_and_cause() {
    run("why-apply", |test| async move {
        let ns = &test.namespace;
        refuse(&test).await?;
        let labelled = |name: &str| {
            let labels = format!("\n  labels: {{refused: {name}}}\ndata:");
            config_map(ns, name, "1").replace("\ndata:", &labels)
        };
        let secret = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: wrong, namespace: {ns}}}\ndata: {{key: hunter2!}}\n"
        );
        let two = format!("{}---\n{}", config_map(ns, "good", "1"), labelled("policy"));
        account(&test, "tenant", &[""], &["configmaps", "secrets"]).await?;
        let repository = test.repository(&[
            ("deploy/two.yaml", two),
            ("deploy/webhook.yaml", labelled("webhook")),
            ("deploy/secret.yaml", secret),
            (
                "deploy/web.yaml",
                workload(ns, "Deployment", "web", "runs", json!({})).to_string(),
            ),
        ])?;
        test.git_source(&repository).await?;
        let spec = json!({"serviceAccountName": "tenant", "retryInterval": "1h"});
        test.apply(&test.kustomization("app", spec)).await?;
        let (message, list) = failure(&test, "ReconciliationFailed").await?;
        let forbidden = format!(
            "User \"system:serviceaccount:{ns}:tenant\" cannot patch resource \"deployments\" in API group \"apps\" in \
             the namespace \"{ns}\""
        );
        for (object, cause, place, words) in [
            (
                "ConfigMap/policy",
                "Admission",
                ("deploy/two.yaml", 9),
                "the house does not allow it",
            ),
            (
                "ConfigMap/webhook",
                "Webhook",
                ("deploy/webhook.yaml", 1),
                "failed calling webhook \"away.example.com\"",
            ),
            ("Secret/wrong", "Invalid", ("deploy/secret.yaml", 1), ""),
            ("Deployment/web", "Forbidden", ("deploy/web.yaml", 1), &forbidden),
        ] {
            let (kind, name) = object.split_once('/').context("no kind")?;
            let entry = entry(&list, &format!("{kind}/{ns}/{name}"), cause)?;
            ensure!(
                (entry["file"].as_str(), entry["line"].as_u64()) == (Some(place.0), Some(place.1)),
                "{entry}"
            );
            ensure!(entry["step"] == "DryRun", "{entry}");
            ensure!(
                entry["message"].as_str().is_some_and(|told| told.contains(words)),
                "{entry}"
            );
            ensure!(message.contains(words), "{words} is not in {message}");
        }
        ensure!(!format!("{message}{list:?}").contains("hunter2"), "{message}");

        // What was fixed leaves no list behind.
        let changes = ["webhook", "secret", "web"].map(|name| Change::delete(&format!("deploy/{name}.yaml")));
        let mut changes = changes.to_vec();
        changes.push(Change::write("deploy/two.yaml", config_map(ns, "good", "1")));
        let revision = test.push(&repository, &changes).await?;
        let object = test.ready("app", &revision).await?;
        let metadata = &object.data["status"]["history"][0]["metadata"];
        ensure!(
            metadata["revision"] == revision.as_str() && metadata["windlass.dev/why"].is_null(),
            "{metadata}"
        );
        Ok(())
    });
}
