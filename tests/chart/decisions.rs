//! Who may decide about pipelines, by the policy of the chart and the real API server.

use api::delivery::{ChangeRequest, Pipeline};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use testkit::objects;

use super::cluster::Cluster;

const TEAM: &str = "team";

/// The cluster as a person sees it.
async fn person(cluster: &Cluster, name: &str) -> Api<Pipeline> {
    Api::namespaced(client_of(cluster, name).await, TEAM)
}

pub async fn client_of(cluster: &Cluster, name: &str) -> Client {
    let path = cluster.control_plane.kubeconfig_path();
    let mut kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    for user in &mut kubeconfig.auth_infos {
        user.auth_info.get_or_insert_default().impersonate = Some(name.to_owned());
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

/// Lets people write pipelines, with a role of the cluster.
async fn bind(client: &Client, role: &str, people: &[&str]) {
    let subjects: Vec<Value> = people
        .iter()
        .map(|name| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}))
        .collect();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": TEAM}, "subjects": subjects,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    });
    objects::apply(client, &binding).await.unwrap();
}

async fn annotate(api: &Api<Pipeline>, name: &str, value: &str) -> Result<(), String> {
    let patch = json!({"metadata": {"annotations": {format!("delivery.windlass.dev/{name}"): value}}});
    let patched = api
        .patch("shop", &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.map(drop).map_err(|error| error.to_string())
}

fn approval(by: &str, digest: &str) -> String {
    json!({"environment": "production", "digest": digest, "by": by}).to_string()
}

fn for_group(by: &str, group: &str) -> String {
    json!({"environment": "production", "digest": "d1", "by": by, "group": group}).to_string()
}

#[tokio::test]
async fn decisions_need_their_verbs_and_approvals_ones_own_name() {
    let cluster = Cluster::start().await;
    cluster
        .install(&["--set", "pipelines.enabled=true"])
        .await
        .unwrap();
    let client = &cluster.client;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    let writer = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "writer"},
        "rules": [{"apiGroups": ["delivery.windlass.dev"], "resources": ["pipelines"], "verbs": ["get", "create", "patch"]}],
    });
    for object in [&namespace, &writer] {
        objects::apply(client, object).await.unwrap();
    }
    bind(client, "edit", &["ana", "ben", "be n", "corp\\dan"]).await;
    bind(client, "writer", &["eve"]).await;
    let pipeline = |name: &str, annotations: Value| -> Pipeline {
        let pipeline = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": name, "namespace": TEAM, "annotations": annotations},
            "spec": {"apps": [{"kind": "HelmRelease", "name": "shop"}], "environments": [{"name": "dev", "targets": [{}]}]},
        });
        serde_json::from_value(pipeline).unwrap()
    };
    let (ana, ben, eve) = (
        person(&cluster, "ana").await,
        person(&cluster, "ben").await,
        person(&cluster, "eve").await,
    );
    let parameters = PostParams::default();
    ana.create(&parameters, &pipeline("shop", json!({})))
        .await
        .unwrap();

    // The policy is in force a moment after it is made.
    let mine = format!("[{}]", approval("eve", "d1"));
    let in_force = async {
        let mut digests = 0..;
        while let Some(digest) = digests.next()
            && annotate(
                &eve,
                "approvals",
                &format!("[{}]", approval("eve", &format!("d{digest}"))),
            )
            .await
            .is_ok()
        {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let patience = std::time::Duration::from_secs(60);
    tokio::time::timeout(patience, in_force).await.unwrap();

    // Who may write a pipeline, and no more, decides nothing about it.
    for (annotation, verb) in [
        ("approvals", "approve"),
        ("holds", "hold"),
        ("promotions", "promote"),
    ] {
        let refused = annotate(&eve, annotation, "[]").await.unwrap_err();
        assert!(
            refused.contains(&format!("only users with the verb '{verb}' on pipelines")),
            "{refused}"
        );
    }
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": true}}));
    eve.patch("shop", &PatchParams::default(), &patch).await.unwrap();
    let with = json!({"delivery.windlass.dev/approvals": mine});
    assert!(eve.create(&parameters, &pipeline("other", with)).await.is_err());
    annotate(
        &ana,
        "holds",
        r#"[{"reason": "a {brace} and a \"quote\"", "by": "ana"}]"#,
    )
    .await
    .unwrap();

    // Approvals: one's own, beside those of others as they are.
    let dan = person(&cluster, "corp\\dan").await;
    let hers = approval("ana", "d1");
    annotate(&ana, "approvals", &format!("[{hers}]")).await.unwrap();
    let reordered = r#"{ "by" : "ana", "digest": "d1",  "environment": "production" }"#;
    let both = format!("[ {reordered} ,\n{}]", approval("ben", "d1"));
    annotate(&ben, "approvals", &both).await.unwrap();
    let his = approval("corp\\dan", "d1");
    annotate(&dan, "approvals", &format!("[{hers},{his}]"))
        .await
        .unwrap();
    let forged = [
        ("for another release", format!("[{}]", approval("ana", "d2"))),
        (
            "for another environment",
            format!("[{}]", hers.replace("production", "staging")),
        ),
        (
            "one more of the same name",
            format!("[{hers},{}]", approval("ana", "d2")),
        ),
        (
            "with an object in it",
            r#"[{"environment": "e", "digest": "d", "by": "ana", "x": {}}]"#.to_owned(),
        ),
        (
            "with an escaped key",
            r#"[{"environment": "e", "digest": "d", "b\u0079": "ana"}]"#.to_owned(),
        ),
        (
            "with a quote in a string",
            r#"[{"environment": "e", "digest": "d", "x\"by": "ben", "by": "ana"}]"#.to_owned(),
        ),
        ("beside the list", format!("[] {}", approval("ana", "d2"))),
        (
            "in nobody's name",
            r#"[{"environment": "e", "digest": "d"}]"#.to_owned(),
        ),
        ("no list", approval("ben", "d1")),
        ("for a group of others", format!("[{}]", for_group("ben", "leads"))),
        (
            "for a group of others, with spaces",
            r#"[{"environment": "e", "digest": "d", "by": "ben", "group"  :"leads"}]"#.to_owned(),
        ),
        (
            "for two groups",
            r#"[{"environment": "e", "digest": "d", "by": "ben", "group": "system:authenticated", "group": "leads"}]"#
                .to_owned(),
        ),
        (
            "for a group, in the name of another who approved for none",
            format!("[{},{}]", hers.replace('}', r#","group":"leads"}"#), approval("ben", "d1")),
        ),
    ];
    for (what, text) in forged {
        let refused = annotate(&ben, "approvals", &text).await;
        assert!(refused.is_err(), "{what} passes");
    }
    let refused = annotate(&dan, "approvals", &format!("[{}]", approval("dan", "d1"))).await;
    assert!(
        refused
            .unwrap_err()
            .contains("users may approve in their own name and for groups of their own only")
    );
    // A name that differs in a space alone is another's.
    let spaced = person(&cluster, "be n").await;
    let refused = annotate(&spaced, "approvals", &format!("[{}]", approval("ben", "d1"))).await;
    assert!(refused.is_err(), "a space passes");
    annotate(
        &ben,
        "approvals",
        &format!("[{}]", for_group("ben", "system:authenticated")),
    )
    .await
    .unwrap();
    // A long list of others' approvals stays affordable.
    let many: Vec<_> = (0..150)
        .map(|at| approval("ana", &format!("sha256:{at:064}")))
        .collect();
    annotate(&ana, "approvals", &format!("[{}]", many.join(",")))
        .await
        .unwrap();
    let more = format!("[{},{}]", many.join(","), approval("ben", "d1"));
    annotate(&ben, "approvals", &more).await.unwrap();
    annotate(&ben, "approvals", "").await.unwrap();
    let theirs = json!({"delivery.windlass.dev/approvals": format!("[{hers}]")});
    assert!(ben.create(&parameters, &pipeline("other", theirs)).await.is_err());
    only_ones_own_changes(&cluster).await;
}

/// Who may ask for a change asks in their own name.
async fn only_ones_own_changes(cluster: &Cluster) {
    let requests: Api<ChangeRequest> = Api::namespaced(client_of(cluster, "ben").await, TEAM);
    let request = |name: &str, by: Option<&str>| -> ChangeRequest {
        let mut request = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "ChangeRequest", "metadata": {"name": name},
            "spec": {
                "kustomizationRef": {"name": "apps"}, "changePolicyRef": {"name": "review"}, "title": "More",
                "files": [{"path": "a.yaml", "content": "kind: ConfigMap"}],
            },
        });
        if let Some(by) = by {
            request["spec"]["requestedBy"] = json!(by);
        }
        serde_json::from_value(request).unwrap()
    };
    let parameters = PostParams::default();
    let refused = requests
        .create(&parameters, &request("forged", Some("ana")))
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("users may ask for a change in their own name only"),
        "{refused}"
    );
    requests
        .create(&parameters, &request("own", Some("ben")))
        .await
        .unwrap();
    requests
        .create(&parameters, &request("no-name", None))
        .await
        .unwrap();
    // The spec stays as it was made, so the name in it does, too.
    let other = Patch::Merge(json!({"spec": {"requestedBy": "ana"}}));
    let refused = requests.patch("own", &PatchParams::default(), &other).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("spec cannot be changed")
    );
    // Who may write pipelines, and no more, asks for nothing.
    let requests: Api<ChangeRequest> = Api::namespaced(client_of(cluster, "eve").await, TEAM);
    assert!(
        requests
            .create(&parameters, &request("eve", Some("eve")))
            .await
            .is_err()
    );
}
