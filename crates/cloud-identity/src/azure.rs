//! Microsoft: access tokens for an application, a managed identity, or a federated ServiceAccount.

mod application;
mod metadata;
mod shared_key;

use serde::Deserialize;
use url::Url;

use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::identity::ServiceAccount;
use crate::provider::{Provider, Session};
use crate::token::Token;

pub use application::{Application, Credential};
pub use metadata::managed_identity;
pub use shared_key::SharedKey;

/// Scope of Blob Storage.
pub const BLOB_STORAGE: &str = "https://storage.azure.com/.default";
/// Scope of Azure DevOps.
pub const DEV_OPS: &str = "499b84ac-1321-427f-aa17-267ca6975798/.default";

const TENANT_ANNOTATION: &str = "azure.workload.identity/tenant-id";
const CLIENT_ANNOTATION: &str = "azure.workload.identity/client-id";
const PUBLIC_CLOUD: &str = "https://login.microsoftonline.com/";

/// Access tokens with one scope.
#[derive(Debug, Clone)]
pub struct Access {
    /// Scope of the token.
    pub scope: String,
}

impl Provider for Access {
    fn key(&self) -> Vec<String> {
        vec!["provider=azure".to_owned(), format!("scopes={}", self.scope)]
    }

    /// As in Flux: a client secret, else workload identity, else the managed identity of the node.
    async fn controller_token(&self, session: Session<'_>) -> Result<Token, Error> {
        let environment = session.environment;
        let authority = environment.get_or("AZURE_AUTHORITY_HOST", PUBLIC_CLOUD);
        let client = environment.get("AZURE_CLIENT_ID");
        if let (Some(tenant), Some(client)) = (environment.get("AZURE_TENANT_ID"), client) {
            let credential = match (
                environment.get("AZURE_CLIENT_SECRET"),
                environment.get("AZURE_FEDERATED_TOKEN_FILE"),
            ) {
                (Some(secret), _) => Some(Credential::Secret(secret.to_owned())),
                (None, Some(file)) => Some(Credential::Assertion(environment.read(file)?)),
                (None, None) => None,
            };
            if let Some(credential) = credential {
                let application = Application {
                    authority: authority.to_owned(),
                    tenant: tenant.to_owned(),
                    client: client.to_owned(),
                    credential,
                };
                return application.token(&self.scope, session).await;
            }
        }
        managed_identity(client, &self.scope, session).await
    }

    async fn audience(&self, _: &ServiceAccount, _: Session<'_>) -> Result<String, Error> {
        Ok("api://AzureADTokenExchange".to_owned())
    }

    fn account_identity(&self, account: &ServiceAccount) -> Result<String, Error> {
        Ok(format!("{}/{}", tenant(account)?, client(account)?))
    }

    async fn account_token(
        &self,
        account: &ServiceAccount,
        assertion: &str,
        session: Session<'_>,
    ) -> Result<Token, Error> {
        let authority = session.environment.get_or("AZURE_AUTHORITY_HOST", PUBLIC_CLOUD);
        let application = Application {
            authority: authority.to_owned(),
            tenant: tenant(account)?.to_owned(),
            client: client(account)?.to_owned(),
            credential: Credential::Assertion(assertion.to_owned()),
        };
        application.token(&self.scope, session).await
    }
}

fn tenant(account: &ServiceAccount) -> Result<&str, Error> {
    annotation(account, TENANT_ANNOTATION, "tenant")
}

fn client(account: &ServiceAccount) -> Result<&str, Error> {
    annotation(account, CLIENT_ANNOTATION, "client")
}

fn annotation<'a>(account: &'a ServiceAccount, name: &str, what: &str) -> Result<&'a str, Error> {
    account.annotation(name).ok_or_else(|| {
        Error::Configuration(format!(
            "azure {what} ID is not set in the service account annotation {name}"
        ))
    })
}

/// Exchanges an access token for one of a registry, which must be one of Azure's.
pub(crate) async fn registry_token(
    registry: &str,
    access_token: &str,
    session: Session<'_>,
) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Answer {
        refresh_token: String,
    }
    let url = parse_url(&format!("https://{registry}/oauth2/exchange"))?;
    let fields = [
        ("grant_type", "access_token"),
        ("service", registry),
        ("access_token", access_token),
    ];
    let answer: Answer = ask_json(session.http, Request::form(url, &fields)).await?;
    Ok(answer.refresh_token)
}

/// The endpoint of a tenant. Its name is a part of the path, and nothing more.
fn token_url(authority: &str, tenant: &str) -> Result<Url, Error> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if tenant.is_empty() || !tenant.chars().all(is_name) {
        return Err(Error::Configuration(format!("invalid tenant ID '{tenant}'")));
    }
    parse_url(&format!(
        "{}/{tenant}/oauth2/v2.0/token",
        authority.trim_end_matches('/')
    ))
}

#[cfg(test)]
mod tests;
