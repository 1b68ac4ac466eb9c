//! Kinds that route to pods and that allow or forbid.

use serde_json::{Value, json};

use super::object;
use crate::generate::word;
use crate::random::Random;

pub fn service(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "Service");
    object["spec"] = json!({"ports": [{"port": 80, "targetPort": word::scalar(random)}]});
    if random.chance(70) {
        object["spec"]["selector"] = word::labels(random);
    }
    object
}

pub fn ingress(random: &mut Random) -> Value {
    if random.chance(30) {
        let mut object = object(random, "extensions/v1beta1", "Ingress");
        object["spec"] = json!({"rules": [{"http": {"paths": [
            {"path": "/", "backend": {"serviceName": word::name(random), "servicePort": 80}}]}}]});
        return object;
    }
    let mut object = object(random, "networking.k8s.io/v1", "Ingress");
    let backend = json!({"service": {"name": word::name(random), "port": {"number": 80}}});
    object["spec"] = json!({
        "ingressClassName": word::name(random),
        "rules": [{"host": "$(APP).example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
        "tls": [{"hosts": ["a.example"], "secretName": word::name(random)}],
    });
    if random.chance(30) {
        object["metadata"]["annotations"] = json!({
            "nginx.ingress.kubernetes.io/auth-secret": format!("{}/{}", word::namespace(random), word::name(random))});
    }
    object
}

pub fn service_account(random: &mut Random) -> Value {
    let mut object = object(random, "v1", "ServiceAccount");
    if random.chance(20) {
        object["metadata"]["name"] = json!("default");
    }
    if random.chance(50) {
        object["imagePullSecrets"] = json!([{"name": word::name(random)}]);
        object["secrets"] = json!([{"name": word::name(random)}]);
    }
    object
}

fn rules(random: &mut Random) -> Value {
    let mut rule = json!({"apiGroups": [""], "resources": [random.pick(&["configmaps", "secrets", "pods"])], "verbs": ["get"]});
    if random.chance(60) {
        rule["resourceNames"] = json!(random.several(0, 2, word::name));
    }
    json!([rule])
}

pub fn role(random: &mut Random) -> Value {
    let mut object = object(random, "rbac.authorization.k8s.io/v1", "Role");
    object["rules"] = rules(random);
    object
}

pub fn cluster_role(random: &mut Random) -> Value {
    let mut object = object(random, "rbac.authorization.k8s.io/v1", "ClusterRole");
    object["rules"] = rules(random);
    if random.chance(20) {
        object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": word::labels(random)}]});
    }
    object
}

fn subjects(random: &mut Random) -> Value {
    json!(random.several(0, 2, |random| {
        let mut subject = json!({
            "kind": random.pick(&["ServiceAccount", "ServiceAccount", "User", "Group"]),
            "name": random.pick(&["default", "app", "web", "a"]),
        });
        if random.chance(60) {
            subject["namespace"] = json!(word::namespace(random));
        }
        subject
    }))
}

pub fn role_binding(random: &mut Random) -> Value {
    let mut object = object(random, "rbac.authorization.k8s.io/v1", "RoleBinding");
    let kind = random.pick(&["Role", "ClusterRole"]);
    object["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": word::name(random)});
    object["subjects"] = subjects(random);
    object
}

pub fn cluster_role_binding(random: &mut Random) -> Value {
    let mut object = object(random, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
    object["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": word::name(random)});
    object["subjects"] = subjects(random);
    object
}

pub fn network_policy(random: &mut Random) -> Value {
    let mut object = object(random, "networking.k8s.io/v1", "NetworkPolicy");
    object["spec"] = json!({
        "podSelector": {"matchLabels": word::labels(random)},
        "ingress": [{"from": [{"podSelector": {"matchLabels": word::labels(random)}},
            {"namespaceSelector": {"matchLabels": word::labels(random)}}]}],
    });
    if random.chance(20) {
        object["spec"]["podSelector"] = json!({});
    }
    object
}

pub fn webhook(random: &mut Random) -> Value {
    let kind = random.pick(&["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]);
    let mut object = object(random, "admissionregistration.k8s.io/v1", kind);
    object["webhooks"] = json!([{"name": "a.example.com", "clientConfig": {
        "service": {"name": word::name(random), "namespace": word::namespace(random), "path": "/x"}}}]);
    object
}

pub fn api_service(random: &mut Random) -> Value {
    let mut object = object(random, "apiregistration.k8s.io/v1", "APIService");
    object["metadata"]["name"] = json!("v1.example.com");
    object["spec"] = json!({"group": "example.com", "version": "v1",
        "service": {"name": word::name(random), "namespace": word::namespace(random)}});
    object
}
