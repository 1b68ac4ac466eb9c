//! Tokens of cloud providers for fetches: what all objects share.

use std::sync::Arc;
use std::time::Duration;

use api::source::OCIProvider;
use cloud_identity::registry::{self, Cloud};
use cloud_identity::{Cache, Environment, Identity, Session};
use controller_kit::metrics::TokenCacheCounts;
use oci_client::credentials::Credentials;
use workload_identity::Exchange;

/// Context that all objects share: cached tokens, and the permissions of the controller.
#[derive(Clone)]
pub struct Identities {
    cache: Arc<Cache>,
    environment: Arc<Environment>,
    /// Feature gate ObjectLevelWorkloadIdentity.
    pub object_level: bool,
    /// `--default-service-account`: who objects are that name no ServiceAccount. None: they are the controller.
    pub default_service_account: Option<String>,
    /// `--no-cross-namespace-refs`: the controller's own identity is not shown on a way that an object's owner chose.
    pub locked: bool,
    /// `STORAGE_EMULATOR_HOST`: where Google's object store is instead of there, and wants no tokens.
    pub storage_emulator: Option<String>,
}

impl Identities {
    /// With a cache for so many tokens, each for no longer than this.
    pub fn new(
        capacity: usize,
        longest: Duration,
        object_level: bool,
        default_service_account: &str,
    ) -> Self {
        let name = default_service_account.to_owned();
        Self {
            cache: Arc::new(Cache::new(capacity, longest)),
            environment: Arc::new(Environment::of_process()),
            object_level,
            locked: false,
            default_service_account: Some(name).filter(|name| !name.is_empty()),
            storage_emulator: std::env::var("STORAGE_EMULATOR_HOST")
                .ok()
                .filter(|host| !host.is_empty()),
        }
    }

    /// The same, for a controller that tenants share.
    pub fn locked(self, locked: bool) -> Self {
        Self { locked, ..self }
    }

    /// Counters of the token cache.
    pub fn token_cache(&self) -> TokenCacheCounts {
        workload_identity::counts(&self.cache)
    }

    /// The same in other surroundings, for tests.
    pub fn within(self, environment: Environment) -> Self {
        Self {
            environment: Arc::new(environment),
            ..self
        }
    }

    /// A session that asks through this exchange.
    pub fn session<'a>(&'a self, exchange: &'a Exchange) -> Session<'a> {
        Session {
            http: exchange,
            environment: &self.environment,
            cache: &self.cache,
        }
    }
}

/// Name and password for a registry of a cloud provider; None for one that is no one's.
///
/// For artifacts and for charts alike: whoever has `spec.provider` and pulls from a registry asks here.
pub async fn registry_credentials(
    provider: OCIProvider,
    host: &str,
    identity: &Identity,
    identities: &Identities,
    exchange: &Exchange,
) -> Result<Option<Credentials>, cloud_identity::Error> {
    let cloud = match provider {
        OCIProvider::Generic => return Ok(None),
        OCIProvider::Aws => Cloud::Aws,
        OCIProvider::Azure => Cloud::Azure,
        OCIProvider::Gcp => Cloud::Gcp,
    };
    let token = registry::login(cloud, host, identity, identities.session(exchange)).await?;
    Ok(token
        .as_login()
        .map(|(username, password)| Credentials::Basic(username.to_owned(), password.to_owned())))
}
