//! Reads `metadata.managedFields`: which program made an object, and which fields people have set by hand. Pure.
//!
//! A manager names itself, mostly after its program: what is said here is for people to look at, and is no evidence.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

/// What kind of program a field manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A tool by which people write.
    Person,
    /// Another tool that brings objects into clusters from somewhere else.
    Tool,
    /// Part of Kubernetes, or of a distribution of it.
    Kubernetes,
    /// By its name a controller.
    Controller,
    /// None that is known.
    Unknown,
}

/// Those that have no name of their own are named after their library, or the browser.
const PERSONS: [&str; 14] = [
    "kubectl",
    "oc",
    "k9s",
    "Lens",
    "OpenLens",
    "freelens",
    "headlamp",
    "dashboard",
    "node-fetch",
    "Mozilla",
    "curl",
    "flux",
    "windlass",
    "before-first-apply",
];

const TOOLS: [&str; 10] = [
    "argocd-controller",
    "argocd-application-controller",
    "helm",
    "Helm",
    "Terraform",
    "HashiCorp",
    "pulumi",
    "pulumi-kubernetes",
    "kapp",
    "OpenAPI-Generator",
];

const PARTS_OF_KUBERNETES: [&str; 13] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kube-addon-manager",
    "cloud-controller-manager",
    "kubelet",
    "kubeadm",
    "k3s",
    "rke2",
    "k0s",
    "minikube",
    "eks",
];

const ENDS_OF_CONTROLLERS: [&str; 8] = [
    "controller",
    "manager",
    "operator",
    "webhook",
    "injector",
    "provisioner",
    "autoscaler",
    "scheduler",
];

impl Program {
    /// The kind of program that a manager seems to be, by its name.
    pub fn from_manager(name: &str) -> Self {
        if PERSONS.contains(&name) || name.starts_with("kubectl-") {
            Self::Person
        } else if TOOLS.contains(&name) {
            Self::Tool
        } else if PARTS_OF_KUBERNETES.contains(&name) {
            Self::Kubernetes
        } else if ENDS_OF_CONTROLLERS.iter().any(|end| name.ends_with(end)) {
            Self::Controller
        } else {
            Self::Unknown
        }
    }
}

/// The manager that made an object: a person's tool if one has set more than metadata, else the first that has.
pub fn made_by(metadata: &ObjectMeta) -> Option<&str> {
    let rank = |entry: &&ManagedFieldsEntry| {
        let is_person = is_person(entry);
        let has_content = has_content(entry);
        let at = entry.time.as_ref().map(|time| time.0);
        (!(has_content && is_person), !has_content, at)
    };
    let first = entries(metadata)
        .filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty())
        .min_by_key(rank)?;
    first.manager.as_deref()
}

/// Those that deliver from Git.
const DELIVERERS: [&str; 3] = [
    "kustomize-controller",
    "helm-controller",
    "resource-set-controller",
];

/// The controllers that have set something in an object which others have made: autoscalers, injectors.
pub fn bystanders(metadata: &ObjectMeta) -> HashSet<String> {
    let maker = made_by(metadata);
    let names = entries(metadata).filter_map(|entry| entry.manager.as_deref());
    let is_bystander = |name: &&str| {
        let program = Program::from_manager(name);
        let is_program = matches!(program, Program::Controller | Program::Kubernetes);
        is_program && Some(*name) != maker && !DELIVERERS.contains(name)
    };
    names.filter(is_bystander).map(str::to_owned).collect()
}

/// What a manager has set in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The field manager.
    pub manager: String,
    /// When it wrote last.
    pub at: Option<Timestamp>,
    /// Paths of its fields: `.spec.replicas`, `.spec.template.spec.containers[name=app].image`.
    pub paths: Vec<String>,
}

/// What each manager has set, but for the status.
pub fn writes(metadata: &ObjectMeta) -> impl Iterator<Item = Write> {
    let of_object = entries(metadata).filter(|entry| entry.subresource.as_deref() != Some("status"));
    of_object.map(|entry| {
        let mut paths = Vec::new();
        if let Some(fields) = &entry.fields_v1 {
            leaves(&fields.0, &mut String::new(), &mut paths);
        }
        Write {
            manager: entry.manager.clone().unwrap_or_default(),
            at: entry.time.as_ref().map(|time| time.0),
            paths,
        }
    })
}

fn entries(metadata: &ObjectMeta) -> impl Iterator<Item = &ManagedFieldsEntry> {
    metadata.managed_fields.as_deref().unwrap_or_default().iter()
}

fn is_person(entry: &ManagedFieldsEntry) -> bool {
    let manager = entry.manager.as_deref().unwrap_or_default();
    Program::from_manager(manager) == Program::Person
}

/// Returns whether a manager has set more than metadata.
fn has_content(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref().and_then(|fields| fields.0.as_object());
    let is_content = |key: &String| !matches!(key.as_str(), "f:metadata" | "f:status");
    fields.is_some_and(|fields| fields.keys().any(is_content))
}

/// Writes the paths of a set of fields, the deepest ones only.
fn leaves(fields: &Value, path: &mut String, into: &mut Vec<String>) {
    let all = fields.as_object().into_iter().flatten();
    let mut is_leaf = true;
    // `.` is the field itself: a manager of an element also has its list.
    for (key, below) in all.filter(|(key, _)| *key != ".") {
        is_leaf = false;
        let length = path.len();
        path.push_str(&step(key));
        leaves(below, path, into);
        path.truncate(length);
    }
    if is_leaf && !path.is_empty() {
        into.push(path.clone());
    }
}

/// A step of a path, as people write it: `f:spec` is `.spec`, `k:{"name":"app"}` is `[name=app]`.
fn step(key: &str) -> String {
    match key.split_once(':') {
        Some(("f", name)) if name.contains(['.', '/']) => format!("[{name:?}]"),
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let parsed: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let written = parsed.iter().map(|(key, value)| match value {
                Value::String(value) => format!("{key}={value}"),
                value => format!("{key}={value}"),
            });
            format!("[{}]", written.collect::<Vec<_>>().join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!("[{key}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(entries: Value) -> ObjectMeta {
        serde_json::from_value(json!({"managedFields": entries})).expect("metadata")
    }

    #[test]
    fn whoever_set_the_content_made_the_object() {
        let of = |entries: Value| made_by(&metadata(entries)).map(str::to_owned);
        let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields});
        let labels = json!({"f:metadata": {"f:labels": {}}});
        let spec = json!({"f:spec": {"f:replicas": {}}});
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
        assert_eq!(of(json!([])), None);
        let labelled = json!([
            entry("labeler", early, labels.clone()),
            entry("some-operator", late, spec.clone()),
        ]);
        assert_eq!(of(labelled).as_deref(), Some("some-operator"));
        let edited = json!([
            entry("some-operator", early, spec.clone()),
            entry("kubectl-edit", late, spec.clone()),
        ]);
        assert_eq!(of(edited).as_deref(), Some("kubectl-edit"));
        let mut scaled = entry("kubectl", early, spec.clone());
        scaled["subresource"] = "scale".into();
        let scaled = json!([scaled, entry("some-operator", late, spec)]);
        assert_eq!(of(scaled).as_deref(), Some("some-operator"));
    }

    #[test]
    fn whoever_made_or_delivers_an_object_is_no_bystander() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields});
        let spec = json!({"f:spec": {}});
        let of = |entries: Value| bystanders(&metadata(entries));
        let scaled = json!([
            entry("kubectl", spec.clone()),
            entry("kube-controller-manager", spec.clone())
        ]);
        assert_eq!(of(scaled), HashSet::from(["kube-controller-manager".to_owned()]));
        let labelled = json!([
            entry("kubectl-label", json!({"f:metadata": {}})),
            entry("vault-operator", spec.clone())
        ]);
        assert!(of(labelled).is_empty());
        let edited = json!([
            entry("kubectl-edit", spec.clone()),
            entry("kustomize-controller", spec)
        ]);
        assert!(of(edited).is_empty());
    }

    #[test]
    fn fields_are_named_by_their_paths() {
        let fields = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:example.com/why": {}}, "f:finalizers": {"v:\"keep\"": {}}},
            "f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"app\",\"port\":80}": {".": {}, "f:image": {}}}},
        });
        let entry = |manager: &str, subresource: &str| {
            json!({"manager": manager, "operation": "Update", "subresource": subresource, "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        let all = json!([
            entry("kubectl", ""),
            entry("kubectl", "status"),
            entry("kustomize-controller", "")
        ]);
        let found: Vec<Write> = writes(&metadata(all)).collect();
        let managers: Vec<_> = found.iter().map(|write| write.manager.as_str()).collect();
        assert_eq!(managers, ["kubectl", "kustomize-controller"]);
        let expected = [
            ".metadata.annotations[\"example.com/why\"]",
            ".metadata.finalizers[=\"keep\"]",
            ".spec.containers[name=app,port=80].image",
            ".spec.replicas",
        ];
        assert_eq!(found[0].paths, expected);
        assert!(found[0].at.is_some());
    }

    #[test]
    fn names_of_managers_tell_what_they_are() {
        let kinds = [
            ("kubectl-client-side-apply", Program::Person),
            ("k9s", Program::Person),
            ("helm", Program::Tool),
            ("argocd-controller", Program::Tool),
            ("kube-controller-manager", Program::Kubernetes),
            ("cert-manager-certificates-issuing", Program::Unknown),
            ("prometheus-operator", Program::Controller),
        ];
        for (name, expected) in kinds {
            assert_eq!(Program::from_manager(name), expected, "{name}");
        }
    }
}
