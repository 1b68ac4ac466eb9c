//! Objects of the built-in kinds, and of some that are not.

mod policy;
mod storage;
mod workload;

use serde_json::{Value, json};

use super::word;
use crate::random::Random;

type Make = fn(&mut Random) -> Value;

const KINDS: &[Make] = &[
    workload::deployment,
    workload::deployment,
    workload::stateful_set,
    workload::daemon_set,
    workload::pod,
    workload::job,
    workload::cron_job,
    workload::replica_set,
    workload::autoscaler,
    workload::disruption_budget,
    storage::config_map,
    storage::config_map,
    storage::secret,
    storage::claim,
    storage::volume,
    storage::storage_class,
    policy::service,
    policy::service,
    policy::ingress,
    policy::service_account,
    policy::role,
    policy::role_binding,
    policy::cluster_role,
    policy::cluster_role_binding,
    policy::network_policy,
    policy::webhook,
    policy::api_service,
    namespace,
    definition,
    custom,
    custom,
    certificate,
];

/// Makes an object of any kind.
pub fn any(random: &mut Random) -> Value {
    let make = KINDS[random.below(KINDS.len())];
    make(random)
}

/// Makes the part that all objects have.
fn object(random: &mut Random, api_version: &str, kind: &str) -> Value {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": word::name(random)}});
    let metadata = &mut object["metadata"];
    if random.chance(30) {
        metadata["namespace"] = json!(word::namespace(random));
    }
    if random.chance(30) {
        metadata["labels"] = word::labels(random);
    }
    if random.chance(20) {
        metadata["annotations"] = word::pairs(random, 0, 2);
    }
    if random.chance(3) {
        metadata["annotations"] = annotation(random);
    }
    if random.chance(2) {
        metadata["creationTimestamp"] = Value::Null;
    }
    if random.chance(1) {
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": word::name(random), "uid": "1"}]);
    }
    object
}

fn annotation(random: &mut Random) -> Value {
    let key = random.pick(&[
        "config.kubernetes.io/local-config",
        "kustomize.config.k8s.io/needs-hash",
        "kustomize.config.k8s.io/behavior",
        "internal.config.kubernetes.io/index",
        "config.kubernetes.io/path",
    ]);
    let value = random.pick(&[
        "true",
        "false",
        "merge",
        "enabled",
        "disabled",
        "1",
        "path: x\n",
        "- a\n",
    ]);
    json!({key: value})
}

fn namespace(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "Namespace");
    object["metadata"]["name"] = json!(word::namespace(random));
    object
}

fn definition(random: &mut Random) -> Value {
    let mut object = object(random, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
    object["metadata"]["name"] = json!("widgets.example.com");
    object["spec"] = json!({
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": random.pick(&["Namespaced", "Cluster"]),
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    });
    if random.chance(50) {
        object["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"service": {"name": word::name(random), "namespace": word::namespace(random), "path": "/c"}}}});
    }
    object
}

fn custom(random: &mut Random) -> Value {
    let kind = random.pick(&["Widget", "Gadget"]);
    let mut object = object(random, "example.com/v1", kind);
    object["spec"] = json!({
        "image": word::image(random),
        "text": word::scalar(random),
        "configMap": {"name": word::name(random)},
        "secretName": word::name(random),
        "replicas": word::scalar(random),
        "list": random.several(0, 3, word::scalar),
        "selector": {"matchLabels": word::labels(random)},
        "items": random.several(0, 2, |random| json!({"name": word::name(random), "value": word::scalar(random)})),
        "empty": {},
        "none": [],
    });
    object
}

fn certificate(random: &mut Random) -> Value {
    let kind = random.pick(&["Certificate", "Issuer"]);
    let mut object = object(random, "cert-manager.io/v1", kind);
    object["spec"] = json!({"secretName": word::name(random), "issuerRef": {"name": word::name(random), "kind": "Issuer"}});
    object
}
