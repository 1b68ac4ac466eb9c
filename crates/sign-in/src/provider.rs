//! An OpenID provider: people are sent to it, and come back with a code that buys an ID token (authorization code flow with PKCE).

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreIdToken, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
    CoreProviderMetadata,
};
use openidconnect::{
    AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, HttpRequest, HttpResponse,
    IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, SignatureVerificationError,
    TokenResponse as _,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use crate::config::{Oidc, scopes};
use crate::identity::{self, User};

/// Someone waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Answers of providers have some kilobytes.
const MAX_ANSWER: usize = 1 << 20;
/// What a provider says of itself is asked anew after so long.
const HOLDS: Duration = Duration::from_secs(3600);
/// A token of a key that is not known has it asked anew, but not more often.
const NOT_SOONER: Duration = Duration::from_secs(10);
/// Longer codes and states are nobody's.
const MAX_PARAMETER: usize = 4096;

/// The path where people come back.
pub const CALLBACK: &str = "/oauth2/callback";

/// Why someone is not signed in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The provider does not answer, or not as one.
    #[error("the identity provider {issuer} does not answer as one: {problem}")]
    Provider {
        /// Which.
        issuer: Url,
        /// Why.
        problem: String,
    },
    /// It refused.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// The answer belongs to nobody who was sent there from this browser.
    #[error("this sign-in was not begun here, or took too long; begin again")]
    NotBegun,
    /// The token is not one for us.
    #[error("the identity provider's token is not accepted: {0}")]
    Token(String),
    /// Its owner is not let in.
    #[error(transparent)]
    Identity(#[from] identity::Error),
}

/// What is kept in the browser while someone is at the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    state: String,
    nonce: String,
    verifier: String,
    /// The path that they wanted to see.
    pub to: String,
}

impl Pending {
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            state: "state".to_owned(),
            nonce: "nonce".to_owned(),
            verifier: "verifier".to_owned(),
            to: "/".to_owned(),
        }
    }
}

/// How someone comes back.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Callback {
    code: String,
    state: String,
    error: Option<String>,
    error_description: Option<String>,
}

/// A provider, and what it said of itself.
pub struct Provider {
    config: Oidc,
    callback: RedirectUrl,
    http: reqwest::Client,
    known: Mutex<Option<(Instant, Arc<Known>)>>,
}

struct Known {
    metadata: CoreProviderMetadata,
    scopes: Option<Vec<String>>,
}

/// A request to a provider that failed.
#[derive(Debug, thiserror::Error)]
enum HttpError {
    #[error(transparent)]
    Send(reqwest::Error),
    #[error("the answer is longer than {MAX_ANSWER} bytes")]
    TooLong,
    #[error(transparent)]
    Build(#[from] http::Error),
}

impl Provider {
    /// Sets a provider up for a console at `base`. It is asked when the first person comes.
    ///
    /// # Errors
    /// When there is no HTTP client.
    pub fn new(config: Oidc, base: &Url) -> Result<Self, Error> {
        let issuer = config.issuer.clone();
        let problem = |problem: String| Error::Provider {
            issuer: issuer.clone(),
            problem,
        };
        let callback = base.join(CALLBACK).map_err(|error| problem(error.to_string()))?;
        // What a provider says is at its own addresses; it does not send us elsewhere.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()
            .map_err(|error| problem(error.to_string()))?;
        Ok(Self {
            callback: RedirectUrl::from_url(callback),
            config,
            http,
            known: Mutex::default(),
        })
    }

    /// How long sessions last.
    pub fn session(&self) -> Duration {
        self.config.session
    }

    /// Where to send someone, and what their browser must keep. `to` is the path that they wanted to see.
    ///
    /// # Errors
    /// When the provider does not say where people sign in.
    pub async fn begin(&self, to: &str) -> Result<(Url, Pending), Error> {
        let known = self.known(HOLDS).await?;
        let client =
            CoreClient::from_provider_metadata(known.metadata.clone(), self.client_id(), self.secret())
                .set_redirect_uri(self.callback.clone());
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut url = client.authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        );
        let wanted = scopes(self.config.scopes.as_deref(), known.scopes.as_deref());
        // The crate asks for this one by itself.
        for scope in wanted.into_iter().filter(|scope| scope != "openid") {
            url = url.add_scope(Scope::new(scope));
        }
        for (name, value) in &self.config.url_parameters {
            url = url.add_extra_param(name.clone(), value.clone());
        }
        let (url, state, nonce) = url.set_pkce_challenge(challenge).url();
        let pending = Pending {
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
            to: local_path(to).to_owned(),
        };
        Ok((url, pending))
    }

    /// Takes someone back: who they are.
    ///
    /// # Errors
    /// When they did not begin here, the provider refuses, its token is not for us, or its owner is not let in.
    pub async fn end(&self, pending: &Pending, callback: Callback) -> Result<User, Error> {
        // Both are random; which bytes of a guess are right does not show in the time that this takes over a network, and a
        // guess is worth nothing without the cookie.
        let is_ours = !callback.state.is_empty() && callback.state == pending.state;
        if !is_ours || callback.code.len() > MAX_PARAMETER {
            return Err(Error::NotBegun);
        }
        if let Some(error) = callback.error {
            let text = callback.error_description.unwrap_or(error);
            let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
            return Err(Error::Refused(text));
        }
        let known = self.known(HOLDS).await?;
        let client =
            CoreClient::from_provider_metadata(known.metadata.clone(), self.client_id(), self.secret())
                .set_redirect_uri(self.callback.clone());
        let http = self.sender();
        let exchange = client
            .exchange_code(AuthorizationCode::new(callback.code))
            .map_err(|error| self.problem(error.to_string()))?;
        let tokens = exchange
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier.clone()))
            .request_async(&http)
            .await
            .map_err(|error| Error::Refused(chain(&error)))?;
        let token = tokens
            .id_token()
            .ok_or_else(|| Error::Token("there is none".to_owned()))?;
        let nonce = Nonce::new(pending.nonce.clone());
        let checked = match self.check(&known, token, &nonce) {
            // It may have a new key.
            Err(ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            )) => self.check(&*self.known(NOT_SOONER).await?, token, &nonce),
            checked => checked,
        };
        checked.map_err(|error| Error::Token(chain(&error)))?;
        let claims = claims(token).ok_or_else(|| Error::Token("its claims are no JSON".to_owned()))?;
        Ok(self.config.mapping.user(&claims)?)
    }

    fn check(
        &self,
        known: &Known,
        token: &CoreIdToken,
        nonce: &Nonce,
    ) -> Result<(), ClaimsVerificationError> {
        let client =
            CoreClient::from_provider_metadata(known.metadata.clone(), self.client_id(), self.secret());
        // Only keys of the provider count: with a symmetric algorithm, the client's password would be one.
        let algorithms = known
            .metadata
            .id_token_signing_alg_values_supported()
            .iter()
            .cloned();
        let verifier = client
            .id_token_verifier()
            .set_allowed_algs(algorithms.filter(is_asymmetric));
        token.claims(&verifier, nonce).map(|_| ())
    }

    fn client_id(&self) -> ClientId {
        ClientId::new(self.config.client_id.clone())
    }

    fn secret(&self) -> Option<ClientSecret> {
        self.config.client_secret.clone().map(ClientSecret::new)
    }

    /// What the provider says of itself, not older than this.
    async fn known(&self, age: Duration) -> Result<Arc<Known>, Error> {
        let mut known = self.known.lock().await;
        if let Some((since, known)) = known.as_ref().filter(|(since, _)| since.elapsed() < age) {
            let _ = since;
            return Ok(known.clone());
        }
        let found = Arc::new(self.discover().await?);
        *known = Some((Instant::now(), found.clone()));
        Ok(found)
    }

    async fn discover(&self) -> Result<Known, Error> {
        let http = self.sender();
        // Without the slash that a URL without a path has: issuers are compared as text.
        let issuer = self.config.issuer.as_str().trim_end_matches('/').to_owned();
        let mut last = None;
        for issuer in [issuer.clone(), format!("{issuer}/")] {
            let issuer = IssuerUrl::new(issuer).map_err(|error| self.problem(error.to_string()))?;
            match CoreProviderMetadata::discover_async(issuer, &http).await {
                Ok(metadata) => {
                    let metadata = self.with_keys(metadata).await?;
                    let scopes = metadata.scopes_supported();
                    let texts = |scopes: &Vec<Scope>| scopes.iter().map(|scope| scope.to_string()).collect();
                    return Ok(Known {
                        scopes: scopes.map(texts),
                        metadata,
                    });
                }
                Err(error) => last = last.or(Some(chain(&error))),
            }
        }
        Err(self.problem(last.unwrap_or_default()))
    }

    async fn with_keys(&self, metadata: CoreProviderMetadata) -> Result<CoreProviderMetadata, Error> {
        let http = self.sender();
        let keys = CoreJsonWebKeySet::fetch_async(metadata.jwks_uri(), &http).await;
        let keys = keys.map_err(|error| self.problem(chain(&error)))?;
        Ok(metadata.set_jwks(keys))
    }

    /// Sends requests to the provider.
    fn sender(&self) -> impl Fn(HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> + use<> {
        let http = self.http.clone();
        move |request| send(http.clone(), request).boxed()
    }

    fn problem(&self, problem: String) -> Error {
        Error::Provider {
            issuer: self.config.issuer.clone(),
            problem,
        }
    }
}

async fn send(http: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, HttpError> {
    let (parts, body) = request.into_parts();
    let sending = http
        .request(parts.method, parts.uri.to_string())
        .headers(parts.headers)
        .body(body);
    let mut answer = sending
        .send()
        .await
        .map_err(|error| HttpError::Send(error.without_url()))?;
    let mut built = http::Response::builder().status(answer.status());
    if let Some(headers) = built.headers_mut() {
        *headers = answer.headers().clone();
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| HttpError::Send(error.without_url()))?
    {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(HttpError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(built.body(body)?)
}

fn is_asymmetric(algorithm: &CoreJwsSigningAlgorithm) -> bool {
    use CoreJwsSigningAlgorithm as Algorithm;
    !matches!(
        algorithm,
        Algorithm::None | Algorithm::HmacSha256 | Algorithm::HmacSha384 | Algorithm::HmacSha512
    )
}

/// All claims of a token that was checked.
fn claims(token: &CoreIdToken) -> Option<Value> {
    let text = token.to_string();
    let payload = text.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// A path of this console; someone else's address becomes `/`.
pub fn local_path(to: &str) -> &str {
    let is_local = to.starts_with('/') && !to.starts_with("//") && to.len() <= 1024;
    let is_plain = !to.contains('\\') && to.chars().all(|c| c.is_ascii_graphic());
    if is_local && is_plain { to } else { "/" }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        assert_eq!(local_path("/apps?kind=ks#a"), "/apps?kind=ks#a");
        let long = format!("/{}", "a".repeat(2000));
        for to in [
            "",
            "//evil.com",
            "/\\evil.com",
            "https://evil.com",
            "javascript:alert(1)",
            "/a\r\nSet-Cookie: b",
            "/\t/evil.com",
            &long,
        ] {
            assert_eq!(local_path(to), "/", "{to}");
        }
    }
}
