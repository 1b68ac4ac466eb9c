//! The processes that all stories share; a repository, namespaces and applications for each.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply, text};
use testkit::{
    ControlPlane, Controller, GitServer, HelmRepository, install_all_crds, install_weave_crds, wait_for,
};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const PATIENCE: Duration = Duration::from_secs(120);
/// Pipelines with this label belong to the controller that a story kills.
pub const KILLED: &str = "pipelines.example.com/killed";
pub const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
pub const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
pub const HELM: &str = "helm.toolkit.fluxcd.io/v2";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

pub struct World {
    pub control_plane: &'static ControlPlane,
    pub git: GitServer,
    pub charts: HelmRepository,
    pub pipelines: Controller,
    /// The only one: one that a story ended could leave the forge with a status that is not the last.
    pub notifying: Controller,
    _others: [Controller; 3],
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::shared().await?;
        install_all_crds(&control_plane.client()).await?;
        install_weave_crds(&control_plane.client()).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
        let helm = Controller::start_helm(kubeconfig, &source, ControllerOptions::default()).await?;
        let others = ControllerOptions {
            flags: vec![
                format!("--watch-label-selector=!{KILLED}"),
                "--weave-pipelines".to_owned(),
                "--gate-hosts=127.0.0.1".to_owned(),
                "--webhook-url=https://hooks.example.com/".to_owned(),
                format!("--source-url={}", source.storage_url()),
            ],
            ..ControllerOptions::default()
        };
        Ok(Self {
            control_plane,
            git: GitServer::start().await?,
            charts: HelmRepository::start().await?,
            pipelines: Controller::start_pipeline(kubeconfig, others).await?,
            notifying: Controller::start_notification(kubeconfig, ControllerOptions::default()).await?,
            _others: [source, apply, helm],
        })
    }
}

/// One story's place in the world: the namespace of a team, which has its pipelines and Kustomizations.
pub struct Scene {
    pub world: &'static World,
    pub client: Client,
    pub namespace: String,
}

/// Plays a story; on failure the controller's log about it is printed.
pub fn play<F>(name: &str, story: impl FnOnce(Scene) -> F)
where
    F: Future<Output = Result<()>>,
{
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let outcome = RUNTIME.block_on(async {
        let world = WORLD.get_or_try_init(World::start).await?;
        let namespace = world.control_plane.namespace(name).await?;
        let scene = Scene {
            world,
            client: world.control_plane.client(),
            namespace: namespace.clone(),
        };
        let outcome = story(scene).await;
        if outcome.is_err() {
            let log = world.pipelines.log();
            let lines: Vec<_> = log.lines().filter(|line| line.contains(&namespace)).collect();
            eprintln!("{}", lines.join("\n"));
        }
        let ended = end(&world.control_plane.client(), &namespace).await;
        outcome.and(ended)
    });
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

/// What asks the Git service each second is asleep when its story is over.
async fn end(client: &Client, namespace: &str) -> Result<()> {
    for (version, kind) in [
        (DELIVERY, "Pipeline"),
        (DELIVERY, "Preview"),
        (SOURCE, "GitRepository"),
        (SOURCE, "OCIRepository"),
    ] {
        objects::suspend_all(client, version, kind, namespace).await?;
    }
    Ok(())
}

/// A Kustomization as an application: its images are what is carried. It applies one ConfigMap.
pub fn app(namespace: &str, team: &str, tag: &str) -> String {
    format!(
        "# An application.\napiVersion: {KUSTOMIZE}\nkind: Kustomization\nmetadata:\n  name: shop\n  namespace: \
         {namespace}\nspec:\n  interval: 1h\n  prune: true\n  path: ./base\n  targetNamespace: {namespace}\n  sourceRef: \
         {{kind: GitRepository, name: fleet, namespace: {team}}}\n  images:\n    - name: h.io/web\n      newTag: {tag} # of \
         the day\n"
    )
}

/// A HelmRelease as an application.
pub fn release(namespace: &str, team: &str, version: &str, tag: &str) -> String {
    format!(
        "apiVersion: {HELM}\nkind: HelmRelease\nmetadata:\n  name: shop\n  namespace: {namespace}\nspec:\n  interval: 1h\n  \
         chart:\n    spec:\n      chart: app\n      version: {version}\n      sourceRef: {{kind: HelmRepository, name: charts, \
         namespace: {team}}}\n  values:\n    image: {{repository: h.io/web, tag: {tag}}}\n"
    )
}

/// The files of a repository: one for each environment, and what the applications apply.
pub fn files_of(files: &[(&str, String)]) -> Vec<(String, String)> {
    let base = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n";
    let fixed = [
        ("base/web.yaml", base),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
    ];
    let fixed = fixed.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let own = files
        .iter()
        .map(|(name, text)| (format!("{name}/shop.yaml"), text.clone()));
    fixed.into_iter().chain(own).collect()
}

impl Scene {
    /// Namespaces of targets, which the team's account may read.
    pub async fn targets<const N: usize>(&self, names: [&str; N]) -> Result<[String; N]> {
        let mut made = names.map(str::to_owned);
        for name in &mut made {
            *name = self.world.control_plane.namespace(name).await?;
            self.allow(name).await?;
        }
        Ok(made)
    }

    /// Allows the team's account to read a namespace.
    pub async fn allow(&self, namespace: &str) -> Result<()> {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "promoter", "namespace": namespace},
            "rules": [
                {"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"], "verbs": ["get"]},
                {"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["helmreleases"], "verbs": ["get"]},
            ],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "promoter", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "promoter"},
            "subjects": [{"kind": "ServiceAccount", "name": "promoter", "namespace": self.namespace}],
        });
        apply(&self.client, &role).await?;
        apply(&self.client, &binding).await?;
        Ok(())
    }

    /// The team's repository with a file for each of its environments, delivered by a Kustomization each.
    pub async fn fleet(&self, files: &[(&str, String)]) -> Result<Repository> {
        let repository = self.world.git.create_repository(&self.namespace)?;
        let files_of = files_of(files);
        let changes: Vec<_> = files_of
            .iter()
            .map(|(path, text)| Change::write(path, text.clone()))
            .collect();
        repository.commit("main", "first", &changes)?;
        self.deliver(repository.url(), json!({}), files).await?;
        Ok(repository)
    }

    /// What delivers the environments of a repository.
    pub async fn deliver(&self, url: &str, spec: Value, files: &[(&str, String)]) -> Result<()> {
        let source = objects::git_repository(&self.namespace, "fleet", url, "main");
        let source = objects::with_spec(source, json!({"interval": "1s"}));
        apply(&self.client, &objects::with_spec(source, spec)).await?;
        let charts = json!({
            "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": self.namespace},
            "spec": {"url": self.world.charts.url(), "interval": "1h"},
        });
        apply(&self.client, &charts).await?;
        for (name, _) in files {
            let source = ("GitRepository", "fleet");
            let kustomization = objects::kustomization(&self.namespace, name, source, &format!("./{name}"));
            apply(
                &self.client,
                &objects::with_spec(kustomization, json!({"wait": false})),
            )
            .await?;
        }
        Ok(())
    }

    /// A pipeline of the team.
    pub async fn pipeline(&self, kind: &str, environments: Value) -> Result<()> {
        self.pipeline_with(kind, environments, json!({})).await
    }

    /// The same, with labels or annotations.
    pub async fn pipeline_with(&self, kind: &str, environments: Value, mut metadata: Value) -> Result<()> {
        metadata["name"] = json!("shop");
        metadata["namespace"] = json!(self.namespace);
        let pipeline = json!({
            "apiVersion": DELIVERY, "kind": "Pipeline",
            "metadata": metadata,
            "spec": {
                "serviceAccountName": "promoter",
                "interval": "1s",
                "apps": [{"kind": kind, "name": "shop"}],
                "environments": environments,
            },
        });
        apply(&self.client, &pipeline).await?;
        Ok(())
    }

    /// Waits until the pipeline looks so.
    pub async fn wait(&self, predicate: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
        let api = objects::api(&self.client, DELIVERY, "Pipeline", &self.namespace);
        wait_for(&api, "shop", predicate, PATIENCE).await
    }

    /// Waits until an application has this text at a place, and is ready.
    pub async fn has(&self, kind: (&str, &str), namespace: &str, pointer: &str, wanted: &str) -> Result<()> {
        let api = objects::api(&self.client, kind.0, kind.1, namespace);
        let is_there = |object: &DynamicObject| {
            let seen = objects::field(object, "/status/observedGeneration").and_then(Value::as_i64);
            text(object, pointer) == wanted && objects::is_ready(object) && seen == object.metadata.generation
        };
        wait_for(&api, "shop", is_there, PATIENCE).await.map(drop)
    }
}

/// The number of a release in an environment.
pub fn release_of(pipeline: &DynamicObject, environment: usize) -> Option<u64> {
    objects::field(pipeline, &format!("/status/environments/{environment}/release"))?.as_u64()
}

/// What the next release waits for.
pub fn waits(pipeline: &DynamicObject, environment: usize) -> Vec<String> {
    let waits = objects::field(pipeline, &format!("/status/environments/{environment}/waits"));
    let waits = waits.and_then(Value::as_array).into_iter().flatten();
    waits.filter_map(Value::as_str).map(str::to_owned).collect()
}
