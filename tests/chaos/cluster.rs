//! The cluster under test, and whether it is what it should be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::Repository;
use testkit::objects::{self, text};
use testkit::{ControlPlane, Controller, GitServer, Options, install_crds, wait_for, wait_until_gone};

use crate::model::{Id, KUSTOMIZATIONS, Model, OWN, SHARED};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const LABEL: &str = "kustomize.toolkit.fluxcd.io/name";
const KINDS: [&str; 3] = ["ConfigMap", "ServiceAccount", "Deployment"];

/// After API server and controllers were away, watches may take half a minute to come back.
const PATIENCE: Duration = Duration::from_secs(120);

/// Running cluster.
pub struct Cluster {
    pub control_plane: ControlPlane,
    pub source: Controller,
    pub apply: Controller,
    pub repository: Repository,
    /// Foreign objects, as they were created.
    foreign: Vec<DynamicObject>,
    _git: GitServer,
}

/// The version in which a kind of the model is served.
pub fn api_version(kind: &str) -> &'static str {
    if kind == "Deployment" { "apps/v1" } else { "v1" }
}

impl Cluster {
    /// Starts everything, with the first revision.
    pub async fn start(model: &Model) -> Result<Self> {
        let control_plane = ControlPlane::start(Options::default()).await?;
        let client = control_plane.client();
        install_crds(&client).await?;
        let git = GitServer::start().await?;
        let repository = git.create_repository("chaos")?;
        repository.commit("main", "first", &model.files())?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
        let namespace =
            |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        objects::apply(&client, &namespace(OWN)).await?;
        let mut cluster = Self {
            control_plane,
            source,
            apply,
            repository,
            foreign: Vec::new(),
            _git: git,
        };
        cluster.deliver().await?;
        cluster.make_foreign().await?;
        Ok(cluster)
    }

    async fn deliver(&self) -> Result<()> {
        let client = self.client();
        let git = objects::git_repository(OWN, "app", self.repository.url(), "main");
        objects::apply(&client, &objects::with_spec(git, json!({"interval": "1s"}))).await?;
        for (name, after) in KUSTOMIZATIONS {
            let depends_on: Vec<_> = after.iter().map(|name| json!({"name": name})).collect();
            let object = objects::kustomization(OWN, name, ("GitRepository", "app"), &format!("./{name}"));
            let spec = json!({"retryInterval": "1s", "timeout": "30s", "dependsOn": depends_on});
            objects::apply(&client, &objects::with_spec(object, spec)).await?;
        }
        Ok(())
    }

    /// Makes objects of others beside ours, one of them with our labels copied.
    async fn make_foreign(&mut self) -> Result<()> {
        let client = self.client();
        let shared = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        wait_for(&shared, SHARED, |_| true, PATIENCE).await?;
        let labels = json!({LABEL: "base", "kustomize.toolkit.fluxcd.io/namespace": OWN});
        for (namespace, name, labels) in [
            (OWN, "foreign-plain", json!({})),
            (OWN, "foreign-copy", labels.clone()),
            (SHARED, "foreign-plain", json!({})),
            (SHARED, "foreign-copy", labels),
        ] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs"},
                "metadata": {"name": name, "namespace": namespace, "labels": labels}});
            self.foreign.push(objects::apply(&client, &object).await?);
        }
        Ok(())
    }

    fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// Fails when something ended that no one killed.
    pub fn check_running(&self) -> Result<()> {
        self.control_plane.check_running()?;
        self.source.check_running()?;
        self.apply.check_running()
    }

    /// The ends of the logs.
    pub fn logs(&self) -> String {
        let logs = [&self.source, &self.apply].map(|c| format!("{}:\n{}", c.name(), c.log_tail(60)));
        logs.join("\n")
    }

    /// Waits until everything is ready with the newest revision, and is what Git says.
    pub async fn converges(&self, model: &Model) -> Result<()> {
        let revision = format!("main@sha1:{}", self.repository.resolve("main")?);
        if model.is_broken() {
            // It cannot be ready; a later revision is looked at instead.
            return Ok(());
        }
        let api = objects::api(&self.client(), KUSTOMIZE, "Kustomization", OWN);
        for (name, _) in KUSTOMIZATIONS {
            let ready = |object: &DynamicObject| {
                objects::is_ready(object) && text(object, "/status/lastAppliedRevision") == revision
            };
            wait_for(&api, name, ready, PATIENCE).await?;
        }
        // What someone changed may still be on the way back. Many kinds and namespaces: asking again is simplest.
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.check(model).await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Compares Git, cluster and inventories, and looks after what is not ours.
    async fn check(&self, model: &Model) -> Result<()> {
        let expected: BTreeMap<&Id, (String, String)> = model
            .objects
            .iter()
            .map(|(id, (folder, value))| (id, ((*folder).to_owned(), value.to_string())))
            .collect();
        let found = self.managed().await?;
        let found: BTreeMap<&Id, (String, String)> =
            found.iter().map(|(id, state)| (id, state.clone())).collect();
        let differences: Vec<_> = expected
            .keys()
            .chain(found.keys())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter(|id| expected.get(*id) != found.get(*id))
            .map(|id| format!("{id:?}: Git {:?}, cluster {:?}", expected.get(id), found.get(id)))
            .collect();
        ensure!(differences.is_empty(), "{}", differences.join("\n"));
        self.check_inventories(model).await?;
        self.check_foreign().await
    }

    /// Every object that wears our labels, with its owner and its value.
    async fn managed(&self) -> Result<BTreeMap<Id, (String, String)>> {
        let mut managed = BTreeMap::new();
        for kind in KINDS {
            for namespace in [OWN, SHARED] {
                let api = objects::api(&self.client(), api_version(kind), kind, namespace);
                let list = api.list(&ListParams::default().labels(LABEL)).await?;
                let ours = list.items.into_iter().filter(|object| {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    object.metadata.deletion_timestamp.is_none() && !name.starts_with("foreign")
                });
                for object in ours {
                    let label = object.metadata.labels.and_then(|mut labels| labels.remove(LABEL));
                    let value = object
                        .metadata
                        .annotations
                        .and_then(|mut all| all.remove("value"));
                    let id = Id {
                        kind,
                        namespace,
                        name: object.metadata.name.unwrap_or_default(),
                    };
                    managed.insert(id, (label.unwrap_or_default(), value.unwrap_or_default()));
                }
            }
        }
        Ok(managed)
    }

    async fn check_inventories(&self, model: &Model) -> Result<()> {
        let api = objects::api(&self.client(), KUSTOMIZE, "Kustomization", OWN);
        for (name, _) in KUSTOMIZATIONS {
            let object = api.get(name).await?;
            let entries = object
                .data
                .pointer("/status/inventory/entries")
                .and_then(Value::as_array);
            let entries = entries.into_iter().flatten();
            let found: BTreeSet<_> = entries
                .filter_map(|entry| entry["id"].as_str())
                .map(str::to_owned)
                .collect();
            let here = model.objects.iter().filter(|(_, (folder, _))| *folder == name);
            let mut expected: BTreeSet<_> = here.map(|(id, _)| id.in_inventory()).collect();
            if name == "base" {
                expected.insert(format!("_{SHARED}__Namespace"));
            }
            let leaked: Vec<_> = found.difference(&expected).collect();
            let lost: Vec<_> = expected.difference(&found).collect();
            ensure!(
                leaked.is_empty() && lost.is_empty(),
                "inventory of {name}: {leaked:?} too many, {lost:?} missing"
            );
        }
        Ok(())
    }

    async fn check_foreign(&self) -> Result<()> {
        for object in &self.foreign {
            let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
            let (namespace, name) = (
                namespace.as_deref().unwrap_or_default(),
                name.as_deref().unwrap_or_default(),
            );
            let api = objects::api(&self.client(), "v1", "ConfigMap", namespace);
            let Some(now) = api.get_opt(name).await? else {
                bail!("{namespace}/{name} was deleted, which is not ours");
            };
            ensure!(
                now.metadata.resource_version == object.metadata.resource_version,
                "{namespace}/{name} was changed, which is not ours"
            );
        }
        Ok(())
    }

    /// Deletes the Kustomizations: all that is ours goes, and nothing else.
    pub async fn end(&self) -> Result<()> {
        let api = objects::api(&self.client(), KUSTOMIZE, "Kustomization", OWN);
        for (name, _) in KUSTOMIZATIONS {
            api.delete(name, &DeleteParams::default()).await?;
            wait_until_gone(&api, name, PATIENCE)
                .await
                .with_context(|| format!("at the end of {name}"))?;
        }
        let left = self.managed().await?;
        ensure!(left.is_empty(), "left behind: {left:?}");
        self.check_foreign().await
    }
}
