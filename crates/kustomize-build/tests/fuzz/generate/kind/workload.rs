//! Kinds that run pods, and those that scale and guard them.

use serde_json::{Value, json};

use super::object;
use crate::generate::word;
use crate::random::Random;

pub fn deployment(random: &mut Random) -> Value {
    let version = random.pick(&[
        "apps/v1",
        "apps/v1",
        "apps/v1",
        "extensions/v1beta1",
        "apps/v1beta2",
    ]);
    let mut object = object(random, version, "Deployment");
    object["spec"] = controller(random);
    if random.chance(60) {
        object["spec"]["replicas"] = json!(random.below(5));
    }
    object
}

pub fn replica_set(random: &mut Random) -> Value {
    let mut object = match random.chance(50) {
        true => object(random, "apps/v1", "ReplicaSet"),
        false => object(random, "v1", "ReplicationController"),
    };
    object["spec"] = controller(random);
    object
}

pub fn stateful_set(random: &mut Random) -> Value {
    let mut object = object(random, "apps/v1", "StatefulSet");
    object["spec"] = controller(random);
    object["spec"]["serviceName"] = json!(word::name(random));
    if random.chance(50) {
        let mut claim = super::storage::claim_template(random);
        if random.chance(40) {
            claim["metadata"]["labels"] = word::labels(random);
        }
        object["spec"]["volumeClaimTemplates"] = json!([claim]);
    }
    object
}

pub fn daemon_set(random: &mut Random) -> Value {
    let mut object = object(random, "apps/v1", "DaemonSet");
    object["spec"] = controller(random);
    object
}

pub fn pod(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "Pod");
    object["spec"] = pod_spec(random);
    object
}

pub fn job(random: &mut Random) -> Value {
    let mut object = object(random, "batch/v1", "Job");
    object["spec"] = json!({"template": template(random)});
    if random.chance(20) {
        object["spec"]["selector"] = json!({"matchLabels": word::labels(random)});
    }
    object
}

pub fn cron_job(random: &mut Random) -> Value {
    let version = random.pick(&["batch/v1", "batch/v1beta1"]);
    let mut object = object(random, version, "CronJob");
    object["spec"] =
        json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template(random)}}});
    if random.chance(30) {
        object["spec"]["jobTemplate"]["metadata"] = json!({"labels": word::labels(random)});
    }
    object
}

pub fn autoscaler(random: &mut Random) -> Value {
    let version = random.pick(&["autoscaling/v2", "autoscaling/v1", "autoscaling/v2beta2"]);
    let mut object = object(random, version, "HorizontalPodAutoscaler");
    let kind = random.pick(&["Deployment", "StatefulSet", "ReplicaSet", "Widget"]);
    object["spec"] = json!({
        "scaleTargetRef": {"apiVersion": random.pick(&["apps/v1", "example.com/v1"]), "kind": kind, "name": word::name(random)},
        "maxReplicas": 3,
    });
    if random.chance(30) {
        object["spec"]["metrics"] = json!([{"type": "Object", "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": word::name(random)}, "metric": {"name": "x"}}}]);
    }
    object
}

pub fn disruption_budget(random: &mut Random) -> Value {
    let mut object = object(random, "policy/v1", "PodDisruptionBudget");
    object["spec"] = json!({"minAvailable": word::scalar(random)});
    if random.chance(80) {
        object["spec"]["selector"] = json!({"matchLabels": word::labels(random)});
    }
    object
}

fn controller(random: &mut Random) -> Value {
    let mut spec = json!({"template": template(random)});
    if random.chance(70) {
        spec["selector"] = json!({"matchLabels": word::labels(random)});
    }
    if random.chance(10) {
        spec["strategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": word::scalar(random)}});
    }
    spec
}

fn template(random: &mut Random) -> Value {
    let mut template = json!({"spec": pod_spec(random)});
    if random.chance(70) {
        template["metadata"] = json!({"labels": word::labels(random)});
    }
    template
}

fn pod_spec(random: &mut Random) -> Value {
    let mut spec = json!({"containers": random.several(1, 2, container)});
    if random.chance(20) {
        spec["initContainers"] = json!([container(random)]);
    }
    if random.chance(20) {
        spec["serviceAccountName"] = json!(word::name(random));
    }
    if random.chance(10) {
        spec["imagePullSecrets"] = json!([{"name": word::name(random)}]);
    }
    if random.chance(40) {
        spec["volumes"] = json!(random.several(1, 2, volume));
    }
    if random.chance(15) {
        let selector = json!({"labelSelector": {"matchLabels": word::labels(random)}, "topologyKey": "zone"});
        spec["affinity"] = match random.chance(50) {
            true => json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}),
            false => json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": selector}]}}),
        };
    }
    if random.chance(10) {
        spec["topologySpreadConstraints"] = json!([
            {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": word::labels(random)}}]);
    }
    if random.chance(5) {
        spec["priorityClassName"] = json!(word::name(random));
    }
    spec
}

fn container(random: &mut Random) -> Value {
    let mut container = json!({"name": word::name(random), "image": word::image(random)});
    if random.chance(40) {
        container["env"] = json!(random.several(1, 3, variable));
    }
    if random.chance(20) {
        let source = random.pick(&["configMapRef", "secretRef"]);
        container["envFrom"] = json!([{source: {"name": word::name(random)}}]);
    }
    if random.chance(20) {
        container["args"] = json!(random.several(0, 2, |random| json!(random.pick(&[
            "--app=$(APP)",
            "$(APP)",
            "--x",
            "$(A)/$(APP)"
        ]))));
    }
    if random.chance(20) {
        container["ports"] = json!([{"containerPort": 80, "name": "http"}]);
    }
    if random.chance(5) {
        container["command"] = word::scalar(random);
    }
    container
}

fn variable(random: &mut Random) -> Value {
    let name = random.pick(&["APP", "A", "B"]);
    match random.below(4) {
        0 => {
            json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": word::name(random), "key": word::key(random)}}})
        }
        1 => {
            json!({"name": name, "valueFrom": {"secretKeyRef": {"name": word::name(random), "key": word::key(random)}}})
        }
        2 => json!({"name": name, "value": "$(APP)"}),
        _ => json!({"name": name, "value": word::scalar(random)}),
    }
}

fn volume(random: &mut Random) -> Value {
    let mut volume = json!({"name": random.pick(&["data", "config"])});
    let name = word::name(random);
    match random.below(6) {
        0 => volume["configMap"] = json!({"name": name}),
        1 => volume["secret"] = json!({"secretName": name}),
        2 => volume["persistentVolumeClaim"] = json!({"claimName": name}),
        3 => {
            volume["projected"] =
                json!({"sources": [{"configMap": {"name": name}}, {"secret": {"name": word::name(random)}}]});
        }
        4 => volume["csi"] = json!({"driver": "x", "nodePublishSecretRef": {"name": name}}),
        _ => volume["emptyDir"] = json!({}),
    }
    volume
}
