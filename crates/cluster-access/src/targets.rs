//! Where objects are, and as whom they are read and written: this cluster or a remote one, as the controller or as a
//! tenant's service account.
//!
//! Engines, with their discovery and their watches on what is managed, are one per cluster; clients and waits are one per
//! account. Both are kept while they are used, up to a bound. A cluster that does not answer is found out by one short
//! question, whose answer all objects of that cluster share for a while, so that it holds no workers.

mod answers;
mod bearer;
mod described;
mod kept;
mod remote;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::{KubeConfigReference, ValuesKind};
use artifact::Digest;
use controller_kit::flags::{ClientFlags, KubeconfigFlags};
use controller_kit::impersonation::{Account, as_account};
use controller_kit::metrics::RestMetrics;
use controller_kit::{client, kubeconfig};
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use kube_apply::{Drift, Engine, Owner};
use kube_health::{Hub, Resolve, ResolveError, Resolved};
use manifest::{GroupVersionKind, ObjectId};
use workload_identity::Identities;

use answers::Answers;
use described::Asker;
use kept::{Cluster, Kept};
use remote::Remote;

/// A cluster, seen by an account.
pub struct Target {
    /// Reads objects.
    pub client: Client,
    /// Applies and prunes.
    pub engine: Engine,
    /// Waits for health.
    pub hub: Hub,
    /// Which it is.
    pub place: Place,
}

impl Target {
    fn new(place: Place, client: Client, engine: Engine) -> Arc<Self> {
        let mapper = Arc::new(Mapper(engine.clone()));
        let label = engine.settings().name_label();
        let hub = match &place.account {
            Some(_) => Hub::by_namespace_with_owner_label(client.clone(), mapper, &label),
            None => Hub::with_owner_label(client.clone(), mapper, &label),
        };
        Arc::new(Self {
            place,
            hub,
            engine: engine.with_client(client.clone()),
            client,
        })
    }

    /// Reads an object; None if it cannot be had now, so that the watch will tell.
    pub async fn live(&self, id: &ObjectId, version: &str) -> Option<serde_json::Value> {
        let gvk = GroupVersionKind {
            group: id.group.clone(),
            version: version.to_owned(),
            kind: id.kind.clone(),
        };
        let resource = self.engine.mapper().resolve(&gvk).await.ok()?;
        let request = kube::core::Request::new(url(&resource.api, id))
            .get(&id.name, &Default::default())
            .ok()?;
        self.client.request(request).await.ok()
    }

    /// Returns whether the account of this target may change an object; None if the cluster does not say.
    pub async fn may_change(&self, id: &ObjectId, version: &str) -> Option<bool> {
        let gvk = GroupVersionKind {
            group: id.group.clone(),
            version: version.to_owned(),
            kind: id.kind.clone(),
        };
        let resource = self.engine.mapper().resolve_any_version(&gvk).await.ok()??;
        let attributes = ResourceAttributes {
            verb: Some("patch".to_owned()),
            group: Some(id.group.clone()),
            resource: Some(resource.api.plural.clone()),
            namespace: Some(id.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: Some(id.name.clone()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await.ok()?;
        Some(answer.status?.allowed)
    }
}

fn url(resource: &ApiResource, id: &ObjectId) -> String {
    let namespace = Some(id.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    <kube::core::DynamicObject as kube::Resource>::url_path(resource, namespace)
}

/// The engine's discovery, for the waits.
struct Mapper(Engine);

impl Resolve for Mapper {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        Box::pin(async move {
            let found = self.0.mapper().resolve(gvk).await?;
            Ok(Resolved {
                resource: found.api.clone(),
                namespaced: found.namespaced,
            })
        })
    }
}

/// Why there is no target.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The Secret with the kubeconfig cannot be read.
    #[error("failed to read the KubeConfig secret '{namespace}/{name}': {problem}")]
    ReadSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
        /// It does not exist.
        missing: bool,
    },
    /// It lacks the key.
    #[error("KubeConfig secret '{namespace}/{name}' does not contain a '{key}' key with a kubeconfig")]
    MissingKey {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// The kubeconfig cannot be used.
    #[error("failed to use the KubeConfig secret '{namespace}/{name}': {problem}")]
    UseKubeconfig {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why; nothing of its content.
        problem: String,
    },
    /// The ConfigMap that describes a cluster cannot be read.
    #[error("failed to get configmap {namespace}/{name}: {problem}")]
    ReadConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
        /// It does not exist.
        missing: bool,
    },
    /// It describes no cluster that can be used.
    #[error("failed to use the KubeConfig configmap '{namespace}/{name}': {problem}")]
    UseConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        problem: String,
    },
    /// The remote cluster does not answer.
    #[error("failed to reach the remote cluster {server}: {problem}")]
    Reach {
        /// Its address.
        server: String,
        /// Why.
        problem: String,
    },
    /// The name of the account is none.
    #[error("failed to impersonate '{0}': it is not the name of a service account")]
    Impersonate(String),
}

impl Error {
    /// Returns whether what describes the cluster does not exist, so that nobody can say where the objects are.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::ReadSecret { missing: true, .. } | Self::ReadConfigMap { missing: true, .. }
        )
    }
}

/// The parts of an object that say where its objects are and as which account they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement<'a> {
    /// `metadata.namespace`, in which everything is that the spec names.
    pub namespace: &'a str,
    /// `spec.serviceAccountName`.
    pub service_account: Option<&'a str>,
    /// `spec.kubeConfig`.
    pub kube_config: Option<&'a KubeConfigReference>,
}

impl Placement<'_> {
    /// Returns whether the cluster is described by this ConfigMap or Secret of the namespace.
    pub fn refers_to(&self, kind: ValuesKind, name: &str) -> bool {
        let Some(reference) = self.kube_config else {
            return false;
        };
        match kind {
            ValuesKind::Secret => reference
                .secret_ref
                .as_ref()
                .is_some_and(|secret| secret.name == name),
            ValuesKind::ConfigMap => reference
                .config_map_ref
                .as_ref()
                .is_some_and(|map| map.name == name),
        }
    }
}

/// Key of a target. With another key, the applied objects are elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Digest of what describes the cluster; None is this cluster.
    remote: Option<Digest>,
    account: Option<Account>,
}

impl Place {
    /// Returns whether it is the cluster that the controller runs in, as far as the spec says.
    pub fn is_home(&self) -> bool {
        self.remote.is_none()
    }
}

/// All targets of the process.
pub struct Targets {
    home: Arc<Target>,
    settings: kube_apply::Settings,
    kubeconfig: KubeconfigFlags,
    client: ClientFlags,
    metrics: RestMetrics,
    default_account: Option<String>,
    identities: Arc<Identities>,
    remote_account: Option<String>,
    drifts: UnboundedSender<Drift>,
    answers: Answers,
    kept: Mutex<Kept>,
}

/// How remote clusters are spoken to, and as whom by default.
pub struct Options {
    /// Features that a kubeconfig may use.
    pub kubeconfig: KubeconfigFlags,
    /// How an API server is spoken to.
    pub client: ClientFlags,
    /// Where requests are counted.
    pub metrics: RestMetrics,
    /// The account of objects that name none (`--default-service-account`).
    pub default_account: Option<String>,
    /// Identities for clusters that a ConfigMap describes.
    pub identities: Arc<Identities>,
    /// The account that asks them when the ConfigMap names none (`--default-kubeconfig-service-account`).
    pub remote_account: Option<String>,
}

impl Targets {
    /// Starts with this cluster. The drift of all clusters comes out of the stream.
    pub fn new(
        client: Client,
        settings: kube_apply::Settings,
        options: Options,
    ) -> (Self, UnboundedReceiver<Drift>) {
        let engine = Engine::new(client.clone(), settings.clone());
        let (drifts, told) = unbounded();
        let targets = Self {
            home: Target::new(Place::default(), client, engine.clone()),
            settings,
            kubeconfig: options.kubeconfig,
            client: options.client,
            metrics: options.metrics,
            default_account: options.default_account.filter(|name| !name.is_empty()),
            identities: options.identities,
            remote_account: options.remote_account.filter(|name| !name.is_empty()),
            drifts,
            answers: Answers::default(),
            kept: Mutex::default(),
        };
        targets.tell_drift_of(&engine);
        (targets, told)
    }

    /// The account that an object is reconciled as; None is the controller itself.
    pub fn account_of(&self, placement: Placement<'_>) -> Option<Account> {
        let own = placement.service_account.filter(|name| !name.is_empty());
        let name = own.or(self.default_account.as_deref())?;
        Some(Account {
            namespace: placement.namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns whether the account that an object is reconciled as is still there. As in Flux, it is looked for in this
    /// cluster.
    pub async fn has_account(&self, placement: Placement<'_>) -> kube::Result<bool> {
        let Some(account) = self.account_of(placement) else {
            return Ok(true);
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.home.client.clone(), &account.namespace);
        Ok(accounts.get_metadata_opt(&account.name).await?.is_some())
    }

    /// Finds the target of an object, which answers now if it is a remote one.
    pub async fn of(&self, placement: Placement<'_>) -> Result<Arc<Target>, Error> {
        let asker = Asker {
            default_account: self.remote_account.as_deref(),
            is_locked: self.default_account.is_some(),
        };
        let remote = remote::read(&self.home.client, placement, asker).await?;
        let account = self.account_of(placement);
        let place = Place {
            remote: remote.as_ref().map(|remote| remote.digest(account.is_some())),
            account,
        };
        let (client, engine) = match (remote, place.remote) {
            (Some(remote), Some(digest)) => self.cluster(remote, digest, place.account.is_some()).await?,
            _ => (self.home.client.clone(), self.home.engine.clone()),
        };
        if place == Place::default() {
            return Ok(Arc::clone(&self.home));
        }
        let mut kept = self.lock();
        if let Some(target) = kept.target(&place) {
            return Ok(target);
        }
        let client = match &place.account {
            Some(account) => {
                as_account(&client, account).map_err(|_| Error::Impersonate(account.name.clone()))?
            }
            None => client,
        };
        let target = Target::new(place, client, engine);
        kept.keep(&target);
        Ok(target)
    }

    /// Forgets what an object applied, wherever that was.
    pub fn forget(&self, owner: &Owner) {
        self.home.engine.managed().forget(owner);
        for engine in self.lock().engines() {
            engine.managed().forget(owner);
        }
    }

    /// A remote cluster that answers.
    async fn cluster(
        &self,
        remote: Remote,
        digest: Digest,
        impersonates: bool,
    ) -> Result<(Client, Engine), Error> {
        let known = self.lock().cluster(&digest);
        let cluster = match known {
            Some(cluster) => cluster,
            None => {
                let cluster = self.connect(remote, impersonates).await?;
                self.tell_drift_of(&cluster.engine);
                self.lock().keep_cluster(digest, cluster)
            }
        };
        if let Some(tokens) = &cluster.tokens {
            tokens.check().await?;
        }
        let answer = match cluster.fresh_answer() {
            Some(answer) => answer,
            None => {
                let answer = cluster.ask().await;
                self.lock().answered(&digest, answer.clone());
                answer
            }
        };
        match answer {
            Ok(()) => Ok((cluster.client, cluster.engine)),
            Err(problem) => Err(Error::Reach {
                server: cluster.server,
                problem,
            }),
        }
    }

    /// Finds a cluster. Nothing is asked of it yet: it may not answer.
    async fn connect(&self, remote: Remote, impersonates: bool) -> Result<Cluster, Error> {
        // Without a limit of our own.
        let unlimited = ClientFlags {
            kube_api_qps: 0.0,
            ..self.client.clone()
        };
        match remote {
            Remote::Kubeconfig(found) => {
                let unusable = |problem: String| Error::UseKubeconfig {
                    namespace: found.namespace.clone(),
                    name: found.name.clone(),
                    problem,
                };
                let config = kubeconfig::read(&found.bytes, &self.kubeconfig).await;
                let mut config = config.map_err(|error| unusable(error.to_string()))?;
                if impersonates {
                    // The account of the spec goes before the one of the kubeconfig.
                    config.auth_info.impersonate = None;
                    config.auth_info.impersonate_groups = None;
                    config.auth_info.impersonate_uid = None;
                    config.auth_info.impersonate_user_extra = None;
                }
                let server = config.cluster_url.to_string();
                let client = client::connect_to(config, &unlimited, &self.metrics).await;
                let client = self
                    .answers
                    .limit(&client.map_err(|error| unusable(error_chain::chain(&error)))?);
                let engine = Engine::new(client.clone(), self.settings.clone());
                Ok(Cluster::new(server, client, engine, None))
            }
            Remote::Described(description) => {
                let (namespace, name) = description.found_in();
                let unusable = |problem: String| Error::UseConfigMap {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    problem,
                };
                let config = description.config(&self.identities).await.map_err(unusable)?;
                let server = config.cluster_url.to_string();
                let client = client::connect_to(config, &unlimited, &self.metrics).await;
                let client = self
                    .answers
                    .limit(&client.map_err(|error| unusable(error_chain::chain(&error)))?);
                let tokens = Arc::new(bearer::Tokens::new(description, Arc::clone(&self.identities)));
                let client = bearer::with_tokens(&client, Arc::clone(&tokens));
                let engine = Engine::new(client.clone(), self.settings.clone());
                Ok(Cluster::new(server, client, engine, Some(tokens)))
            }
        }
    }

    fn tell_drift_of(&self, engine: &Engine) {
        let (mut drifts, teller) = (engine.managed().subscribe(), self.drifts.clone());
        // It ends with the engine.
        tokio::spawn(async move {
            while let Some(drift) = drifts.next().await {
                if teller.unbounded_send(drift).is_err() {
                    return;
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
