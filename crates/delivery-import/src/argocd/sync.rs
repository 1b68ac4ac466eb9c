//! When an Application is synced, where to, and with which options.

use serde_json::{Value, json};

use super::Notes;
use crate::{is_set, list, set, text};

/// The API server that Argo CD runs in.
const HERE: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];

/// Writes it into a Kustomization or HelmRelease; `more` gets objects that are needed besides.
pub(crate) fn apply(application: &Value, object: &mut Value, more: &mut Vec<Value>, notes: &mut Notes<'_>) {
    let is_release = object["kind"] == "HelmRelease";
    destination(application, object, notes);
    let policy = &application["spec"]["syncPolicy"];
    let automated = &policy["automated"];
    if automated.is_null() || automated["enabled"] == false {
        object["spec"]["suspend"] = true.into();
        notes.add("syncPolicy", "it is synced by hand: the object is suspended; windlass reconcile and resume take the place of Sync");
    }
    if !is_release {
        object["spec"]["prune"] = (automated["prune"] == true).into();
    }
    if automated.is_object() && automated["selfHeal"] != true {
        match is_release {
            true => {}
            false => notes.add("syncPolicy.automated.selfHeal", "drift is always corrected"),
        }
    } else if is_release && automated["selfHeal"] == true {
        object["spec"]["driftDetection"] = json!({"mode": "enabled"});
    }
    let finalizers = list(application, "/metadata/finalizers");
    let deletes = finalizers.iter().any(|one| {
        one.as_str()
            .is_some_and(|one| one.starts_with("resources-finalizer."))
    });
    if !deletes && !is_release {
        object["spec"]["deletionPolicy"] = "Orphan".into();
    }
    options(policy, object, more, notes);
    let pause = text(policy, "/retry/backoff/duration");
    if !pause.is_empty() {
        set(&mut object["spec"], "retryInterval", duration(pause).into());
    }
    ignored(application, object, notes);
    if is_release {
        set(
            &mut object["spec"],
            "maxHistory",
            application["spec"]["revisionHistoryLimit"].clone(),
        );
    }
    project(application, object, notes);
    metadata(application, notes);
}

fn destination(application: &Value, object: &mut Value, notes: &mut Notes<'_>) {
    let destination = &application["spec"]["destination"];
    let namespace = text(destination, "/namespace");
    if !namespace.is_empty() && object["spec"]["targetNamespace"].is_null() {
        object["spec"]["targetNamespace"] = namespace.into();
        if object["kind"] == "HelmRelease" {
            // `helm list` shows it where it is.
            object["spec"]["storageNamespace"] = namespace.into();
            if object["spec"]["releaseName"].is_null() {
                object["spec"]["releaseName"] = object["metadata"]["name"].clone();
            }
        } else {
            notes.add(
                "destination.namespace",
                format!("all objects come into {namespace}, also those that name another namespace; remove targetNamespace if some do"),
            );
        }
    }
    let cluster = [text(destination, "/name"), text(destination, "/server")];
    let cluster = cluster
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default();
    if !cluster.is_empty() && !HERE.contains(&cluster) {
        let name = crate::named(cluster.trim_start_matches("https://"));
        object["spec"]["kubeConfig"] = json!({"secretRef": {"name": format!("{name}-kubeconfig")}});
        notes.add(
            "destination",
            format!("it is the cluster {cluster}: make a Secret {name}-kubeconfig with its kubeconfig, or let that cluster pull by itself"),
        );
    }
}

fn options(policy: &Value, object: &mut Value, more: &mut Vec<Value>, notes: &mut Notes<'_>) {
    let namespace = text(object, "/spec/targetNamespace").to_owned();
    for option in list(policy, "/syncOptions").iter().filter_map(Value::as_str) {
        match (option, object["kind"] == "HelmRelease") {
            ("CreateNamespace=true", true) => object["spec"]["install"]["createNamespace"] = true.into(),
            ("CreateNamespace=true", false) if !namespace.is_empty() => {
                let mut metadata = json!({"name": namespace});
                let managed = &policy["managedNamespaceMetadata"];
                set(&mut metadata, "labels", managed["labels"].clone());
                set(&mut metadata, "annotations", managed["annotations"].clone());
                more.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
            }
            ("Prune=false", false) => object["spec"]["prune"] = false.into(),
            ("Replace=true" | "Force=true", false) => {
                object["spec"]["force"] = true.into();
                notes.add(
                    "syncPolicy.syncOptions",
                    format!("{option}: objects whose fields cannot be changed are made anew (force)"),
                );
            }
            (
                "ServerSideApply=true"
                | "ApplyOutOfSyncOnly=true"
                | "Validate=true"
                | "CreateNamespace=false"
                | "RespectIgnoreDifferences=true"
                | "FailOnSharedResource=true",
                _,
            ) => {}
            _ => notes.add(
                "syncPolicy.syncOptions",
                format!("{option} has no counterpart, and is left out"),
            ),
        }
    }
}

fn ignored(application: &Value, object: &mut Value, notes: &mut Notes<'_>) {
    let mut rules = Vec::new();
    for rule in list(application, "/spec/ignoreDifferences") {
        if is_set(&rule["jsonPointers"]) {
            let mut target = json!({});
            for field in ["group", "kind", "name", "namespace"] {
                let value = &rule[field];
                if value != "*" {
                    set(&mut target, field, value.clone());
                }
            }
            let mut made = json!({"paths": rule["jsonPointers"]});
            set(&mut made, "target", target);
            rules.push(made);
        }
        for field in ["jqPathExpressions", "managedFieldsManagers"] {
            if is_set(&rule[field]) {
                notes.add(
                    &format!("ignoreDifferences.{field}"),
                    "only JSON pointers can be ignored: write them as such",
                );
            }
        }
    }
    if rules.is_empty() {
        return;
    }
    if object["kind"] == "HelmRelease" {
        object["spec"]["driftDetection"]["ignore"] = Value::Array(rules);
        object["spec"]["driftDetection"]["mode"] = "enabled".into();
    } else {
        object["spec"]["ignore"] = Value::Array(rules);
    }
}

fn metadata(application: &Value, notes: &mut Notes<'_>) {
    let annotations = application
        .pointer("/metadata/annotations")
        .and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        if key == "argocd.argoproj.io/sync-wave" {
            notes.add(
                "metadata.annotations",
                format!("it is in sync wave {value}: name what comes before it in dependsOn"),
            );
        } else if key.starts_with("notifications.argoproj.io/") {
            notes.add(
                "metadata.annotations",
                format!("{key}: write an Alert and a Provider"),
            );
        } else if key.starts_with("argocd-image-updater.argoproj.io/image-list") {
            notes.add(
                "metadata.annotations",
                format!("{key}: write an ImageRepository, an ImagePolicy and an ImageUpdateAutomation"),
            );
        }
    }
}

/// Without an account, the objects of a project would be applied with all rights of the controller.
fn project(application: &Value, object: &mut Value, notes: &mut Notes<'_>) {
    let project = text(application, "/spec/project");
    if matches!(project, "" | "default") {
        return;
    }
    let account = crate::named(project);
    notes.add(
        "project",
        format!(
            "it is applied as the ServiceAccount {account}: create it, with the rights that the project gives"
        ),
    );
    object["spec"]["serviceAccountName"] = account.into();
}

/// Argo CD takes seconds without a unit.
fn duration(text: &str) -> String {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{text}s"),
        false => text.to_owned(),
    }
}
