//! Shared start of every story: locked-down controllers, a victim's namespace and an attacker's.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition};
use testkit::{ControlPlane, Controller, GitServer, install_all_crds, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const PATIENCE: Duration = Duration::from_secs(240);
pub const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
pub const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
pub const HELM: &str = "helm.toolkit.fluxcd.io/v2";

/// Session token of source-controller at a cloud.
pub const SESSION_TOKEN: &str = "session-of-the-controller";

/// As docs/tenancy.md has it; the gate lets everything in that can be attacked.
const LOCKDOWN: [&str; 3] = [
    "--default-service-account=deployer",
    "--no-cross-namespace-refs",
    "--feature-gates=ExternalArtifact=true",
];

/// Objects with this label are for controllers that a story has for itself, since it measures what they take.
const OWN: &str = "attacks.example.com/own";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

/// The processes that all stories share.
pub struct World {
    pub control_plane: &'static ControlPlane,
    pub git: GitServer,
    pub source: Controller,
    pub apply: Controller,
    pub helm: Controller,
    pub notification: Controller,
    pub images: Controller,
    /// A server from which builds may fetch: `/to/HOST/PATH` leads to `http://HOST/PATH`.
    pub open_redirect: SocketAddr,
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::shared().await?;
        install_all_crds(&control_plane.client()).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let options = |flags: &[&str]| ControllerOptions {
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            ..ControllerOptions::default()
        };
        let keys = [
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIAOFTHECONTROLLER"),
            ("AWS_SECRET_ACCESS_KEY", "secret-of-the-controller"),
            ("AWS_SESSION_TOKEN", SESSION_TOKEN),
        ];
        let source = ControllerOptions {
            environment: keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..options(&["--no-cross-namespace-refs"])
        };
        let source = Controller::start_source(kubeconfig, source).await?;
        let git = GitServer::start().await?;
        let (open_redirect, _) = serve(|request, _| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let to = path.strip_prefix("/to/").unwrap_or_default();
            format!("302 Found\r\nlocation: http://{to}")
        })
        .await?;
        let listed = format!("--remote-hosts=http://{},http://{open_redirect}", git.address());
        Ok(Self {
            control_plane,
            git,
            open_redirect,
            apply: {
                let others = format!("--watch-label-selector=!{OWN}");
                let flags = [&LOCKDOWN[..], &["--handover-patience=3s", &others, &listed]].concat();
                Controller::start_apply(kubeconfig, &source, options(&flags)).await?
            },
            helm: {
                let others = format!("--watch-label-selector=!{OWN}");
                let flags = [&LOCKDOWN[..], &[&others]].concat();
                Controller::start_helm(kubeconfig, &source, options(&flags)).await?
            },
            notification: Controller::start_notification(kubeconfig, options(&["--no-cross-namespace-refs"]))
                .await?,
            images: Controller::start_image(kubeconfig, options(&["--no-cross-namespace-refs"])).await?,
            source,
        })
    }
}

/// One story's place in the world.
pub struct Scene {
    pub world: &'static World,
    pub client: Client,
    /// Whoever is attacked.
    pub victim: String,
    /// A tenant, with an account `deployer` that may do everything in this namespace.
    pub attacker: String,
}

/// Plays a story; on failure the controllers' logs about it are printed.
pub fn play<F>(name: &str, story: impl FnOnce(Scene) -> F)
where
    F: Future<Output = Result<()>>,
{
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let outcome = RUNTIME.block_on(async {
        let world = WORLD.get_or_try_init(World::start).await?;
        let client = world.control_plane.client();
        let victim = world.control_plane.namespace(&format!("{name}-victim")).await?;
        let attacker = world.control_plane.namespace(&format!("{name}-thief")).await?;
        for namespace in [&victim, &attacker] {
            deployer(&client, namespace).await?;
        }
        let scene = Scene {
            world,
            client,
            victim: victim.clone(),
            attacker: attacker.clone(),
        };
        let outcome = story(scene).await;
        if outcome.is_err() {
            let controllers = [
                &world.source,
                &world.apply,
                &world.helm,
                &world.notification,
                &world.images,
            ];
            for controller in controllers {
                let log = controller.log();
                let is_about = |line: &&str| line.contains(&victim) || line.contains(&attacker);
                let lines: Vec<_> = log.lines().filter(is_about).collect();
                eprintln!("{}:\n{}", controller.name(), lines.join("\n"));
            }
        }
        outcome
    });
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

fn own_options() -> ControllerOptions {
    let own = format!("--watch-label-selector={OWN}");
    ControllerOptions {
        flags: LOCKDOWN
            .iter()
            .map(|&flag| flag.to_owned())
            .chain([own])
            .collect(),
        ..ControllerOptions::default()
    }
}

/// An account that may do everything in its namespace.
async fn deployer(client: &Client, namespace: &str) -> Result<()> {
    let metadata = json!({"name": "deployer", "namespace": namespace});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    objects::apply(client, &account).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": namespace}],
    });
    objects::apply(client, &binding).await?;
    Ok(())
}

impl Scene {
    pub async fn apply(&self, object: &Value) -> Result<()> {
        objects::apply(&self.client, object).await.map(drop)
    }

    /// Creates an object for the story's own controller.
    pub async fn apply_own(&self, object: &Value) -> Result<()> {
        let mut object = object.clone();
        object["metadata"]["labels"] = json!({OWN: "true"});
        self.apply(&object).await
    }

    /// An apply-controller for the objects of [`Scene::apply_own`].
    pub async fn own_apply(&self) -> Result<Controller> {
        let kubeconfig = self.world.control_plane.kubeconfig_path();
        Controller::start_apply(kubeconfig, &self.world.source, own_options()).await
    }

    /// A helm-controller for them.
    pub async fn own_helm(&self) -> Result<Controller> {
        let kubeconfig = self.world.control_plane.kubeconfig_path();
        Controller::start_helm(kubeconfig, &self.world.source, own_options()).await
    }

    pub fn api(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        objects::api(&self.client, api_version, kind, namespace)
    }

    /// The victim's repository `app`, fetched, with what no one else may have. Returns the ready source.
    pub async fn secret_source(&self) -> Result<(Repository, DynamicObject)> {
        let repository = self.world.git.create_repository(&self.victim)?;
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stolen"},
            "data": {"plan": "of the victim"}});
        let chart = "apiVersion: v2\nname: stolen\nversion: 1.0.0\n";
        let files = [
            Change::write("deploy/map.yaml", manifest.to_string()),
            Change::write("chart/Chart.yaml", chart),
            Change::write("chart/templates/map.yaml", manifest.to_string()),
        ];
        repository.commit("main", "secret", &files)?;
        self.apply(&objects::git_repository(
            &self.victim,
            "app",
            repository.url(),
            "main",
        ))
        .await?;
        let sources = self.api(SOURCE, "GitRepository", &self.victim);
        let ready = wait_for(&sources, "app", objects::is_ready, PATIENCE).await?;
        Ok((repository, ready))
    }

    /// A Kustomization of the attacker, of `./deploy` in a source.
    pub fn kustomization(&self, name: &str, source: (&str, &str)) -> Value {
        let object = objects::kustomization(&self.attacker, name, source, "./deploy");
        let spec = json!({"targetNamespace": self.attacker, "retryInterval": "1s"});
        objects::with_spec(object, spec)
    }

    /// Writes a status, as who may do that.
    pub async fn write_status(&self, api: &Api<DynamicObject>, name: &str, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until an object of the attacker is refused; returns the message of Ready.
    pub async fn refused(&self, api: &Api<DynamicObject>, name: &str) -> Result<String> {
        self.refused_within(PATIENCE, api, name).await
    }

    /// The same for what takes long to find out on a slow machine.
    pub async fn refused_within(
        &self,
        patience: Duration,
        api: &Api<DynamicObject>,
        name: &str,
    ) -> Result<String> {
        let is_refused =
            |object: &DynamicObject| condition(object, "Ready").is_some_and(|(status, ..)| status == "False");
        let object = wait_for(api, name, is_refused, patience).await?;
        let ready = condition(&object, "Ready").context("no condition Ready")?;
        Ok(ready.2.to_owned())
    }

    /// Fails if what is the victim's has arrived at the attacker's.
    pub async fn nothing_is_stolen(&self) -> Result<()> {
        let maps = self.api("v1", "ConfigMap", &self.attacker);
        ensure!(
            maps.get_opt("stolen").await?.is_none(),
            "the victim's object is the attacker's"
        );
        Ok(())
    }
}

/// Starts an HTTP server that records its requests; `answer` returns status and headers of a response.
pub async fn serve(
    answer: impl Fn(&str, SocketAddr) -> String + Send + 'static,
) -> Result<(SocketAddr, Arc<Mutex<String>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let heard = Arc::new(Mutex::new(String::new()));
    let notes = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 16 << 10];
            let read = stream.read(&mut buffer).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
            let head = answer(&text, address);
            notes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&text);
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Ok((address, heard))
}
