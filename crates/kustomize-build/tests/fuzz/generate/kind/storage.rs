//! Kinds that hold data.

use serde_json::{Value, json};

use super::object;
use crate::generate::word;
use crate::random::Random;

pub fn config_map(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "ConfigMap");
    if random.chance(90) {
        object["data"] = match random.chance(85) {
            true => word::pairs(random, 0, 3),
            false => json!({word::key(random): word::scalar(random)}),
        };
    }
    if random.chance(5) {
        object["binaryData"] = json!({"b": "AAECAw=="});
    }
    if random.chance(5) {
        object["immutable"] = json!(true);
    }
    object
}

pub fn secret(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "Secret");
    if random.chance(50) {
        object["type"] = json!(random.pick(&[
            "Opaque",
            "kubernetes.io/tls",
            "kubernetes.io/service-account-token"
        ]));
    }
    match random.chance(50) {
        true => object["data"] = json!({word::key(random): "eA=="}),
        false => object["stringData"] = word::pairs(random, 0, 2),
    }
    object
}

pub fn claim(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "PersistentVolumeClaim");
    object["spec"] = claim_spec(random);
    object
}

pub fn claim_template(random: &mut Random) -> Value {
    json!({"metadata": {"name": "data"}, "spec": claim_spec(random)})
}

fn claim_spec(random: &mut Random) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    if random.chance(50) {
        spec["storageClassName"] = json!(word::name(random));
    }
    if random.chance(30) {
        spec["volumeName"] = json!(word::name(random));
    }
    if random.chance(20) {
        spec["selector"] = json!({"matchLabels": word::labels(random)});
    }
    spec
}

pub fn volume(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "PersistentVolume");
    object["spec"] = json!({"capacity": {"storage": "1Gi"}, "storageClassName": word::name(random)});
    if random.chance(50) {
        object["spec"]["claimRef"] =
            json!({"name": word::name(random), "namespace": word::namespace(random)});
    }
    if random.chance(30) {
        object["spec"]["csi"] = json!({"driver": "x", "volumeHandle": "h",
            "nodeStageSecretRef": {"name": word::name(random), "namespace": word::namespace(random)}});
    }
    object
}

pub fn storage_class(random: &mut Random) -> Value {
    let mut object = object(random, "storage.k8s.io/v1", "StorageClass");
    object["provisioner"] = json!("example.com/x");
    object["parameters"] = word::pairs(random, 0, 2);
    object
}
