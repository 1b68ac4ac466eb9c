//! The way to an access token that all providers share.

use std::sync::Arc;

use crate::cache::Cache;
use crate::environment::Environment;
use crate::exchange::{Error, Http};
use crate::identity::{Identity, ServiceAccount};
use crate::token::Token;

/// Context of a token request.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// How services are asked.
    pub http: &'a dyn Http,
    /// Environment of the process.
    pub environment: &'a Environment,
    /// Tokens that are still good.
    pub cache: &'a Cache,
}

/// How clouds are reached and whose tokens are remembered, by all objects of a process.
#[derive(Clone)]
pub struct Access {
    /// The HTTP client.
    pub http: Arc<dyn Http>,
    /// Environment of the process.
    pub environment: Arc<Environment>,
    /// Tokens that are still good.
    pub cache: Arc<Cache>,
}

impl Access {
    /// Returns what getting one token takes.
    pub fn session(&self) -> Session<'_> {
        Session {
            http: &*self.http,
            environment: &self.environment,
            cache: &self.cache,
        }
    }
}

/// A kind of access token of one provider.
pub trait Provider: Sync {
    /// Key of its tokens in the cache: the provider's name, and the request.
    fn key(&self) -> Vec<String>;

    /// A token for the controller.
    fn controller_token(&self, session: Session<'_>) -> impl Future<Output = Result<Token, Error>> + Send;

    /// The audience that the token of a ServiceAccount must be for.
    fn audience(
        &self,
        account: &ServiceAccount,
        session: Session<'_>,
    ) -> impl Future<Output = Result<String, Error>> + Send;

    /// The identity of the ServiceAccount at the provider, from its annotations.
    fn account_identity(&self, account: &ServiceAccount) -> Result<String, Error>;

    /// Exchanges the token of a ServiceAccount for one of the provider.
    fn account_token(
        &self,
        account: &ServiceAccount,
        assertion: &str,
        session: Session<'_>,
    ) -> impl Future<Output = Result<Token, Error>> + Send;
}

/// An access token, from the cache as long as it is fresh.
pub async fn access_token<P: Provider>(
    provider: &P,
    identity: &Identity,
    session: Session<'_>,
) -> Result<Token, Error> {
    let key = access_key(provider, identity)?;
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let make = async {
        match identity {
            Identity::Controller => {
                let token = provider.controller_token(session).await;
                token.map_err(|error| Error::ControllerToken(error.into()))
            }
            Identity::Account(account) => exchange(provider, account, session).await,
        }
    };
    session.cache.get_or(&key, make).await
}

/// Key of the tokens of this provider and identity. Annotations are part of it: a change of them needs other
/// tokens.
pub(crate) fn access_key<P: Provider>(provider: &P, identity: &Identity) -> Result<Vec<String>, Error> {
    let mut key = provider.key();
    if let Identity::Account(account) = identity {
        key.push(format!("serviceAccount={}", account.full_name()));
        let of_account = |source: Error| Error::AccountToken {
            account: account.full_name(),
            source: source.into(),
        };
        let who = provider.account_identity(account).map_err(of_account)?;
        key.push(format!("providerIdentity={who}"));
    }
    Ok(key)
}

async fn exchange<P: Provider>(
    provider: &P,
    account: &ServiceAccount,
    session: Session<'_>,
) -> Result<Token, Error> {
    let audience = provider.audience(account, session).await;
    let audience = audience.map_err(|error| Error::Audience(error.into()))?;
    let assertion = account.issuer.issue(audience).await;
    let assertion = assertion.map_err(|problem| Error::IssueToken {
        account: account.full_name(),
        problem,
    })?;
    let token = provider.account_token(account, &assertion, session).await;
    token.map_err(|source| Error::AccountToken {
        account: account.full_name(),
        source: source.into(),
    })
}
