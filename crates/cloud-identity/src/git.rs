//! Credentials for the Git servers of cloud providers: a bearer token for Azure DevOps, a signature for
//! CodeCommit. Only the providers' own servers get any.

use url::Url;

use crate::aws::{self, Signer};
use crate::azure;
use crate::exchange::Error;
use crate::identity::Identity;
use crate::provider::{Session, access_key, access_token};
use crate::token::{Secret, Token};

/// CodeCommit forgets a signature after a quarter of an hour.
const CODE_COMMIT_VALIDITY: jiff::SignedDuration = jiff::SignedDuration::from_mins(15);

/// A bearer token for a repository of Azure DevOps.
pub async fn azure_dev_ops(url: &Url, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    // The controller's token opens what the controller may see. It must not go where a tenant wants it to.
    let host = url.host_str().unwrap_or_default();
    let is_microsoft = host == "dev.azure.com" || host.ends_with(".visualstudio.com");
    if url.scheme() != "https" || !is_microsoft {
        return Err(Error::Configuration(format!(
            "invalid Azure DevOps Git URL: {host}. must be https at dev.azure.com or *.visualstudio.com"
        )));
    }
    let access = azure::Access {
        scope: azure::DEV_OPS.to_owned(),
    };
    let token = access_token(&access, identity, session).await;
    token.map_err(|error| Error::GitToken(error.into()))
}

/// Name and password for a repository of CodeCommit: a signature over its URL.
pub async fn code_commit(url: &Url, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    let region = region(url)?;
    let access = aws::Access {
        region: Some(region.to_owned()),
        sts_endpoint: None,
    };
    let token = access_token(&access, identity, session).await;
    let token = token.map_err(|error| Error::GitToken(error.into()))?;
    let mut key = access_key(&access, identity)?;
    key.push(format!("gitRepositoryCacheKey={url}"));
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    session
        .cache
        .get_or(&key, async { sign(url, region, &token, session) })
        .await
}

fn region(url: &Url) -> Result<&str, Error> {
    if url.scheme() != "https" {
        return Err(Error::configuration(
            "AWS CodeCommit authentication requires an HTTPS Git URL",
        ));
    }
    let host = url.host_str().unwrap_or_default();
    let inner = host
        .strip_prefix("git-codecommit.")
        .or_else(|| host.strip_prefix("git-codecommit-fips."));
    let region = inner.and_then(|rest| {
        rest.strip_suffix(".amazonaws.com")
            .or_else(|| rest.strip_suffix(".amazonaws.com.cn"))
    });
    region
        .filter(|region| !region.is_empty() && !region.contains('.'))
        .ok_or_else(|| Error::Configuration(format!("invalid AWS CodeCommit Git URL: {host}")))
}

fn sign(url: &Url, region: &str, token: &Token, session: Session<'_>) -> Result<Token, Error> {
    let keys = token
        .as_keys()
        .ok_or_else(|| Error::configuration("the access token is none of AWS"))?;
    let now = session.environment.now();
    // Unlike elsewhere the time has no Z where it is signed, and there is no hash of a body.
    let stamp = now.strftime("%Y%m%dT%H%M%S").to_string();
    let host = url.host_str().unwrap_or_default();
    let request = format!("GIT\n{}\n\nhost:{host}\n\nhost\n", url.path());
    let signer = Signer {
        keys: keys.clone(),
        region: region.to_owned(),
        service: "codecommit",
    };
    let signature = signer.signature(&stamp, &stamp, &request);
    let username = match &keys.session_token {
        Some(token) => format!("{}%{token}", keys.access_key_id),
        None => keys.access_key_id.clone(),
    };
    let end = now.checked_add(CODE_COMMIT_VALIDITY).ok();
    Ok(Token {
        secret: Secret::Login {
            username,
            password: format!("{stamp}Z{signature}"),
        },
        expires: match (token.expires, end) {
            (Some(keys), Some(signature)) => Some(keys.min(signature)),
            (keys, signature) => signature.or(keys),
        },
    })
}

#[cfg(test)]
mod tests;
