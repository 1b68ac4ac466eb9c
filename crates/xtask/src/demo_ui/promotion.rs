//! A repository at a Gitea that people change by pull request, and a pipeline of it with a promotion that waits for a person.

use anyhow::Result;
use kube::Client;
use serde_json::json;
use testkit::controller::{Controller, ControllerOptions};
use testkit::gitea::User;
use testkit::objects::{apply, git_repository, kustomization, with_spec};
use testkit::{ControlPlane, Gitea, wait_for};

use super::PATIENCE;

/// The team's namespace, and those of its environments.
const TEAM: &str = "shop";
const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "production"];
/// The repository, and what is in it.
const REPOSITORY: &str = "checkout";
const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";

fn namespace(environment: &str) -> String {
    format!("{TEAM}-{environment}")
}

/// An application whose image is promoted.
fn app(environment: &str, tag: &str) -> (String, String) {
    let namespace = namespace(environment);
    let text = format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: checkout\n  namespace: {namespace}\n\
         spec:\n  interval: 1h\n  prune: true\n  path: ./checkout\n  targetNamespace: {namespace}\n  sourceRef: {{kind: \
         GitRepository, name: checkout, namespace: {TEAM}}}\n  images:\n    - name: registry.example.com/checkout\n      newTag: \
         {tag} # what runs there\n"
    );
    (format!("environments/{environment}/checkout.yaml"), text)
}

/// The Git service, and who writes there.
pub(super) struct Forge {
    gitea: Gitea,
    bot: User,
}

impl Forge {
    /// Starts it with the team's repository.
    pub(super) async fn start() -> Result<Self> {
        let gitea = Gitea::start().await?;
        let bot = gitea.add_user(TEAM).await?;
        let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: checkout\n";
        let apps = ENVIRONMENTS.map(|environment| app(environment, "2.3.0"));
        let mut files = vec![("checkout/settings.yaml", settings)];
        files.extend(apps.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        gitea.add_repository(&bot, REPOSITORY, &files).await?;
        Ok(Self { gitea, bot })
    }

    /// A newer image in the first environment.
    pub(super) async fn commit_again(&self) -> Result<()> {
        let (path, text) = app("dev", "2.4.0");
        let repository = format!("{TEAM}/{REPOSITORY}");
        let files = [(path.as_str(), text.as_str())];
        self.gitea
            .commit(&self.bot, &repository, "main", &files)
            .await
            .map(drop)
    }
}

/// Has it delivered and promoted, and waits for the first release.
pub(super) async fn deploy(control_plane: &ControlPlane, forge: &Forge) -> Result<Controller> {
    let client = control_plane.client();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": REPOSITORY, "namespace": TEAM},
        "stringData": {"username": forge.bot.name, "password": forge.bot.token},
    });
    let policy = json!({
        "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "review", "namespace": TEAM},
        "spec": {
            "type": "PullRequest",
            "pullRequest": {"forge": {"provider": "gitea", "secretRef": {"name": REPOSITORY}}},
        },
    });
    let url = forge.gitea.repository_url(TEAM, REPOSITORY);
    let source = git_repository(TEAM, REPOSITORY, &url, "main");
    let source = with_spec(
        source,
        json!({"interval": "2s", "secretRef": {"name": REPOSITORY}}),
    );
    for object in [&secret, &policy, &source] {
        apply(&client, object).await?;
    }
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
