//! Values that the API server fills in where a manifest says nothing. Left out, they are filled in again: the object is the same.

use serde_json::{Value, json};

/// Removes them, and what belongs to this cluster only.
pub(super) fn drop(object: &mut Value) {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    let group = group.map(|(group, _)| group.to_owned()).unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    match (group.as_str(), kind.as_str()) {
        ("", "Pod") => within(object, "spec", pod),
        ("", "Service") => within(object, "spec", service),
        ("", "PersistentVolumeClaim") => within(object, "spec", claim),
        ("", "ServiceAccount") => remove(object, &["secrets"]),
        ("", "Namespace") => remove(object, &["spec"]),
        ("apps", "Deployment") => within(object, "spec", deployment),
        ("apps", "StatefulSet") => within(object, "spec", stateful_set),
        ("apps", "DaemonSet") => within(object, "spec", daemon_set),
        ("batch", "Job") => {
            within(object, "metadata", labels_of_job);
            within(object, "spec", job);
        }
        ("batch", "CronJob") => within(object, "spec", cron_job),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => within(object, "spec", |spec| {
            unless(spec, "conversion", &json!({"strategy": "None"}));
        }),
        _ => {}
    }
}

/// Works on a field, if there is one.
fn within(of: &mut Value, field: &str, work: impl FnOnce(&mut Value)) {
    if let Some(field) = of.get_mut(field) {
        work(field);
    }
}

/// Removes a field that has a value, the default.
fn unless(of: &mut Value, field: &str, default: &Value) {
    if of.get(field) == Some(default) {
        remove(of, &[field]);
    }
}

fn remove(of: &mut Value, fields: &[&str]) {
    if let Some(object) = of.as_object_mut() {
        for field in fields {
            object.remove(*field);
        }
    }
}

fn drop_empty(of: &mut Value, field: &str) {
    unless(of, field, &json!({}));
    unless(of, field, &Value::Null);
}

fn each<'v>(of: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    of.get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// The part of a workload that its Pods are made of.
fn template(template: &mut Value) {
    within(template, "metadata", |metadata| {
        remove(metadata, &["creationTimestamp"]);
        within(metadata, "annotations", |annotations| {
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.retain(|key, _| !super::is_of_program(key));
            }
        });
        drop_empty(metadata, "annotations");
    });
    drop_empty(template, "metadata");
    within(template, "spec", pod);
}

fn deployment(spec: &mut Value) {
    let update =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
    unless(spec, "strategy", &update);
    unless(spec, "progressDeadlineSeconds", &json!(600));
    unless(spec, "revisionHistoryLimit", &json!(10));
    within(spec, "template", template);
}

fn daemon_set(spec: &mut Value) {
    let update = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    unless(spec, "updateStrategy", &update);
    unless(spec, "revisionHistoryLimit", &json!(10));
    within(spec, "template", template);
}

fn cron_job(spec: &mut Value) {
    unless(spec, "concurrencyPolicy", &json!("Allow"));
    unless(spec, "suspend", &json!(false));
    unless(spec, "successfulJobsHistoryLimit", &json!(3));
    unless(spec, "failedJobsHistoryLimit", &json!(1));
    within(spec, "jobTemplate", |template| {
        within(template, "metadata", |metadata| {
            remove(metadata, &["creationTimestamp"]);
        });
        drop_empty(template, "metadata");
        within(template, "spec", job);
    });
}

fn pod(spec: &mut Value) {
    for (field, default) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("serviceAccountName", json!("default")),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        unless(spec, field, &default);
    }
    // The old name of serviceAccountName.
    remove(spec, &["serviceAccount"]);
    for list in ["containers", "initContainers"] {
        each(spec, list).for_each(container);
    }
    for volume in each(spec, "volumes") {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                unless(source, "defaultMode", &json!(420));
            }
        }
        if let Some(path) = volume.get_mut("hostPath") {
            unless(path, "type", &json!(""));
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !name.contains(['@', ':']) || name.ends_with(":latest");
    let pulled = if is_latest { "Always" } else { "IfNotPresent" };
    for (field, default) in [
        ("imagePullPolicy", json!(pulled)),
        ("resources", json!({})),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ] {
        unless(container, field, &default);
    }
    for port in each(container, "ports") {
        unless(port, "protocol", &json!("TCP"));
    }
    for variable in each(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            unless(field, "apiVersion", &json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe) else {
            continue;
        };
        for (field, default) in [
            ("failureThreshold", 3),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("timeoutSeconds", 1),
        ] {
            unless(probe, field, &json!(default));
        }
        if let Some(get) = probe.get_mut("httpGet") {
            unless(get, "scheme", &json!("HTTP"));
        }
    }
}

fn stateful_set(spec: &mut Value) {
    for (field, default) in [
        ("podManagementPolicy", json!("OrderedReady")),
        ("revisionHistoryLimit", json!(10)),
        (
            "updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ),
        (
            "persistentVolumeClaimRetentionPolicy",
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        ),
    ] {
        unless(spec, field, &default);
    }
    within(spec, "template", template);
    for one in each(spec, "volumeClaimTemplates") {
        remove(one, &["status"]);
        // Defaults of the template's own type.
        unless(one, "apiVersion", &json!("v1"));
        unless(one, "kind", &json!("PersistentVolumeClaim"));
        within(one, "metadata", |metadata| {
            remove(metadata, &["creationTimestamp"]);
        });
        within(one, "spec", claim);
    }
}

fn job(spec: &mut Value) {
    let is_manual = spec["manualSelector"] == true;
    if !is_manual {
        remove(spec, &["selector"]);
    }
    for (field, default) in [
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("completions", json!(1)),
        ("manualSelector", json!(false)),
        ("parallelism", json!(1)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("suspend", json!(false)),
    ] {
        unless(spec, field, &default);
    }
    within(spec, "template", |template| {
        within(template, "metadata", labels_of_job);
    });
    within(spec, "template", template);
}

/// The labels by which a Job knows its Pods.
fn labels_of_job(metadata: &mut Value) {
    if let Some(labels) = metadata.get_mut("labels") {
        let own = [
            "controller-uid",
            "job-name",
            "batch.kubernetes.io/controller-uid",
            "batch.kubernetes.io/job-name",
        ];
        remove(labels, &own);
    }
    drop_empty(metadata, "labels");
}

fn service(spec: &mut Value) {
    // Headless is a wish; an address is this cluster's.
    if spec["clusterIP"] != "None" {
        remove(spec, &["clusterIP"]);
    }
    remove(spec, &["clusterIPs", "healthCheckNodePort"]);
    let is_dual = spec["ipFamilyPolicy"]
        .as_str()
        .is_some_and(|policy| policy != "SingleStack");
    if !is_dual {
        remove(spec, &["ipFamilies", "ipFamilyPolicy"]);
    }
    for (field, default) in [
        ("allocateLoadBalancerNodePorts", json!(true)),
        ("externalTrafficPolicy", json!("Cluster")),
        ("internalTrafficPolicy", json!("Cluster")),
        ("sessionAffinity", json!("None")),
        ("type", json!("ClusterIP")),
    ] {
        unless(spec, field, &default);
    }
    for port in each(spec, "ports") {
        unless(port, "protocol", &json!("TCP"));
        let number = port["port"].clone();
        unless(port, "targetPort", &number);
    }
}

fn claim(spec: &mut Value) {
    remove(spec, &["volumeName"]);
    unless(spec, "volumeMode", &json!("Filesystem"));
}
