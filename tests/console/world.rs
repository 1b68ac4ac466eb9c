//! A control plane, and a console over it. Each story has namespaces of its own.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::{ControlPlane, Controller, Options, artifact_access, install_all_crds};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const PATIENCE: Duration = Duration::from_secs(240);
/// A user who is not of one cluster, and their token.
pub const ANA_EVERYWHERE: &str = "ana@example.com";
pub const ANA: &str = "token-of-ana";
/// Two more.
pub const BOB_EVERYWHERE: &str = "bob@example.com";
pub const BOB: &str = "token-of-bob";
pub const EVE_EVERYWHERE: &str = "eve@example.com";
pub const EVE: &str = "token-of-eve";
/// Stories tell of days that are long gone some day.
pub const KEEP: &str = "--ledger-retention=876000h";
/// The namespace that names further clusters.
pub const CLUSTERS: &str = "clusters";

/// Namespaces, `*` for all, with the resources that may be got there.
pub type May<'a> = &'a [(&'a str, &'a [&'a str])];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

pub struct World {
    pub control_plane: &'static ControlPlane,
    pub console: Controller,
    pub http: reqwest::Client,
}

/// One story's place in the world.
pub struct Scene {
    pub world: &'static World,
    pub client: Client,
    /// Of its own.
    pub namespace: String,
}

/// Plays a story.
pub fn play<F>(name: &str, story: impl FnOnce(Scene) -> F)
where
    F: Future<Output = Result<()>>,
{
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let outcome = RUNTIME.block_on(async {
        let world = WORLD.get_or_try_init(World::start).await?;
        let namespace = world.control_plane.namespace(name).await?;
        let client = world.control_plane.client();
        story(Scene {
            world,
            client,
            namespace,
        })
        .await
    });
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

impl World {
    async fn start() -> Result<Self> {
        let options = Options {
            users: vec![
                format!("{ANA},{ANA_EVERYWHERE},1,\"web\""),
                format!("{BOB},{BOB_EVERYWHERE},2,\"ops\""),
                format!("{EVE},{EVE_EVERYWHERE},3"),
            ],
            ..Options::default()
        };
        let control_plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start(options).await?));
        let client = control_plane.client();
        install_all_crds(&client).await?;
        // Of Weave: a kind that is asked for once a minute where it is not installed.
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gitopsclusters.gitops.weave.works"},
            "spec": {
                "group": "gitops.weave.works", "scope": "Namespaced",
                "names": {"kind": "GitopsCluster", "listKind": "GitopsClusterList", "plural": "gitopsclusters", "singular": "gitopscluster"},
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        apply(&client, &crd).await?;
        wait_until_served(&client).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLUSTERS}});
        apply(&client, &namespace).await?;
        // It stays as long as the process does.
        let ledger = testkit::scratch::directory("ledger")?.keep();
        let options = ControllerOptions {
            flags: vec![
                format!("--clusters-namespace={CLUSTERS}"),
                format!("--ledger-url=sqlite:{}", ledger.join("ledger.db").display()),
                KEEP.to_owned(),
            ],
            ..ControllerOptions::default()
        };
        let console = Controller::start_console(control_plane.kubeconfig_path(), options);
        Ok(Self {
            control_plane,
            console: console.await?,
            http: reqwest::Client::builder().no_proxy().build()?,
        })
    }
}

/// Waits until the API server serves GitopsClusters.
async fn wait_until_served(client: &Client) -> Result<()> {
    let api = objects::api(client, "gitops.weave.works/v1alpha1", "GitopsCluster", "default");
    let waiting = async {
        while api.list_metadata(&ListParams::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await; // the API server tells nobody
        }
    };
    Ok(tokio::time::timeout(PATIENCE, waiting).await?)
}

impl Scene {
    /// Another namespace.
    pub async fn namespace(&self, name: &str) -> Result<String> {
        self.world.control_plane.namespace(name).await
    }

    /// A Kustomization of a GitRepository `repo`, ready or not, with this inventory.
    pub async fn kustomization(
        &self,
        namespace: &str,
        name: &str,
        ready: &str,
        inventory: &[&str],
    ) -> Result<()> {
        kustomization(&self.client, namespace, name, ready, inventory).await
    }

    /// Writes a status, as a controller does.
    pub async fn status(
        &self,
        version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        status: Value,
    ) -> Result<()> {
        status_of(&self.client, (version, kind), namespace, name, status).await
    }

    /// A user who may `get` these resources (`group/plural`) in some namespaces; `*` is all of them. Their token.
    pub async fn user(&self, name: &str, may: May<'_>) -> Result<String> {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": self.namespace},
        });
        apply(&self.client, &account).await?;
        let subject = json!([{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}]);
        let unique = format!("{}-{name}", self.namespace);
        for (namespace, resources) in may {
            let rules: Vec<Value> = resources
                .iter()
                .map(|resource| {
                    let (group, plural) = resource.split_once('/').unwrap_or(("", resource));
                    json!({"apiGroups": [group], "resources": [plural], "verbs": ["get"]})
                })
                .collect();
            let (role, binding) = match *namespace {
                "*" => ("ClusterRole", "ClusterRoleBinding"),
                _ => ("Role", "RoleBinding"),
            };
            let mut metadata = json!({"name": unique});
            if *namespace != "*" {
                metadata["namespace"] = json!(namespace);
            }
            let group = "rbac.authorization.k8s.io";
            let version = format!("{group}/v1");
            apply(
                &self.client,
                &json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}),
            )
            .await?;
            apply(
                &self.client,
                &json!({
                    "apiVersion": version, "kind": binding, "metadata": metadata, "subjects": subject,
                    "roleRef": {"apiGroup": group, "kind": role, "name": unique},
                }),
            )
            .await?;
        }
        artifact_access::token(&self.client, &self.namespace, name, None).await
    }

    /// Runs our command as the administrator; what it prints.
    pub async fn windlass(&self, arguments: &[&str]) -> Result<String> {
        let home = testkit::scratch::directory("home")?;
        let mut command = tokio::process::Command::new(testkit::controller::program("windlass")?);
        let kubeconfig = self.world.control_plane.kubeconfig_path();
        command
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", home.path());
        let output = command.output().await?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {told}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What is told of a cluster, null if it is not known.
    pub async fn cluster(&self, name: &str) -> Result<Value> {
        let all = self.get(ANA, "clusters").await?;
        let mut of_name = all.as_array().into_iter().flatten();
        let found = of_name.find(|cluster| cluster["name"] == *name);
        Ok(found.cloned().unwrap_or_default())
    }

    /// Asks the console.
    pub async fn ask(&self, token: &str, path: &str) -> Result<(StatusCode, Value)> {
        let url = format!("{}/{path}", self.world.console.api_url());
        let answer = self.world.http.get(&url).bearer_auth(token).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        let value = serde_json::from_str(&text).with_context(|| format!("{path}: {status} {text}"))?;
        Ok((status, value))
    }

    /// Asks the console for what it must have. Another story floods it from this address.
    pub async fn get(&self, token: &str, path: &str) -> Result<Value> {
        let asking = async {
            loop {
                let (status, value) = self.ask(token, path).await?;
                if status != StatusCode::TOO_MANY_REQUESTS {
                    ensure!(status == StatusCode::OK, "{path}: {status} {value}");
                    return anyhow::Ok(value);
                }
                tokio::time::sleep(Duration::from_millis(20)).await; // as the answer says: try again
            }
        };
        tokio::time::timeout(PATIENCE, asking).await?
    }

    /// Waits until an answer is as it should be: the picture follows the API server.
    pub async fn until(&self, token: &str, path: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let waiting = async {
            loop {
                last = self.get(token, path).await?;
                if holds(&last) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(20)).await; // a list does not tell of changes
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.with_context(|| format!("{path} stays {last:#}"))??;
        Ok(last)
    }
}

/// A Kustomization of a GitRepository `repo` in some cluster, ready or not, with this inventory.
pub async fn kustomization(
    client: &Client,
    namespace: &str,
    name: &str,
    ready: &str,
    inventory: &[&str],
) -> Result<()> {
    let object = objects::kustomization(namespace, name, ("GitRepository", "repo"), "./");
    apply(client, &object).await?;
    let entries: Vec<Value> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    let status = json!({
        "observedGeneration": 1, "lastAppliedRevision": "main@sha1:abc", "inventory": {"entries": entries},
        "conditions": [condition(ready)],
    });
    let kind = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
    status_of(client, kind, namespace, name, status).await
}

async fn status_of(
    client: &Client,
    (version, kind): (&str, &str),
    namespace: &str,
    name: &str,
    status: Value,
) -> Result<()> {
    let api = objects::api(client, version, kind, namespace);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The condition Ready.
pub fn condition(ready: &str) -> Value {
    json!({
        "type": "Ready", "status": ready, "reason": if ready == "True" { "ReconciliationSucceeded" } else { "BuildFailed" },
        "message": format!("it is {ready}"), "lastTransitionTime": "2026-11-25T10:00:00Z", "observedGeneration": 1,
    })
}

/// Names of the rows of a page, as `namespace/name`, without the story's own prefix of namespaces.
pub fn names(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().into_iter().flatten();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    items
        .map(|row| format!("{}/{}", text(row, "kind"), text(row, "name")))
        .collect()
}
