//! Installed, upgraded, taken over from Flux, uninstalled.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::objects;

use crate::cluster::{Cluster, NAMESPACE};

pub const CONTROLLERS: [&str; 4] = [
    "helm-controller",
    "kustomize-controller",
    "notification-controller",
    "source-controller",
];

#[tokio::test]
async fn the_chart_is_installed_upgraded_and_uninstalled_with_nothing_left() {
    let cluster = Cluster::start().await;
    cluster.restricted_namespace().await;
    cluster.install(&[]).await.unwrap();
    assert_eq!(deployments(&cluster).await, CONTROLLERS);
    // The namespace lets no Pod in that is not as restricted as they come.
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 4);
    assert_eq!(definitions(&cluster).await, 16);

    cluster.install(&["--set", "sharding.shards={a}"]).await.unwrap();
    assert_eq!(deployments(&cluster).await.len(), 7);
    // No one makes volumes here: the API server checks the rest.
    let claims = ["--set", "source.storage.size=1Gi"];
    let dry = [&claims[..], &["--dry-run=server"]].concat();
    cluster.install(&dry).await.unwrap();
    let images = [
        "--set",
        "images.enabled=true,crds.keep=false,console.enabled=true,console.clustersNamespace=default",
    ];
    cluster.install(&images).await.unwrap();
    let mut all = CONTROLLERS.to_vec();
    all.insert(1, "image-reflector-controller");
    all.insert(0, "console");
    assert_eq!(deployments(&cluster).await, all);
    assert_eq!(definitions(&cluster).await, 20);

    cluster
        .helm(&["uninstall", "windlass", "--wait", "--timeout", "2m"])
        .await
        .unwrap();
    assert_eq!(deployments(&cluster).await, [""; 0]);
    assert_eq!(definitions(&cluster).await, 0);
    let left = cluster
        .control_plane_wide("app.kubernetes.io/name=windlass")
        .await;
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn deployments_of_flux_are_replaced_in_place_and_objects_stay() {
    let cluster = Cluster::start().await;
    testkit::install_crds(&cluster.client).await.unwrap();
    create_namespace(&cluster, json!({})).await;
    for name in CONTROLLERS {
        objects::apply(&cluster.client, &deployment_of_flux(name))
            .await
            .unwrap();
    }
    let source = objects::git_repository(NAMESPACE, "flux-system", "https://git.example.com/fleet", "main");
    let before = objects::apply(&cluster.client, &source).await.unwrap();
    let uids = uids(&cluster).await;

    let refused = cluster.install(&[]).await.unwrap_err().to_string();
    assert!(
        refused.contains("--take-ownership") || refused.contains("invalid ownership metadata"),
        "{refused}"
    );
    cluster
        .install(&["--take-ownership", "--force-conflicts"])
        .await
        .unwrap();
    assert_eq!(self::uids(&cluster).await, uids);
    let (sources, name) = objects::api_of(&cluster.client, &source).unwrap();
    let after = sources.get(&name).await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());

    cluster.helm(&["uninstall", "windlass", "--wait"]).await.unwrap();
    assert_eq!(definitions(&cluster).await, 16);
    sources.get(&name).await.unwrap();
}

pub async fn create_namespace(cluster: &Cluster, labels: Value) {
    let namespace = json!({"metadata": {"name": NAMESPACE, "labels": labels}});
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let namespace = serde_json::from_value(namespace).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
}

/// As Flux's manifests have it, as far as it matters: name, strategy, selector, container.
pub fn deployment_of_flux(name: &str) -> Value {
    let strategy = if name == "source-controller" {
        "Recreate"
    } else {
        "RollingUpdate"
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
            "app.kubernetes.io/component": name, "app.kubernetes.io/instance": NAMESPACE,
            "app.kubernetes.io/part-of": "flux", "control-plane": "controller",
        }},
        "spec": {
            "replicas": 1,
            "strategy": {"type": strategy},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "manager", "image": format!("fluxcd/{name}:v1")}]},
            },
        },
    })
}

pub async fn deployments(cluster: &Cluster) -> Vec<String> {
    uids(cluster).await.into_iter().map(|(name, _)| name).collect()
}

/// Names and UIDs of the Deployments.
pub async fn uids(cluster: &Cluster) -> Vec<(String, String)> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let found = deployments.list(&ListParams::default()).await.unwrap();
    found
        .iter()
        .map(|found| (found.name_any(), found.uid().unwrap()))
        .collect()
}

pub async fn definitions(cluster: &Cluster) -> usize {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .len()
}

impl Cluster {
    /// Makes our namespace, which lets in only Pods that are as restricted as they come.
    pub async fn restricted_namespace(&self) {
        create_namespace(self, json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    }

    /// Names of what is cluster-wide and has the label.
    pub async fn control_plane_wide(&self, selector: &str) -> Vec<String> {
        use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
        let selected = ListParams::default().labels(selector);
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let mut names: Vec<_> = roles
            .list(&selected)
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        names.extend(
            bindings
                .list(&selected)
                .await
                .unwrap()
                .iter()
                .map(ResourceExt::name_any),
        );
        names
    }
}
