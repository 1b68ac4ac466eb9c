//! The processes that all stories share, and a namespace for each.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, apply};
use testkit::registry::Artifact;
use testkit::{ControlPlane, Controller, GitServer, Registry, install_all_crds, wait_for};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const PATIENCE: Duration = Duration::from_secs(240);
/// Objects with this label belong to the controller that a story kills.
pub const KILLED: &str = "images.example.com/killed";
pub const IMAGE: &str = "image.toolkit.fluxcd.io/v1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

pub struct World {
    pub control_plane: &'static ControlPlane,
    pub git: GitServer,
    pub registry: Registry,
    pub images: Controller,
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::shared().await?;
        let client = control_plane.client();
        install_all_crds(&client).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let others = ControllerOptions {
            flags: vec![format!("--watch-label-selector=!{KILLED}")],
            ..ControllerOptions::default()
        };
        Ok(Self {
            control_plane,
            git: GitServer::start().await?,
            registry: Registry::start().await?,
            images: Controller::start_image(kubeconfig, others).await?,
        })
    }
}

/// One story's place in the world.
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
            let log = world.images.log();
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

/// What asks servers each second is asleep when its story is over.
async fn end(client: &Client, namespace: &str) -> Result<()> {
    for (version, kind) in [
        (IMAGE, "ImageRepository"),
        (IMAGE, "ImageUpdateAutomation"),
        (SOURCE, "GitRepository"),
    ] {
        objects::suspend_all(client, version, kind, namespace).await?;
    }
    Ok(())
}

impl Scene {
    /// A repository of Git with these files on `main`, and a GitRepository for it.
    pub async fn git(&self, files: &[(&str, &str)]) -> Result<Repository> {
        let repository = self.world.git.create_repository(&self.namespace)?;
        let changes: Vec<_> = files
            .iter()
            .map(|(path, text)| Change::write(path, *text))
            .collect();
        repository.commit("main", "first", &changes)?;
        let source = objects::git_repository(&self.namespace, "app", repository.url(), "main");
        apply(&self.client, &source).await?;
        Ok(repository)
    }

    /// Name of an image of this story.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.world.registry.address(), self.namespace)
    }

    /// Pushes an image; its digest.
    pub async fn push(&self, name: &str, tags: &[&str]) -> Result<String> {
        let artifact = Artifact::from_files("main@sha1:1", &[("content", &tags.join(","))])?;
        let repository = format!("{}/{name}", self.namespace);
        self.world.registry.push(&repository, tags, &artifact).await
    }

    /// An ImageRepository and an ImagePolicy of an image.
    pub async fn follow(&self, name: &str, policy: Value) -> Result<()> {
        self.follow_with(name, policy, json!({})).await
    }

    /// The same, with annotations of the policy.
    pub async fn follow_with(&self, name: &str, policy: Value, annotations: Value) -> Result<()> {
        let repository = json!({
            "apiVersion": IMAGE,
            "kind": "ImageRepository",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"image": self.image(name), "interval": "1h", "insecure": true},
        });
        apply(&self.client, &repository).await?;
        let mut spec = json!({"imageRepositoryRef": {"name": name}});
        spec.as_object_mut()
            .expect("an object")
            .extend(policy.as_object().cloned().unwrap_or_default());
        let policy = json!({
            "apiVersion": IMAGE,
            "kind": "ImagePolicy",
            "metadata": {"name": name, "namespace": self.namespace, "annotations": annotations},
            "spec": spec,
        });
        apply(&self.client, &policy).await?;
        Ok(())
    }

    /// An automation over the GitRepository; `git` replaces fields of `spec.git`.
    pub async fn automate(&self, name: &str, git: Value, spec: Value) -> Result<()> {
        let mut fields = json!({
            "commit": {
                "author": {"name": "Bot", "email": "bot@example.com"},
                "messageTemplate": "{{ range .Changed.Changes }}{{ .OldValue }} -> {{ .NewValue }}\n{{ end }}",
            },
        });
        fields
            .as_object_mut()
            .expect("an object")
            .extend(git.as_object().cloned().unwrap_or_default());
        let automation = json!({
            "apiVersion": IMAGE,
            "kind": "ImageUpdateAutomation",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h", "git": fields},
        });
        apply(&self.client, &objects::with_spec(automation, spec)).await?;
        Ok(())
    }

    /// Waits until the object looks so.
    pub async fn wait(
        &self,
        kind: &str,
        name: &str,
        predicate: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject> {
        let api = objects::api(&self.client, IMAGE, kind, &self.namespace);
        wait_for(&api, name, predicate, PATIENCE).await
    }

    /// Asks for a reconcile.
    pub async fn poke(&self, kind: &str, name: &str) -> Result<String> {
        objects::poke(&objects::api(&self.client, IMAGE, kind, &self.namespace), name).await
    }

    /// Waits until the automation has pushed another commit than the one that is known.
    pub async fn pushed(&self, name: &str, known: &str) -> Result<String> {
        let is_new = |object: &DynamicObject| {
            let commit = objects::text(object, "/status/lastPushCommit");
            !commit.is_empty() && commit != known
        };
        let object = self.wait("ImageUpdateAutomation", name, is_new).await?;
        Ok(objects::text(&object, "/status/lastPushCommit").to_owned())
    }
}
