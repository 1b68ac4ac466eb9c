//! Identities of this controller elsewhere: at cloud providers, at Vault, at other clusters. Its own, or
//! those of a ServiceAccount in the namespace of an object.
//!
//! Tokens of ServiceAccounts come from TokenRequest at this cluster. What becomes of them at a provider is
//! `cloud_identity`'s, which asks by an [`Exchange`].

mod exchange;
mod tokens;

use std::sync::Arc;

use cloud_identity::{Access, Cache, Counts, Environment, Identity, ServiceAccount, Session};
use controller_kit::check_name;
use controller_kit::flags::TokenCacheFlags;
use controller_kit::metrics::TokenCacheCounts;
use k8s_openapi::api::core::v1;
use kube::{Api, Client};

pub use exchange::Exchange;
pub use tokens::{Issued, Tokens};

/// Context that all objects share: cached tokens, and permitted identities.
#[derive(Clone)]
pub struct Identities {
    client: Client,
    access: Access,
    object_level: bool,
    /// Audiences of services that know this controller.
    own_audiences: Arc<[String]>,
}

impl Identities {
    /// `object_level` says whether objects may be ServiceAccounts (gate ObjectLevelWorkloadIdentity).
    pub fn new(client: Client, flags: TokenCacheFlags, object_level: bool) -> Self {
        let cache = Cache::new(flags.token_cache_max_size, flags.token_cache_max_duration);
        Self {
            client,
            access: Access {
                http: Arc::new(Exchange::default()),
                environment: Arc::new(Environment::of_process()),
                cache: Arc::new(cache),
            },
            object_level,
            own_audiences: Arc::default(),
        }
    }

    /// Has no token of the controller for this audience shown to others: a service of ours would take it.
    #[must_use]
    pub fn keeping(mut self, audience: &str) -> Self {
        self.own_audiences = [audience.to_owned()].into();
        self
    }

    /// No one is reached by these, for tests.
    #[doc(hidden)]
    pub fn without_clouds(client: Client) -> Self {
        struct Nobody;
        impl cloud_identity::Http for Nobody {
            fn send(
                &self,
                _: cloud_identity::Request,
            ) -> cloud_identity::Future<'_, Result<cloud_identity::Answer, cloud_identity::SendError>>
            {
                Box::pin(async { Err(cloud_identity::SendError("nobody is there".to_owned())) })
            }
        }
        Self {
            client,
            access: Access {
                http: Arc::new(Nobody),
                environment: Arc::default(),
                cache: Arc::new(Cache::new(0, std::time::Duration::ZERO)),
            },
            object_level: true,
            own_audiences: Arc::default(),
        }
    }

    /// Counters of the token cache.
    pub fn token_cache(&self) -> TokenCacheCounts {
        counts(&self.access.cache)
    }

    /// How clouds are reached, and whose tokens are remembered.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The same for `cloud_identity`.
    pub fn session(&self) -> Session<'_> {
        self.access.session()
    }

    /// Identity of an object that names this ServiceAccount of its namespace; the controller's when it names
    /// none.
    pub async fn identity_of(&self, namespace: &str, account: Option<&str>) -> Result<Identity, String> {
        let Some(name) = account else {
            return Ok(Identity::Controller);
        };
        self.check_object_level()?;
        let failed =
            |problem: String| format!("failed to get service account '{namespace}/{name}': {problem}");
        check_name(name).map_err(failed)?;
        let accounts: Api<v1::ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let found = accounts
            .get(name)
            .await
            .map_err(|error| failed(api_message(&error)))?;
        Ok(Identity::Account(ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            annotations: found.metadata.annotations.unwrap_or_default(),
            issuer: Arc::new(self.tokens_of(namespace, Some(name))),
        }))
    }

    /// Makes tokens of this ServiceAccount, or of the controller's own.
    pub fn tokens_of(&self, namespace: &str, account: Option<&str>) -> Tokens {
        match account {
            Some(name) => Tokens::of_account(self.client.clone(), namespace, name),
            None => Tokens::of_controller(self.client.clone(), Arc::clone(&self.own_audiences)),
        }
    }

    /// Refuses ServiceAccounts unless the gate is open.
    pub fn check_object_level(&self) -> Result<(), String> {
        if self.object_level {
            Ok(())
        } else {
            Err("ObjectLevelWorkloadIdentity feature gate is not enabled".to_owned())
        }
    }
}

/// Message of the API server, without the client's frame.
pub fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Returns what a cache of tokens did so far, for the metrics.
pub fn counts(cache: &Cache) -> TokenCacheCounts {
    let Counts {
        hits,
        misses,
        evictions,
        issued,
        failures,
        kept,
    } = cache.counts();
    TokenCacheCounts {
        hits,
        misses,
        evictions,
        issued,
        failures,
        kept,
    }
}
