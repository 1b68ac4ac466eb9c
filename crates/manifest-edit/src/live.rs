//! The manifest of an object that is in a cluster, as a person would have written it: without what the API server fills in, and without
//! what controllers have set.

mod defaults;

use serde_json::{Map, Value, json};

/// Annotations and labels by these prefixes are written by programs.
const OF_PROGRAMS: [&str; 12] = [
    "autoscaling.alpha.kubernetes.io/",
    "argocd.argoproj.io/",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "field.cattle.io/",
    "kubectl.kubernetes.io/",
    "meta.helm.sh/",
    "objectset.rio.cattle.io/",
    "pv.kubernetes.io/",
    "reconcile.fluxcd.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
];

/// Metadata that a copy of an object must not have: of tools, of what applied it, of an earlier request.
pub fn is_of_program(key: &str) -> bool {
    let of_flux = ["kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name"];
    OF_PROGRAMS
        .iter()
        .chain(&of_flux)
        .any(|prefix| key.starts_with(prefix))
}

/// Writes the manifest of an object. `is_bystander` says of a field manager whether it only adds to what others have made: its fields are
/// left out unless another manager has set them as well.
pub fn manifest(live: &Value, is_bystander: impl Fn(&str) -> bool) -> Value {
    let mut object = live.clone();
    drop_fields_of_bystanders(&mut object, is_bystander);
    let mut all: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    all.remove("status");
    all.insert("metadata".to_owned(), metadata(&object["metadata"]));
    let mut object = Value::Object(all);
    defaults::drop(&mut object);
    object
}

/// Name, namespace, and those labels and annotations that are not of programs.
pub fn metadata(metadata: &Value) -> Value {
    let mut kept = json!({"name": metadata["name"]});
    for key in ["namespace", "labels", "annotations"] {
        let mut value = metadata[key].clone();
        if let Some(entries) = value.as_object_mut() {
            entries.retain(|key, value| {
                let is_of_helm = key == "app.kubernetes.io/managed-by" && value == "Helm";
                !is_of_program(key) && !is_of_helm && key != "kubernetes.io/metadata.name"
            });
        }
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            kept[key] = value;
        }
    }
    kept
}

/// Removes the replicas that an autoscaler chose, the certificate that something injected.
fn drop_fields_of_bystanders(object: &mut Value, is_bystander: impl Fn(&str) -> bool) {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let (mut theirs, mut kept) = (json!({}), json!({}));
    for entry in entries.into_iter().flatten() {
        let manager = entry["manager"].as_str().unwrap_or_default();
        match is_bystander(manager) {
            true => join(&mut theirs, &entry["fieldsV1"]),
            false => join(&mut kept, &entry["fieldsV1"]),
        }
    }
    // Without an owner, it is unknown what people have set.
    if kept.as_object().is_some_and(|kept| !kept.is_empty()) {
        remove(object, &theirs, &kept);
    }
}

/// Adds one set of fields to another.
fn join(into: &mut Value, more: &Value) {
    for (key, below) in more.as_object().into_iter().flatten() {
        if into[key].is_null() {
            into[key] = json!({});
        }
        join(&mut into[key], below);
    }
}

/// Removes the fields that are in the first set and not in the second.
fn remove(value: &mut Value, theirs: &Value, kept: &Value) {
    for (key, below) in theirs.as_object().into_iter().flatten() {
        let is_kept = kept.get(key);
        match (key.split_once(':'), value.is_object()) {
            (Some(("f", name)), true) => match is_kept {
                Some(kept) => {
                    if let Some(field) = value.get_mut(name) {
                        remove(field, below, kept);
                    }
                }
                None => _ = value.as_object_mut().and_then(|fields| fields.remove(name)),
            },
            (Some(("k", keys)), false) => {
                let Ok(keys) = serde_json::from_str::<Map<String, Value>>(keys) else {
                    continue;
                };
                let is_meant = |item: &Value| keys.iter().all(|(key, value)| item[key] == *value);
                let Some(items) = value.as_array_mut() else {
                    continue;
                };
                match is_kept {
                    Some(kept) => {
                        let meant = items.iter_mut().filter(|item| is_meant(item));
                        meant.for_each(|item| remove(item, below, kept));
                    }
                    None => items.retain(|item| !is_meant(item)),
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_bystander(manager: &str) -> bool {
        manager.ends_with("-manager")
    }

    #[test]
    fn what_the_server_fills_in_is_left_out() {
        let live = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": "web", "app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"deployment.kubernetes.io/revision": "3", "meta.helm.sh/release-name": "web",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {
                "progressDeadlineSeconds": 600, "replicas": 2, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {
                    "metadata": {"creationTimestamp": null, "labels": {"app": "web"},
                        "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-02T00:00:00Z"}},
                    "spec": {
                        "containers": [{
                            "name": "web", "image": "example.com/web:1", "imagePullPolicy": "IfNotPresent",
                            "ports": [{"containerPort": 80, "protocol": "TCP"}],
                            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}],
                            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "failureThreshold": 3,
                                "periodSeconds": 5, "successThreshold": 1, "timeoutSeconds": 1},
                            "resources": {}, "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }],
                        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                        "securityContext": {}, "terminationGracePeriodSeconds": 30,
                        "serviceAccount": "web", "serviceAccountName": "web",
                        "volumes": [{"name": "c", "configMap": {"name": "c", "defaultMode": 420}}],
                    },
                },
            },
            "status": {"replicas": 2},
        });
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "containers": [{
                            "name": "web", "image": "example.com/web:1",
                            "ports": [{"containerPort": 80}],
                            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
                        }],
                        "serviceAccountName": "web",
                        "volumes": [{"name": "c", "configMap": {"name": "c"}}],
                    },
                },
            },
        });
        assert_eq!(manifest(&live, is_bystander), expected);
    }

    #[test]
    fn what_differs_from_the_default_stays() {
        let live = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"dnsPolicy": "Default", "securityContext": {"runAsNonRoot": true}, "serviceAccountName": "default",
                "containers": [{"name": "a", "image": "a:latest", "imagePullPolicy": "IfNotPresent", "args": []}]},
        });
        let spec = &manifest(&live, is_bystander)["spec"];
        assert_eq!(spec["dnsPolicy"], "Default");
        assert_eq!(spec["securityContext"], json!({"runAsNonRoot": true}));
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
        assert_eq!(spec["containers"][0]["args"], json!([]));
        assert_eq!(spec["serviceAccountName"], Value::Null);
    }

    #[test]
    fn addresses_and_volumes_of_this_cluster_are_left_out() {
        let service = |spec: Value| {
            let live =
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
            manifest(&live, is_bystander)["spec"].clone()
        };
        let given = json!({
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}, {"port": 81,
            "protocol": "TCP", "targetPort": "http"}], "selector": {"app": "a"}, "sessionAffinity": "None", "type": "ClusterIP",
        });
        let expected =
            json!({"ports": [{"port": 80}, {"port": 81, "targetPort": "http"}], "selector": {"app": "a"}});
        assert_eq!(service(given), expected);
        let headless = json!({"clusterIP": "None", "clusterIPs": ["None"], "selector": {"app": "a"}});
        assert_eq!(
            service(headless),
            json!({"clusterIP": "None", "selector": {"app": "a"}})
        );
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a", "annotations":
                {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "pvc-1", "volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"]},
        });
        let expected = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"]}});
        assert_eq!(manifest(&claim, is_bystander), expected);
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "labels": {"job-name": "a", "own": "b",
                "batch.kubernetes.io/controller-uid": "u"}},
            "spec": {"selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "backoffLimit": 6,
                "template": {"metadata": {"labels": {"controller-uid": "u", "own": "b"}}, "spec": {"restartPolicy": "Never"}}},
        });
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "labels": {"own": "b"}},
            "spec": {"template": {"metadata": {"labels": {"own": "b"}}, "spec": {"restartPolicy": "Never"}}},
        });
        assert_eq!(manifest(&job, is_bystander), expected);
    }

    #[test]
    fn fields_that_only_bystanders_have_set_are_left_out() {
        let managed = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields});
        let list = json!({"f:list": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}}, "k:{\"name\":\"a\"}": {"f:set": {}}}});
        let live = json!({
            "apiVersion": "example.com/v1", "kind": "Any",
            "metadata": {"name": "a", "managedFields": [
                managed("kubectl", json!({"f:spec": {"f:own": {}, "f:both": {}, "f:list": {"k:{\"name\":\"a\"}": {"f:name": {}}}}})),
                managed("cluster-manager", json!({"f:spec": {"f:replicas": {}, "f:both": {}, "f:list": list["f:list"]}})),
            ]},
            "spec": {"own": 1, "both": 2, "replicas": 7, "list": [{"name": "a", "set": 1}, {"name": "b"}], "unowned": 3},
        });
        let spec = json!({"own": 1, "both": 2, "list": [{"name": "a"}], "unowned": 3});
        assert_eq!(manifest(&live, is_bystander)["spec"], spec);
    }
}
