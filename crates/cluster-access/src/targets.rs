//! Where objects are, and as whom they are read and written: this cluster or a remote one, as the controller or as a
//! tenant's service account.
//!
//! Engines, with their discovery and their watches on what is managed, are one per cluster; clients and waits are one per
//! account. Both are kept while they are used, up to a bound. A cluster that does not answer is found out by one short
//! question, whose answer all objects of that cluster share for a while, so that it holds no workers.

mod answers;
mod bearer;
mod described;
mod error;
mod kept;
mod remote;
mod target;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use artifact::Digest;
use controller_kit::flags::{ClientFlags, KubeconfigFlags};
use controller_kit::impersonation::{Account, as_account};
use controller_kit::metrics::RestMetrics;
use controller_kit::{client, kubeconfig};
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use kube_apply::{Drift, Engine, Owner};
use workload_identity::Identities;

use answers::Answers;
use described::Asker;
use kept::{Cluster, Kept};
use remote::Remote;

pub use error::Error;

pub use target::{Place, Placement, Target};

/// All targets of the process.
pub struct Targets {
    home: Arc<Target>,
    settings: kube_apply::Settings,
    kubeconfig: KubeconfigFlags,
    name: &'static str,
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
    /// Name of the controller, as remote clusters see it.
    pub name: &'static str,
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
            name: options.name,
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
    pub async fn target_of(&self, placement: Placement<'_>) -> Result<Arc<Target>, Error> {
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
                let client = client::connect_to(config, self.name, &unlimited, &self.metrics).await;
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
                let client = client::connect_to(config, self.name, &unlimited, &self.metrics).await;
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
