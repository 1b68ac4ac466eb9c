//! A pipeline of the first cluster, with a promotion that waits for a person.

use anyhow::Result;
use kube::Client;
use serde_json::json;
use testkit::controller::{Controller, ControllerOptions};
use testkit::git::{Change, Repository};
use testkit::objects::{apply, git_repository, kustomization, with_spec};
use testkit::{ControlPlane, wait_for};

use super::PATIENCE;

/// The team's namespace, and those of its environments.
const TEAM: &str = "shop";
const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "production"];
const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";

fn namespace(environment: &str) -> String {
    format!("{TEAM}-{environment}")
}

/// An application whose image is promoted.
fn app(environment: &str, tag: &str) -> Change {
    let namespace = namespace(environment);
    let text = format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: checkout\n  namespace: {namespace}\n\
         spec:\n  interval: 1h\n  prune: true\n  path: ./checkout\n  targetNamespace: {namespace}\n  sourceRef: {{kind: \
         GitRepository, name: checkout, namespace: {TEAM}}}\n  images:\n    - name: registry.example.com/checkout\n      newTag: \
         {tag}\n"
    );
    Change::write(&format!("environments/{environment}/checkout.yaml"), text)
}

/// The first commit.
pub(super) fn commit(repository: &Repository) -> Result<()> {
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: checkout\n";
    let mut changes = vec![Change::write("checkout/settings.yaml", settings)];
    changes.extend(ENVIRONMENTS.map(|environment| app(environment, "2.3.0")));
    repository.commit("main", "Deliver checkout to three environments", &changes)?;
    Ok(())
}

/// A newer image in the first environment.
pub(super) fn commit_again(repository: &Repository) -> Result<()> {
    repository.commit("main", "Deploy checkout 2.4.0 to dev", &[app("dev", "2.4.0")])?;
    Ok(())
}

/// Has it delivered and promoted, and waits for the first release.
pub(super) async fn deploy(control_plane: &ControlPlane, url: &str) -> Result<Controller> {
    let client = control_plane.client();
    let source = git_repository(TEAM, "checkout", url, "main");
    apply(&client, &with_spec(source, json!({"interval": "2s"}))).await?;
    for environment in ENVIRONMENTS {
        let namespace = namespace(environment);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        apply(&client, &object).await?;
        allow(&client, &namespace).await?;
        let path = format!("./environments/{environment}");
        apply(
            &client,
            &kustomization(TEAM, environment, ("GitRepository", "checkout"), &path),
        )
        .await?;
    }
    let targets = |environment: &str| json!([{"namespace": namespace(environment)}]);
    let pipeline = json!({
        "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": "checkout", "namespace": TEAM},
        "spec": {
            "apps": [{"kind": "Kustomization", "name": "checkout"}],
            "environments": [
                {"name": "dev", "targets": targets("dev")},
                {"name": "staging", "targets": targets("staging")},
                {"name": "production", "targets": targets("production"), "approvals": {"required": 1}},
            ],
        },
    });
    apply(&client, &pipeline).await?;
    let controller =
        Controller::start_pipeline(control_plane.kubeconfig_path(), ControllerOptions::default()).await?;
    until_released(&client, 2, 1).await?;
    Ok(controller)
}

/// Waits until an environment has a release.
pub(super) async fn until_released(client: &Client, environment: usize, release: u64) -> Result<()> {
    let api = testkit::objects::api(client, DELIVERY, "Pipeline", TEAM);
    let pointer = format!("/status/environments/{environment}/release");
    let has = |object: &kube::api::DynamicObject| object.data.pointer(&pointer) == Some(&json!(release));
    wait_for(&api, "checkout", has, PATIENCE).await.map(drop)
}

/// Lets the pipelines of the team look at a namespace.
async fn allow(client: &Client, namespace: &str) -> Result<()> {
    let version = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "promoted", "namespace": namespace});
    let role = json!({
        "apiVersion": version, "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": TEAM}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "promoted"},
    });
    apply(client, &role).await?;
    apply(client, &binding).await.map(drop)
}
