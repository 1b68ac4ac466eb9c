//! The cluster's side: who delivers there now, the first apply, and waiting until the cluster delivers itself.

use std::cell::RefCell;
use std::time::Duration;

use delivery_graph::object::{self, condition, text};
use delivery_graph::{one_line, request};
use git_client::ObjectId as Commit;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use kube_apply::{ApplyError, ApplyOptions, CommonMetadata, Engine, Owner, Settings, summarize};
use manifest::{Object, ObjectId};
use serde_json::Value;

use super::files::Layout;
use super::flags::Shared;
use super::sync::folder;
use crate::cluster::{Cluster, Failure};
use crate::platform::controllers::{self, Controller};
use crate::platform::plan::{self, Change, Plan};
use crate::platform::{Platform, RELEASE, managers, objects, ready, rollout};
use crate::progress::Progress;

/// Managers of fields that become those of the Kustomization: of `windlass install`, helm, and Flux's command.
const MANAGERS: [&str; 3] = ["helm", "Helm", "flux"];
/// How often the path of the Kustomization is set again, and after how long.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);
const LABELS: &str = "app.kubernetes.io/name=windlass";

/// Who delivers to the cluster now.
pub(super) struct Delivery {
    controllers: Vec<Controller>,
    kustomization: Option<Value>,
    namespace: String,
}

impl Delivery {
    pub(super) async fn look(cluster: &Cluster, platform: &Platform) -> Result<Self, Failure> {
        Ok(Self {
            controllers: controllers::find(&platform.client).await?,
            kustomization: cluster.get(&id("Kustomization", &platform.namespace)).await?,
            namespace: platform.namespace.clone(),
        })
    }

    /// The folder that the cluster is delivered from.
    pub(super) fn path(&self) -> Option<&str> {
        Some(path_of(self.kustomization.as_ref()?))
    }

    /// Controllers of Flux deliver to it.
    pub(super) fn was_flux(&self) -> bool {
        self.controllers.iter().any(|one| !one.is_ours && one.wanted > 0)
    }

    /// Refuses another folder, unless its files are moved, too.
    pub(super) fn refuse_path(&self, shared: &Shared) -> Result<(), Failure> {
        let name = &self.namespace;
        if let Some(path) = self
            .path()
            .filter(|path| *path != shared.path && !shared.move_path)
        {
            return Err(Failure::NotReady(format!(
                "the cluster is delivered from ./{path}, not from ./{}: what only ./{path} has would be deleted; give --path={path}, \
                 or --move to move the files",
                shared.path
            )));
        }
        if self.kustomization.as_ref().is_some_and(object::is_suspended) {
            return Err(Failure::NotReady(format!(
                "Kustomization/{name}/{name} is suspended: `windlass resume kustomization/{name} -n {name}` first"
            )));
        }
        Ok(())
    }

    /// Refuses controllers of Flux that would fight with ours.
    pub(super) fn refuse_flux(&self, layout: &Layout) -> Result<(), Failure> {
        let name = &self.namespace;
        let of_flux = self
            .controllers
            .iter()
            .filter(|one| !one.is_ours && one.wanted > 0);
        let of_flux: Vec<String> = of_flux.map(|one| one.id.to_string()).collect();
        match of_flux.is_empty() || layout.is_flux {
            true => Ok(()),
            false => Err(Failure::NotReady(format!(
                "Flux's own controllers are here: {}; and the repository has no {}/gotk-components.yaml of theirs to replace: give the \
                 --path of `flux bootstrap`, or run `windlass takeover` first",
                of_flux.join(", "),
                layout
                    .folder
                    .rsplit_once('/')
                    .map_or(name.clone(), |(path, _)| format!("{path}/{name}")),
            ))),
        }
    }

    /// Running controllers apply the folder by themselves.
    fn is_delivering(&self) -> bool {
        let runs = |component: &str| {
            let mut all = self.controllers.iter();
            all.any(|one| one.component == component && one.id.namespace == self.namespace && one.ready > 0)
        };
        self.kustomization.is_some() && runs("source-controller") && runs("kustomize-controller")
    }

    /// What an apply would do, object by object.
    pub(super) async fn plan(&self, platform: &Platform, objects: &[Object]) -> Result<Plan, Failure> {
        let settings = Settings::default();
        let mut changes = Vec::new();
        for object in objects {
            let mut object = object.clone();
            object.set_label(&settings.name_label(), &self.namespace);
            object.set_label(&settings.namespace_label(), &self.namespace);
            let id = object.id();
            let mapper = platform.engine.mapper();
            let located = objects::locate(&platform.client, mapper, object, &self.namespace).await;
            // Its kind comes with the definitions.
            let Ok(located) = located else {
                changes.push((id, Change::Created));
                continue;
            };
            let change = match located.live().await? {
                None => Change::Created,
                Some(live) => {
                    let applied = located.apply(&settings.field_manager, true).await?;
                    match plan::content(live) == plan::content(applied) {
                        true => Change::Unchanged,
                        false => Change::Changed,
                    }
                }
            };
            changes.push((located.id(), change));
        }
        Ok(Plan { changes })
    }

    /// Applies what no controller would, and waits until the cluster has delivered the commit by itself.
    pub(super) async fn carry_out(
        &self,
        cluster: &Cluster,
        platform: &Platform,
        objects: Vec<Object>,
        commit: &Commit,
        shared: &Shared,
        report_line: &impl Fn(&str),
    ) -> Result<(), Failure> {
        let deployments: Vec<ObjectId> = objects
            .iter()
            .filter(|object| object.gvk().kind == "Deployment")
            .map(Object::id)
            .collect();
        for object in objects.iter().filter(|object| object.gvk().kind == "Deployment") {
            let mapper = platform.engine.mapper();
            let located = objects::locate(&platform.client, mapper, object.clone(), &self.namespace).await?;
            managers::drop_rolling_update(&located).await?;
        }
        let delivers = self.is_delivering();
        let sync: Vec<Object> = objects
            .iter()
            .filter(|object| self.is_sync(object))
            .cloned()
            .collect();
        if delivers {
            // The controllers apply the rest, as after every commit.
            self.apply(&platform.client, sync.clone(), true).await?;
        } else {
            report_line("applying the controllers");
            self.apply(&platform.client, objects, false).await?;
            let ready = ready::until_ready(platform, deployments.clone(), shared.timeout);
            rollout::telling(&platform.client, &self.namespace, LABELS, ready).await?;
        }
        let name = self.namespace.as_str();
        let commit = commit.to_string();
        self.delivered(
            cluster,
            "GitRepository",
            "/status/artifact/revision",
            &commit,
            shared,
        )
        .await?;
        // A controller that was still applying the commit before may have set the path back to the one of that commit, which this one may
        // not have: set again, it stays, since the source is at this commit now.
        let mut tries = 0;
        while !self
            .delivered(
                cluster,
                "Kustomization",
                "/status/lastAppliedRevision",
                &commit,
                shared,
            )
            .await?
        {
            tries += 1;
            if tries > TRIES {
                return Err(Failure::NotReady(format!(
                    "something sets spec.path of Kustomization/{name}/{name} to another folder than ./{}; is there a patch for it in \
                     kustomization.yaml?",
                    shared.path
                )));
            }
            self.apply(&platform.client, sync.clone(), true).await?;
            tokio::time::sleep(PAUSE).await;
        }
        report_line(&format!("Kustomization/{name}/{name} is ready at {commit}"));
        // They may have been replaced by what was delivered.
        ready::until_ready(platform, deployments, shared.timeout).await?;
        forget_release(platform, report_line).await
    }

    fn is_sync(&self, object: &Object) -> bool {
        let is_of_kind = matches!(object.gvk().kind.as_str(), "GitRepository" | "Kustomization");
        is_of_kind && object.name() == self.namespace && object.namespace() == self.namespace
    }

    /// Applies as the Kustomization itself will: under its manager, with its labels.
    async fn apply(&self, client: &Client, objects: Vec<Object>, partial: bool) -> Result<(), Failure> {
        let settings = Settings {
            disallowed_field_managers: MANAGERS.map(str::to_owned).to_vec(),
            ..Settings::default()
        };
        let engine = Engine::new(client.clone(), settings);
        let owner = Owner {
            namespace: self.namespace.clone(),
            name: self.namespace.clone(),
        };
        let options = ApplyOptions {
            partial,
            ..ApplyOptions::default()
        };
        let work = async {
            let prepared = engine
                .prepare(&owner, objects, &CommonMetadata::default())
                .await?;
            engine.apply(prepared, &options).await
        };
        let applied: Result<_, ApplyError> = work.await;
        applied.map(drop).map_err(|error| Failure::Request {
            what: "apply the controllers".to_owned(),
            why: summarize(&error.errors).join("\n"),
        })
    }

    /// Waits until an object has come to the commit; asks for it once, so that nothing waits for an interval. Returns false as soon as a
    /// Kustomization has another path than it should.
    async fn delivered(
        &self,
        cluster: &Cluster,
        kind: &str,
        revision: &str,
        commit: &str,
        shared: &Shared,
    ) -> Result<bool, Failure> {
        let id = id(kind, &self.namespace);
        let token = jiff::Timestamp::now().to_string();
        cluster
            .merge(
                &id,
                "ask for a reconcile of",
                &request::reconcile(&token, false, false),
            )
            .await?;
        let progress = Progress::new(false);
        let last = RefCell::new("nothing was seen of it".to_owned());
        let seen = cluster
            .watch_until(&id, shared.timeout, |object| {
                let object = object?;
                if kind == "Kustomization" && path_of(object) != shared.path {
                    return Some(false);
                }
                let ready = object::ready(object);
                let state = one_line(&format!("{}: {}", ready.reason, ready.message));
                progress.show(&format!("waiting for {id}: {state}"));
                last.replace(state);
                let is_at = text(object, revision).ends_with(commit);
                let is_ready = ready.status == "True" && object::is_observed(object);
                // A state from before the request says nothing of new credentials.
                let is_answer = text(object, "/status/lastHandledReconcileAt") == token;
                (is_at && is_ready && is_answer && !is_reconciling(object)).then_some(true)
            })
            .await;
        progress.clear();
        match seen? {
            Some(is_delivered) => Ok(is_delivered),
            None => Err(Failure::TimedOut(format!(
                "the commit {commit} is pushed, but {id} is not ready at it: {}; `windlass why {}/{} -n {}` says more, and the \
                 command can be run again",
                last.borrow(),
                kind.to_lowercase(),
                id.name,
                id.namespace
            ))),
        }
    }
}

/// The folder that a Kustomization is built from.
fn path_of(kustomization: &Value) -> &str {
    folder(text(kustomization, "/spec/path"))
}

fn is_reconciling(object: &Value) -> bool {
    condition(object, "Reconciling").is_some_and(|condition| condition.status == "True")
}

/// The records of a Helm release that had the controllers until now: what they name is the Kustomization's.
async fn forget_release(platform: &Platform, report_line: &impl Fn(&str)) -> Result<(), Failure> {
    let secrets: Api<Secret> = Api::namespaced(platform.client.clone(), &platform.namespace);
    let labels = format!("owner=helm,name={RELEASE}");
    let found = secrets
        .list_metadata(&ListParams::default().labels(&labels))
        .await;
    let found = found.map_err(|error| Failure::request("list the records of the Helm release", error))?;
    if found.items.is_empty() {
        return Ok(());
    }
    report_line(&format!(
        "the Helm release {RELEASE} is now what the Kustomization delivers; its records are deleted"
    ));
    for record in found {
        let name = record.metadata.name.unwrap_or_default();
        let deleted = secrets.delete(&name, &DeleteParams::default()).await;
        deleted.map_err(|error| {
            Failure::request(format!("delete Secret/{}/{name}", platform.namespace), error)
        })?;
    }
    Ok(())
}

fn id(kind: &str, namespace: &str) -> ObjectId {
    let group = match kind {
        "Kustomization" => "kustomize.toolkit.fluxcd.io",
        _ => "source.toolkit.fluxcd.io",
    };
    ObjectId {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: namespace.to_owned(),
    }
}
