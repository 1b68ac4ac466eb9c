//! Tokens of cloud providers for fetches: the HTTP client that `cloud_identity` asks with, and what all objects share.

use std::sync::Arc;
use std::time::Duration;

use api::source::OCIProvider;
use cloud_identity::registry::{self, Cloud};
use cloud_identity::{
    Answer, Cache, Counts, Environment, Future, Http, Identity, Reach, Request, SendError, Session,
};
use controller_kit::metrics::TokenCacheCounts;
use tokio::time::Instant;

use oci_client::credentials::Credentials;
use transport::http;

/// As in Flux: a token service answers within this or is down.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Answers of token services are some kilobytes.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// What all objects share: the tokens that are still good, and what the controller is allowed to do.
#[derive(Clone)]
pub(crate) struct Identities {
    cache: Arc<Cache>,
    environment: Arc<Environment>,
    /// Feature gate ObjectLevelWorkloadIdentity.
    pub(crate) object_level: bool,
    /// `--default-service-account`: who objects are that name no ServiceAccount. None: they are the controller.
    pub(crate) default_service_account: Option<String>,
    /// `--no-cross-namespace-refs`: the controller's own identity is not shown on a way that an object's owner chose.
    pub(crate) locked: bool,
    /// `STORAGE_EMULATOR_HOST`: where Google's object store is instead of there, and wants no tokens.
    pub(crate) storage_emulator: Option<String>,
}

impl Identities {
    /// With a cache for so many tokens, each for no longer than this.
    pub(crate) fn new(
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
    pub(crate) fn locked(self, locked: bool) -> Self {
        Self { locked, ..self }
    }

    /// What the cache of tokens did so far.
    pub(crate) fn token_cache(&self) -> TokenCacheCounts {
        let Counts {
            hits,
            misses,
            evictions,
            issued,
            failures,
            kept,
        } = self.cache.counts();
        TokenCacheCounts {
            hits,
            misses,
            evictions,
            issued,
            failures,
            kept,
        }
    }

    /// The same in other surroundings.
    #[cfg(test)]
    pub(crate) fn within(self, environment: Environment) -> Self {
        Self {
            environment: Arc::new(environment),
            ..self
        }
    }

    /// A session that asks through this exchange.
    pub(crate) fn session<'a>(&'a self, exchange: &'a Exchange) -> Session<'a> {
        Session {
            http: exchange,
            environment: &self.environment,
            cache: &self.cache,
        }
    }
}

/// Asks token services: through the proxy of the object, with certificates where it gives any for them.
pub(crate) struct Exchange {
    pub(crate) clients: http::Clients,
    pub(crate) settings: http::Settings,
    pub(crate) deadline: Instant,
}

impl Exchange {
    async fn ask(&self, request: Request) -> Result<Answer, http::Error> {
        let deadline = self.deadline.min(Instant::now() + TIMEOUT);
        let client = match request.reach {
            Reach::Remote => {
                let host = request.url.host_str().unwrap_or_default();
                self.clients.get(&self.settings.clone().towards(host))?
            }
            Reach::Local => self.clients.get(&http::Settings {
                direct: true,
                ..Default::default()
            })?,
        };
        let builder = client
            .request(request.method, request.url.clone())
            .headers(request.headers)
            .body(request.body);
        let response = http::within(deadline, &request.url, builder.send()).await?;
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: http::read(response, MAX_ANSWER_BYTES, deadline).await?,
        })
    }
}

impl Http for Exchange {
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>> {
        Box::pin(async move {
            self.ask(request)
                .await
                .map_err(|error| SendError(error.to_string()))
        })
    }
}

/// Name and password for a registry of a cloud provider; None for one that is nobody's.
///
/// For artifacts and for charts alike: whoever has `spec.provider` and pulls from a registry asks here.
pub(crate) async fn registry_credentials(
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
