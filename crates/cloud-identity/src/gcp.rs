//! Google: access tokens from a credential file, the metadata server, or by workload identity federation.

mod account_key;
mod federation;
mod granted;
mod metadata;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::exchange::Error;
use crate::identity::ServiceAccount;
use crate::provider::{Provider, Session};
use crate::token::Token;
use granted::SCOPES;

pub use account_key::AccountKey;

/// Which service account of Google a ServiceAccount becomes.
const EMAIL_ANNOTATION: &str = "iam.gke.io/gcp-service-account";
const EMAIL_PATTERN: &str = r"^[a-zA-Z0-9-]{1,100}@[a-zA-Z0-9-]{1,100}\.iam\.gserviceaccount\.com$";
/// Which provider trusts the cluster, when it is not GKE's own.
const PROVIDER_ANNOTATION: &str = "gcp.auth.fluxcd.io/workload-identity-provider";
const PROVIDER_PATTERN: &str =
    r"^projects/\d{1,30}/locations/global/workloadIdentityPools/[^/]{1,100}/providers/[^/]{1,100}$";

static EMAIL: LazyLock<Regex> = LazyLock::new(|| Regex::new(EMAIL_PATTERN).expect("it is a constant"));
static PROVIDER: LazyLock<Regex> = LazyLock::new(|| Regex::new(PROVIDER_PATTERN).expect("it is a constant"));

/// Access tokens for Google's services.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access;

impl Provider for Access {
    fn key(&self) -> Vec<String> {
        vec!["provider=gcp".to_owned()]
    }

    async fn controller_token(&self, session: Session<'_>) -> Result<Token, Error> {
        match session.environment.get("GOOGLE_APPLICATION_CREDENTIALS") {
            Some(file) => of_file(&session.environment.read(file)?, session).await,
            None => metadata::token(session).await,
        }
    }

    async fn audience(&self, account: &ServiceAccount, session: Session<'_>) -> Result<String, Error> {
        match provider(account)? {
            Some(provider) => Ok(provider),
            None => Ok(metadata::cluster(session).await?.pool()),
        }
    }

    fn account_identity(&self, account: &ServiceAccount) -> Result<String, Error> {
        Ok(format!(
            "{} {}",
            email(account)?.unwrap_or_default(),
            provider(account)?.unwrap_or_default()
        ))
    }

    async fn account_token(
        &self,
        account: &ServiceAccount,
        assertion: &str,
        session: Session<'_>,
    ) -> Result<Token, Error> {
        let audience = match provider(account)? {
            Some(provider) => provider,
            None => metadata::cluster(session).await?.audience(),
        };
        federation::Exchange::of_google(&audience, assertion, email(account)?)
            .token(session)
            .await
    }
}

/// A credential file of the controller: the key of a service account, or workload identity federation.
async fn of_file(text: &str, session: Session<'_>) -> Result<Token, Error> {
    let unusable = || {
        Error::configuration(
            "GOOGLE_APPLICATION_CREDENTIALS must name a file of type service_account or external_account",
        )
    };
    let value: Value = serde_json::from_str(text).map_err(|_| unusable())?;
    match value["type"].as_str() {
        Some("service_account") => {
            let key = AccountKey::parse(text.as_bytes())?;
            key.token(&SCOPES.join(" "), session).await
        }
        Some("external_account") => federation::of_file(&value, session).await,
        _ => Err(unusable()),
    }
}

fn email(account: &ServiceAccount) -> Result<Option<&str>, Error> {
    matched(account, EMAIL_ANNOTATION, &EMAIL, EMAIL_PATTERN)
}

fn provider(account: &ServiceAccount) -> Result<Option<String>, Error> {
    let provider = matched(account, PROVIDER_ANNOTATION, &PROVIDER, PROVIDER_PATTERN)?;
    Ok(provider.map(|provider| format!("//iam.googleapis.com/{provider}")))
}

fn matched<'a>(
    account: &'a ServiceAccount,
    name: &str,
    regex: &Regex,
    pattern: &str,
) -> Result<Option<&'a str>, Error> {
    match account.annotation(name) {
        Some(value) if !regex.is_match(value) => Err(Error::Configuration(format!(
            "invalid {name} annotation: '{value}'. must match {pattern}"
        ))),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests;
