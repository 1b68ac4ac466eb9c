//! Applications in other clusters: each is watched by itself, as the user of the kubeconfig that the target names.
//!
//! The API server of a kubeconfig may be its author's: of what it sends, one object of the right name is kept for each watch.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use api::delivery::{AppKind, Pipeline};
use api::helm::HelmRelease;
use api::kustomize::Kustomization;
use api::meta::KubeConfigReference;
use api::source::{GitRepository, OCIRepository};
use cluster_access::targets::{Place, Placement, Target, Targets};
use controller_kit::queue::Queue;
use controller_kit::{ObjectKey, check_name};
use futures::future::join_all;
use futures::{StreamExt as _, pin_mut};
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::app::{App, Facts};

/// How long an application that was never asked for is waited for, and a Kustomization.
const PATIENCE: Duration = Duration::from_secs(5);
/// Watches of all pipelines together, and of those of a namespace: one tenant must not use up those of all.
const MAX_WATCHES: usize = 10_000;
const MAX_OF_NAMESPACE: usize = 1000;

/// Clusters of one pipeline, by their kubeconfigs; or why they do not answer.
pub(crate) type Clusters = HashMap<String, Result<Arc<Target>, String>>;

/// What is watched in other clusters.
pub(crate) struct Remotes {
    /// Made for the first target that is in another cluster: most pipelines have none.
    targets: LazyLock<Targets, Make>,
    watched: Mutex<HashMap<Key, Watched>>,
}

type Make = Box<dyn FnOnce() -> Targets + Send>;

/// An application in a cluster.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    place: Place,
    kind: AppKind,
    app: ObjectKey,
}

struct Watched {
    state: watch::Receiver<State>,
    /// Pipelines that look at it.
    users: Arc<Mutex<HashSet<ObjectKey>>>,
    task: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a watch told last.
#[derive(Debug, Clone, Default)]
struct State {
    /// Whether it was listed.
    is_known: bool,
    facts: Option<Facts>,
    /// Why it cannot be watched now.
    problem: Option<String>,
}

/// What a kubeconfig is called by.
pub(crate) fn called(reference: &KubeConfigReference) -> String {
    match (&reference.secret_ref, &reference.config_map_ref) {
        (Some(secret), _) => format!("{}/{}", secret.name, secret.key.as_deref().unwrap_or_default()),
        (None, Some(map)) => format!("ConfigMap/{}", map.name),
        (None, None) => String::new(),
    }
}

impl Remotes {
    pub(crate) fn new(targets: impl FnOnce() -> Targets + Send + 'static) -> Self {
        Self {
            targets: LazyLock::new(Box::new(targets)),
            watched: Mutex::default(),
        }
    }

    /// A cluster, as an account there.
    pub(crate) async fn target(
        &self,
        placement: Placement<'_>,
    ) -> Result<Arc<Target>, cluster_access::targets::Error> {
        self.targets.target_of(placement).await
    }

    /// The clusters of a pipeline's targets. All at once: one that does not answer is waited for beside the others.
    pub(crate) async fn clusters(&self, pipeline: &Pipeline) -> Clusters {
        let namespace = pipeline.namespace().unwrap_or_default();
        let targets = pipeline.spec.environments.iter().flat_map(|one| &one.targets);
        let references: HashMap<String, &KubeConfigReference> = targets
            .filter_map(|target| target.kube_config.as_ref())
            .map(|reference| (called(reference), reference))
            .collect();
        let asking = references.into_iter().map(async |(name, reference)| {
            let placement = Placement {
                namespace: &namespace,
                service_account: None,
                kube_config: Some(reference),
            };
            let found = self.targets.target_of(placement).await;
            (name, found.map_err(|error| error_chain::chain(&error)))
        });
        join_all(asking).await.into_iter().collect()
    }

    /// An application of a cluster; None if it is not there. Changes of it wake the pipeline from now on.
    pub(crate) async fn app(
        &self,
        cluster: &Target,
        kind: AppKind,
        app: &ObjectKey,
        (user, queue): (&ObjectKey, &Queue<ObjectKey>),
    ) -> Result<Option<Facts>, String> {
        // A tenant's text, which becomes a part of a path.
        check_name(&app.namespace)?;
        let key = Key {
            place: cluster.place.clone(),
            kind,
            app: app.clone(),
        };
        let mut state = self.watch(key, cluster, user, queue)?;
        let known = state.wait_for(|state| state.is_known || state.problem.is_some());
        let late = || {
            format!(
                "the cluster did not say within {} s whether it is there",
                PATIENCE.as_secs()
            )
        };
        let state = tokio::time::timeout(PATIENCE, known).await.map_err(|_| late())?;
        let state = state.map_err(|_| late())?;
        match &state.problem {
            Some(problem) => Err(problem.clone()),
            None => Ok(state.facts.clone()),
        }
    }

    fn watch(
        &self,
        key: Key,
        cluster: &Target,
        user: &ObjectKey,
        queue: &Queue<ObjectKey>,
    ) -> Result<watch::Receiver<State>, String> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = watched.get(&key) {
            users(&known.users).insert(user.clone());
            return Ok(known.state.clone());
        }
        let is_own = |known: &&Watched| {
            users(&known.users)
                .iter()
                .any(|one| one.namespace == user.namespace)
        };
        let own = watched.values().filter(is_own).count();
        if watched.len() >= MAX_WATCHES || own >= MAX_OF_NAMESPACE {
            return Err(format!(
                "{own} applications in other clusters are watched for this namespace, and no more may be"
            ));
        }
        let (sender, state) = watch::channel(State::default());
        let own = Arc::new(Mutex::new(HashSet::from([user.clone()])));
        let follow = Follow {
            sender,
            users: own.clone(),
            queue: queue.clone(),
            name: key.app.name.clone(),
        };
        let (client, namespace) = (cluster.client.clone(), key.app.namespace.clone());
        let task = match key.kind {
            AppKind::HelmRelease => {
                tokio::spawn(follow.run(Api::<App<HelmRelease>>::namespaced(client, &namespace)))
            }
            AppKind::Kustomization => {
                tokio::spawn(follow.run(Api::<App<Kustomization>>::namespaced(client, &namespace)))
            }
            AppKind::OCIRepository => {
                tokio::spawn(follow.run(Api::<App<OCIRepository>>::namespaced(client, &namespace)))
            }
            AppKind::GitRepository => {
                tokio::spawn(follow.run(Api::<App<GitRepository>>::namespaced(client, &namespace)))
            }
        };
        let known = Watched {
            state: state.clone(),
            users: own,
            task: task.abort_handle(),
        };
        watched.insert(key, known);
        Ok(state)
    }

    /// Ends the watches that a pipeline used and does not use any more: all but those of these applications.
    pub(crate) fn retain(&self, user: &ObjectKey, used: &[(Place, AppKind, ObjectKey)]) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|key, known| {
            let is_used = used
                .iter()
                .any(|(place, kind, app)| (place, kind, app) == (&key.place, &key.kind, &key.app));
            let mut users = users(&known.users);
            if !is_used {
                users.remove(user);
            }
            !users.is_empty()
        });
    }

    /// The Kustomization of a cluster that an application names as its owner, if it is there.
    pub(crate) async fn kustomization(
        &self,
        cluster: &Target,
        owner: &ObjectKey,
    ) -> Result<Option<App<Kustomization>>, String> {
        // Labels of the other cluster, which become a part of a path.
        check_name(&owner.namespace)?;
        check_name(&owner.name)?;
        let api: Api<App<Kustomization>> = Api::namespaced(cluster.client.clone(), &owner.namespace);
        let reading = tokio::time::timeout(PATIENCE, api.get_opt(&owner.name));
        let late = |_| format!("the cluster did not answer within {} s", PATIENCE.as_secs());
        reading
            .await
            .map_err(late)?
            .map_err(|error| error_chain::chain(&error))
    }
}

fn users(users: &Mutex<HashSet<ObjectKey>>) -> std::sync::MutexGuard<'_, HashSet<ObjectKey>> {
    users.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A watch of one application.
struct Follow {
    sender: watch::Sender<State>,
    users: Arc<Mutex<HashSet<ObjectKey>>>,
    queue: Queue<ObjectKey>,
    name: String,
}

impl Follow {
    async fn run<K>(self, api: Api<App<K>>)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + 'static,
        App<K>: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let only = Config::default().fields(&format!("metadata.name={}", self.name));
        let events = watcher(api, only).default_backoff();
        pin_mut!(events);
        let mut found = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => found = None,
                // A server that does not select is not ours.
                Ok(Event::InitApply(app)) => {
                    found = found.or((app.name_any() == self.name).then(|| app.facts()));
                }
                Ok(Event::InitDone) => self.tell(found.take(), None),
                Ok(Event::Apply(app)) if app.name_any() == self.name => self.tell(Some(app.facts()), None),
                Ok(Event::Delete(app)) if app.name_any() == self.name => self.tell(None, None),
                Ok(Event::Apply(_) | Event::Delete(_)) => {}
                Err(error) => self.tell(None, Some(error_chain::chain(&error))),
            }
        }
    }

    fn tell(&self, facts: Option<Facts>, problem: Option<String>) {
        let is_new = self.sender.send_if_modified(|state| {
            let is_same =
                state.is_known == problem.is_none() && state.facts == facts && state.problem == problem;
            if !is_same {
                *state = State {
                    is_known: problem.is_none(),
                    facts,
                    problem,
                };
            }
            !is_same
        });
        if is_new {
            for pipeline in users(&self.users).iter() {
                self.queue.add(pipeline.clone());
            }
        }
    }
}
