//! The way to a forge: the address of a repository, and who signs in there by a Secret of the object's namespace.
//!
//! Credentials are those of the Secret, never the controller's own. Redirects are not followed: what is in a request opens
//! the repository to whoever has it.

use std::time::Duration;

use ::forge::exchange::{Answer, Request};
use ::forge::{Forge, Kind, Login};
use api::delivery::{ForgeProvider, ForgeSpec};
use bytes::{Bytes, BytesMut};
use cloud_identity::github::{APP_ID, App};
use futures::future::BoxFuture;
use tokio::time::Instant;
use transport::auth::SecretData;
use transport::{auth, http};
use workload_identity::Exchange;

use crate::error::{ProxyError, ReadError};
use crate::identity::Identities;
use crate::reader::Reader;

/// Why no one can sign in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The proxy cannot be read.
    #[error("failed to configure the proxy")]
    Proxy(#[from] ProxyError),
    /// The Secret has certificates that cannot be used.
    #[error("failed to configure authentication options")]
    Authentication(#[from] auth::Error),
    /// The GitHub App does not get in.
    #[error("failed to sign in as a GitHub App")]
    App(#[from] cloud_identity::Error),
    /// The forge cannot be asked.
    #[error(transparent)]
    Forge(#[from] ::forge::Error),
}

/// What all forges share on their way.
#[derive(Clone, Copy)]
pub struct Ways<'a> {
    /// HTTP clients.
    pub clients: &'a http::Clients,
    /// Tokens of GitHub Apps.
    pub identities: &'a Identities,
    /// How long each request may take.
    pub timeout: Duration,
}

/// Signs in at a forge for the repository at this address.
///
/// # Errors
/// When a Secret cannot be read or used.
pub async fn sign_in(
    spec: &ForgeSpec,
    address: &str,
    reader: &Reader,
    ways: Ways<'_>,
) -> Result<Forge<'static>, Error> {
    let secret = reader.secret(&spec.secret_ref.name).await?;
    let proxy = match &spec.proxy_secret_ref {
        Some(reference) => Some(reader.proxy(&reference.name).await?),
        None => None,
    };
    let settings = http::Settings {
        proxy,
        ..auth::tls(&secret)?
    };
    let kind = kind(spec.provider);
    let login = login(kind, &secret, &settings, ways).await?;
    Ok(Forge::new(kind, address, &login, Sender::new(settings, ways))?)
}

/// Opens the repository at this address, with a login only if there is a Secret for it.
///
/// # Errors
/// When the Secret cannot be used, or the forge is one where everyone needs a login.
pub async fn open(
    kind: Kind,
    address: &str,
    secret: Option<&SecretData>,
    settings: http::Settings,
    ways: Ways<'_>,
) -> Result<Forge<'static>, Error> {
    match secret {
        Some(secret) => {
            let login = login(kind, secret, &settings, ways).await?;
            Ok(Forge::new(kind, address, &login, Sender::new(settings, ways))?)
        }
        None => Ok(Forge::public(kind, address, Sender::new(settings, ways))?),
    }
}

async fn login(
    kind: Kind,
    secret: &SecretData,
    settings: &http::Settings,
    ways: Ways<'_>,
) -> Result<Login, Error> {
    let text = |key: &str| {
        let value = secret.get(key).map(|value| String::from_utf8_lossy(value));
        let value = value.map(|value| value.trim().to_owned());
        value.filter(|value| !value.is_empty())
    };
    if kind == Kind::GitHub && secret.contains_key(APP_ID) {
        let exchange = Exchange {
            clients: ways.clients.clone(),
            settings: settings.clone(),
            deadline: Some(Instant::now() + ways.timeout),
        };
        let app = App::from_secret(secret)?;
        let token = app.login(ways.identities.session(&exchange)).await?;
        return Ok(Login {
            username: String::new(),
            password: token
                .as_login()
                .map(|(_, token)| token.to_owned())
                .unwrap_or_default(),
        });
    }
    Ok(
        match (text("token").or_else(|| text("bearerToken")), text("password")) {
            (Some(token), _) => Login {
                username: String::new(),
                password: token,
            },
            (None, password) => Login {
                username: text("username").unwrap_or_default(),
                password: password.unwrap_or_default(),
            },
        },
    )
}

fn kind(provider: ForgeProvider) -> Kind {
    match provider {
        ForgeProvider::GitHub => Kind::GitHub,
        ForgeProvider::GitLab => Kind::GitLab,
        ForgeProvider::Gitea => Kind::Gitea,
        ForgeProvider::Bitbucket => Kind::Bitbucket,
        ForgeProvider::BitbucketServer => Kind::BitbucketServer,
        ForgeProvider::AzureDevOps => Kind::AzureDevOps,
    }
}

/// Sends requests to a forge.
struct Sender {
    clients: http::Clients,
    settings: http::Settings,
    timeout: Duration,
}

impl Sender {
    fn new(settings: http::Settings, ways: Ways<'_>) -> Self {
        Self {
            clients: ways.clients.clone(),
            settings,
            timeout: ways.timeout,
        }
    }

    async fn send(&self, request: Request) -> Result<Answer, http::Error> {
        let deadline = Instant::now() + self.timeout;
        let host = request.url.host_str().unwrap_or_default();
        let client = self.clients.get(&self.settings.clone().towards(host))?;
        let builder = client
            .request(request.method, request.url.clone())
            .headers(request.headers)
            .body(request.body);
        let mut response = http::within(deadline, &request.url, builder.send()).await?;
        let mut body = BytesMut::new();
        let mut is_cut = false;
        while let Some(chunk) = http::next_chunk(&mut response, deadline).await? {
            let room = request.longest - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            is_cut = chunk.len() > room;
            if is_cut {
                break;
            }
        }
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: Bytes::from(body),
            is_cut,
        })
    }
}

impl ::forge::exchange::Exchange for Sender {
    fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, ::forge::Error>> {
        Box::pin(async move {
            let sent = self.send(request).await;
            sent.map_err(|error| ::forge::Error::passing(error_chain::chain(&error)))
        })
    }
}
