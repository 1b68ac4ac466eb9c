//! Who may exempt an object from a Freeze, by the policy of the chart and the real API server; and that the controllers of the chart
//! obey it.

use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::objects;

use super::cluster::{Cluster, NAMESPACE};
use super::decisions::client_of;

const TEAM: &str = "team";
const EXCEPTION: &str = "windlass.dev/freeze-exception";
const PATIENCE: Duration = Duration::from_secs(240);

fn kustomizations(client: Client) -> Api<DynamicObject> {
    objects::api(&client, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", TEAM)
}

async fn exempt(api: &Api<DynamicObject>, value: Value) -> Result<(), String> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {EXCEPTION: value}}}));
    let patched = api.patch("app", &PatchParams::default(), &patch).await;
    patched.map(drop).map_err(|error| error.to_string())
}

fn binding(name: &str, namespace: &str, role: (&str, &str), people: &[&str]) -> Value {
    let subjects: Vec<Value> = people
        .iter()
        .map(|name| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace}, "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
    })
}

#[tokio::test]
async fn exceptions_need_the_verb_bypass_on_the_freeze() {
    let cluster = Cluster::start().await;
    cluster.install(&[]).await.unwrap();
    let client = &cluster.client;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "on-call", "namespace": NAMESPACE},
            "rules": [{"apiGroups": ["delivery.windlass.dev"], "resources": ["freezes"],
                "resourceNames": ["friday"], "verbs": ["bypass"]}],
        }),
        binding("edit", TEAM, ("ClusterRole", "edit"), &["ana", "otto"]),
        binding("on-call", NAMESPACE, ("Role", "on-call"), &["otto"]),
        objects::kustomization(TEAM, "app", ("GitRepository", "none"), "./"),
        json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Freeze",
            "metadata": {"name": "friday", "namespace": NAMESPACE},
            "spec": {"reason": "it is Friday", "namespaces": [TEAM]},
        }),
    ] {
        objects::apply(client, &object).await.unwrap();
    }
    let [ana, otto] = [
        client_of(&cluster, "ana").await,
        client_of(&cluster, "otto").await,
    ]
    .map(kustomizations);
    // The policy is in force a moment after it is made.
    let in_force = async {
        let mut number = 0;
        while exempt(&ana, json!(format!("team/f{number}"))).await.is_ok() {
            number += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, in_force).await.unwrap();
    exempt(&ana, Value::Null).await.unwrap();

    let friday = format!("{NAMESPACE}/friday");
    let refused = exempt(&ana, json!(friday)).await.unwrap_err();
    assert!(
        refused.contains("only users with the verb 'bypass' on a Freeze"),
        "{refused}"
    );
    exempt(&otto, json!(friday)).await.unwrap();
    // Each that is added counts; what is there may stay, and go.
    for (api, value) in [
        (&ana, format!("{friday},{NAMESPACE}/other")),
        (&otto, format!("{friday},{NAMESPACE}/other")),
        (&otto, "friday".to_owned()),
        (&otto, format!("{friday}/x")),
        (&otto, [friday.as_str(); 2].join(";")),
        (
            &ana,
            (0..11)
                .map(|number| format!("team/f{number}"))
                .collect::<Vec<_>>()
                .join(","),
        ),
    ] {
        assert!(exempt(api, json!(value)).await.is_err(), "{value}");
    }
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    ana.patch("app", &PatchParams::default(), &label).await.unwrap();
    exempt(&ana, json!(format!(" {friday} "))).await.unwrap();
    exempt(&ana, Value::Null).await.unwrap();
    assert!(exempt(&ana, json!(friday)).await.is_err());
    // An object that is made with it is no way around.
    let mut made = objects::kustomization(TEAM, "made", ("GitRepository", "none"), "./");
    made["metadata"]["annotations"] = json!({EXCEPTION: friday});
    let made: DynamicObject = serde_json::from_value(made).unwrap();
    assert!(
        ana.create(&kube::api::PostParams::default(), &made)
            .await
            .is_err()
    );
    // Windows and times that contradict each other are refused where they are written.
    let spec =
        json!({"open": [{"from": "08:00", "to": "09:00"}], "closed": [{"from": "08:00", "to": "09:00"}]});
    let times = json!({"from": "2026-11-30T08:00:00+01:00", "until": "2026-11-30T06:59:00Z"});
    for wrong in [spec, times] {
        let mut object = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Freeze",
            "metadata": {"name": "wrong", "namespace": TEAM}, "spec": {"reason": "no"},
        });
        object["spec"]
            .as_object_mut()
            .unwrap()
            .extend(wrong.as_object().unwrap().clone());
        assert!(objects::apply(client, &object).await.is_err(), "{object}");
    }
}
