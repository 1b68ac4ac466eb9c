//! Names and passwords for the registries of cloud providers. Only their own registries get any.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::aws::{self, Signer, service_url};
use crate::exchange::{Error, Request, ask_json};
use crate::identity::Identity;
use crate::provider::{Session, access_key, access_token};
use crate::token::{Secret, Token};
use crate::{azure, gcp, jwt};

const ECR_PATTERN: &str = r"([0-9+]*).dkr[.-]ecr(?:-fips)?\.([^/.]*)\.(amazonaws\.com[.cn]*|amazonaws\.eu|sc2s\.sgov\.gov|c2s\.ic\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov|on\.aws)";
const PUBLIC_ECR: &str = "public.ecr.aws";
const PUBLIC_ECR_REGION: &str = "us-east-1";
const GAR_PATTERN: &str = r"^(((.+\.)?gcr\.io)|(.+-docker\.pkg\.dev)|(docker\.s3nsregistry\.fr))$";
const ACR_PATTERN: &str = r"^[^/]+\.(azurecr\.io|azurecr\.cn|azurecr\.de|azurecr\.us)$";
/// The name that goes with a token of Azure's registries.
const ACR_USERNAME: &str = "00000000-0000-0000-0000-000000000000";
/// Azure's registries take tokens for this.
const ACR_SCOPE: &str = "https://containerregistry.azure.net/.default";

static ECR: LazyLock<Regex> = LazyLock::new(|| Regex::new(ECR_PATTERN).expect("it is a constant"));
static GAR: LazyLock<Regex> = LazyLock::new(|| Regex::new(GAR_PATTERN).expect("it is a constant"));
static ACR: LazyLock<Regex> = LazyLock::new(|| Regex::new(ACR_PATTERN).expect("it is a constant"));

/// Provider of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon ECR, private and public.
    Aws,
    /// Google's Artifact Registry and Container Registry.
    Gcp,
    /// Azure Container Registry.
    Azure,
}

/// Name and password for the registry at this host, from the cache as long as they are fresh.
pub async fn login(
    cloud: Cloud,
    host: &str,
    identity: &Identity,
    session: Session<'_>,
) -> Result<Token, Error> {
    match cloud {
        Cloud::Aws => ecr(host, identity, session).await,
        Cloud::Gcp => gar(host, identity, session).await,
        Cloud::Azure => acr(host, identity, session).await,
    }
}

fn is_amazons(domain: &str) -> bool {
    !domain.starts_with("amazonaws.com") || matches!(domain, "amazonaws.com" | "amazonaws.com.cn")
}

fn invalid(cloud: &str, host: &str, pattern: &str) -> Error {
    Error::Configuration(format!(
        "invalid {cloud} registry: '{host}'. must match {pattern}"
    ))
}

fn no_access(error: Error) -> Error {
    Error::RegistryToken(error.into())
}

fn no_credentials(error: Error) -> Error {
    Error::RegistryCredentials(error.into())
}

async fn ecr(host: &str, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    let is_public = host == PUBLIC_ECR;
    let region = match ECR.captures(host) {
        _ if is_public => PUBLIC_ECR_REGION,
        // The host is Amazon's whole: what stands before and after must not make it someone else's.
        // The pattern takes more than Amazon has: `amazonaws.com.cc`.
        Some(found)
            if found.get(0).is_some_and(|all| all.as_str() == host)
                && found.get(3).is_none_or(|domain| is_amazons(domain.as_str())) =>
        {
            found.get(2).map_or("", |region| region.as_str())
        }
        _ => return Err(invalid("AWS", host, ECR_PATTERN)),
    };
    let access = aws::Access {
        region: Some(region.to_owned()),
        sts_endpoint: None,
    };
    let token = access_token(&access, identity, session)
        .await
        .map_err(no_access)?;
    let mut key = access_key(&access, identity)?;
    key.push(format!(
        "artifactRepositoryCacheKey={}",
        if is_public { PUBLIC_ECR } else { region }
    ));
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let make = async {
        let keys = token
            .as_keys()
            .ok_or_else(|| Error::configuration("the access token is none of AWS"))?;
        ecr_login(keys.clone(), region, is_public, session).await
    };
    session.cache.get_or(&key, make).await.map_err(no_credentials)
}

async fn ecr_login(
    keys: aws::Keys,
    region: &str,
    is_public: bool,
    session: Session<'_>,
) -> Result<Token, Error> {
    let (variable, host, service, target) = if is_public {
        (
            "ECR_PUBLIC",
            "api.ecr-public",
            "ecr-public",
            "SpencerFrontendService.GetAuthorizationToken",
        )
    } else {
        (
            "ECR",
            "api.ecr",
            "ecr",
            "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken",
        )
    };
    let url = service_url(session.environment, variable, host, region)?;
    let mut request = Request::new(Method::POST, url).header(CONTENT_TYPE, "application/x-amz-json-1.1");
    request.body = b"{}".to_vec();
    request.headers.insert(
        HeaderName::from_static("x-amz-target"),
        HeaderValue::from_static(target),
    );
    let signer = Signer {
        keys,
        region: region.to_owned(),
        service,
    };
    signer
        .sign(
            &request.method,
            &request.url,
            &mut request.headers,
            &request.body,
            session.environment.now(),
        )
        .map_err(|_| Error::configuration("the AWS keys cannot be sent"))?;
    let answer: EcrAnswer = ask_json(session.http, request).await?;
    let unusable = || Error::configuration("no usable authorization data returned");
    let data = match answer.authorization_data {
        EcrData::One(data) => data,
        EcrData::Many(data) => data.into_iter().next().ok_or_else(unusable)?,
    };
    let login = STANDARD
        .decode(data.authorization_token)
        .map_err(|_| unusable())?;
    let login = String::from_utf8(login).map_err(|_| unusable())?;
    let (username, password) = login.split_once(':').ok_or_else(unusable)?;
    Ok(Token {
        secret: Secret::Login {
            username: username.to_owned(),
            password: password.to_owned(),
        },
        expires: instant(&data.expires_at),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EcrAnswer {
    authorization_data: EcrData,
}

/// Public registries answer with one, others with a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum EcrData {
    One(EcrToken),
    Many(Vec<EcrToken>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EcrToken {
    authorization_token: String,
    expires_at: Value,
}

/// Seconds as a number, or a text.
fn instant(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => Timestamp::from_second(other.as_f64()? as i64).ok(),
    }
}

async fn gar(host: &str, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    if !GAR.is_match(host) {
        return Err(invalid("GCP", host, GAR_PATTERN));
    }
    let token = access_token(&gcp::Access, identity, session)
        .await
        .map_err(no_access)?;
    Ok(Token {
        secret: Secret::Login {
            username: "oauth2accesstoken".to_owned(),
            password: token.as_bearer().unwrap_or_default().to_owned(),
        },
        expires: token.expires,
    })
}

async fn acr(host: &str, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    if !ACR.is_match(host) {
        return Err(invalid("Azure", host, ACR_PATTERN));
    }
    let access = azure::Access {
        scope: ACR_SCOPE.to_owned(),
    };
    let token = access_token(&access, identity, session)
        .await
        .map_err(no_access)?;
    let mut key = access_key(&access, identity)?;
    key.push(format!("artifactRepositoryCacheKey={host}"));
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let make = async {
        let password = azure::registry_token(host, token.as_bearer().unwrap_or_default(), session).await?;
        Ok(Token {
            expires: jwt::expiry(&password),
            secret: Secret::Login {
                username: ACR_USERNAME.to_owned(),
                password,
            },
        })
    };
    session.cache.get_or(&key, make).await.map_err(no_credentials)
}

#[cfg(test)]
mod tests;
