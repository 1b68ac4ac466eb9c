//! `spec.provider` of a GitRepository: credentials from a cloud's identity or a GitHub App, put where those of a Secret
//! would be. The rest of the way is the same.

use api::source::{GitProvider, GitRepository};
use cloud_identity::{Token, git, github};
use transport::auth::{self, SecretData};
use transport::http;
use url::Url;
use workload_identity::Exchange;

use super::{Error, References, Ways};
use crate::reader::Reader;

/// Lasting problem of a provider without GitHub App data in its Secret.
const NO_APP: &str = "secretRef with github app data must be specified when provider is set to github";

/// A spec that lacks what its provider takes.
pub fn refusal(object: &GitRepository) -> Option<Error> {
    let lacks = object.provider() == GitProvider::Github && object.spec.secret_ref.is_none();
    lacks.then(|| Error::ProviderConfiguration {
        problem: NO_APP.to_owned(),
        is_final: true,
    })
}

/// Returns the object's identity at its provider.
pub(super) async fn identity(
    object: &GitRepository,
    reader: &Reader,
) -> Result<cloud_identity::Identity, Error> {
    match object.provider() {
        GitProvider::Aws | GitProvider::Azure => {
            let spec = &object.spec;
            let ways = [
                ("spec.proxySecretRef", spec.proxy_secret_ref.is_some()),
                // It may hold certificates.
                ("spec.secretRef", spec.secret_ref.is_some()),
            ];
            let account = spec.service_account_name.as_deref();
            Ok(reader.identity(account, &ways).await??)
        }
        GitProvider::Generic | GitProvider::Github => Ok(cloud_identity::Identity::Controller),
    }
}

/// The references with the credentials that the provider gives.
pub(super) async fn with_credentials(
    object: &GitRepository,
    url: &Url,
    references: &References,
    ways: Ways<'_>,
) -> Result<References, Error> {
    let mut references = references.clone();
    let provider = object.provider();
    if provider == GitProvider::Generic {
        return Ok(references);
    }
    let failed = |source| Error::ConfigureProvider(source);
    let tls = auth::tls(&references.secret).map_err(Error::ConfigureAuthentication)?;
    let exchange = Exchange {
        clients: ways.clients.clone(),
        settings: http::Settings {
            proxy: references.proxy.clone(),
            // Those of the App are for its API as well; a cloud has certificates of its own.
            ..if provider == GitProvider::Github {
                tls
            } else {
                http::Settings::default()
            }
        },
        deadline: Some(ways.deadline),
    };
    let session = ways.identities.session(&exchange);
    let token = match provider {
        GitProvider::Github => {
            if !references.secret.contains_key(github::APP_ID) {
                return Err(Error::ProviderConfiguration {
                    problem: NO_APP.to_owned(),
                    is_final: false,
                });
            }
            let app = github::App::from_secret(&references.secret).map_err(failed)?;
            app.login(session).await
        }
        GitProvider::Azure => git::azure_dev_ops(url, &references.identity, session).await,
        GitProvider::Aws | GitProvider::Generic => git::code_commit(url, &references.identity, session).await,
    };
    let token = token.map_err(failed)?;
    put(&mut references.secret, &token);
    Ok(references)
}

/// Puts the token where credentials of a Secret stand; whatever stood there counts no more.
fn put(secret: &mut SecretData, token: &Token) {
    secret.retain(|key, _| !key.starts_with("githubApp"));
    for key in ["username", "password", "bearerToken"] {
        secret.remove(key);
    }
    if let Some((username, password)) = token.as_login() {
        secret.insert("username".to_owned(), username.into());
        secret.insert("password".to_owned(), password.into());
    }
    if let Some(token) = token.as_bearer() {
        secret.insert("bearerToken".to_owned(), token.into());
    }
}
