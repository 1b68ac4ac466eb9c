//! Amazon: keys from the surroundings of the controller or for the role of a ServiceAccount, and what is signed with
//! them.

mod ambient;
mod sign;
mod sts;

use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use url::Url;

use crate::environment::Environment;
use crate::exchange::{Error, parse_url};
use crate::identity::ServiceAccount;
use crate::provider::{Provider, Session};
use crate::token::{Secret, Token};

pub use sign::{Signer, encode, sha256_hex};
pub use sts::{assume_role, assume_role_with_ldap_identity};

pub use crate::token::Keys;

/// Which role a ServiceAccount has.
const ROLE_ANNOTATION: &str = "eks.amazonaws.com/role-arn";
const ROLE_PATTERN: &str = r"^arn:aws[\w-]*:iam::[0-9]{1,30}:role/.{1,200}$";
const STS_PATTERN: &str = r"^https://(.+\.)?sts(-fips)?(\.[^.]+)?(\.vpce)?\.amazonaws\.com$";

static ROLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(ROLE_PATTERN).expect("it is a constant"));
static STS: LazyLock<Regex> = LazyLock::new(|| Regex::new(STS_PATTERN).expect("it is a constant"));

/// Keys for Amazon's services.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Region of the token service; if None, that of the environment, for the controller only.
    pub region: Option<String>,
    /// Another token service than that of the region.
    pub sts_endpoint: Option<String>,
}

impl Provider for Access {
    fn key(&self) -> Vec<String> {
        vec![
            "provider=aws".to_owned(),
            format!("stsRegion={}", self.region.as_deref().unwrap_or_default()),
            format!("stsEndpoint={}", self.sts_endpoint.as_deref().unwrap_or_default()),
        ]
    }

    async fn controller_token(&self, session: Session<'_>) -> Result<Token, Error> {
        let Some(region) = self.region.as_deref().or(session.environment.get("AWS_REGION")) else {
            return Err(Error::configuration(
                "AWS_REGION environment variable is not set in the Flux controller. if you have properly configured \
                     IAM Roles for Service Accounts (IRSA) or EKS Pod Identity, please delete/replace the controller pod \
                     so the EKS admission controllers can inject this environment variable, or set it manually if the \
                     cluster is not EKS",
            ));
        };
        let endpoint = self.sts_url(region, session.environment)?;
        ambient::keys(&endpoint, session).await
    }

    async fn audience(&self, _: &ServiceAccount, _: Session<'_>) -> Result<String, Error> {
        Ok("sts.amazonaws.com".to_owned())
    }

    fn account_identity(&self, account: &ServiceAccount) -> Result<String, Error> {
        let role = account.annotation(ROLE_ANNOTATION).unwrap_or_default();
        if ROLE.is_match(role) {
            return Ok(role.to_owned());
        }
        Err(Error::Configuration(format!(
            "invalid {ROLE_ANNOTATION} annotation: '{role}'. must match {ROLE_PATTERN}"
        )))
    }

    async fn account_token(
        &self,
        account: &ServiceAccount,
        assertion: &str,
        session: Session<'_>,
    ) -> Result<Token, Error> {
        let Some(region) = &self.region else {
            return Err(Error::configuration(
                "an AWS region is required for authenticating with a service account. please configure one in the \
                 object spec",
            ));
        };
        let endpoint = self.sts_url(region, session.environment)?;
        let role = self.account_identity(account)?;
        let name = format!("{}.{}.{region}.fluxcd.io", account.name, account.namespace);
        sts::assume_role_with_web_identity(session.http, endpoint, &role, &name, assertion).await
    }
}

impl Access {
    /// Where the token service is. One that the object names must be Amazon's: the token of the ServiceAccount goes
    /// there.
    fn sts_url(&self, region: &str, environment: &Environment) -> Result<Url, Error> {
        let Some(endpoint) = &self.sts_endpoint else {
            return service_url(environment, "STS", "sts", region);
        };
        // The pattern is about the text: `https://other.example/x.sts.amazonaws.com` matches, and so does
        // `https://other.example?.sts.amazonaws.com`. Nothing but a host may stand there.
        let host = endpoint.strip_prefix("https://").unwrap_or_default();
        match parse_url(endpoint) {
            Ok(url) if STS.is_match(endpoint) && url.host_str() == Some(host) => Ok(url),
            _ => Err(Error::Configuration(format!(
                "invalid STS endpoint: '{endpoint}'. must match {STS_PATTERN}, without a path"
            ))),
        }
    }
}

/// The address of a service in a region, or what `AWS_ENDPOINT_URL_<variable>` says.
pub fn service_url(
    environment: &Environment,
    variable: &str,
    host: &str,
    region: &str,
) -> Result<Url, Error> {
    if let Some(url) = environment.get(&format!("AWS_ENDPOINT_URL_{variable}")) {
        return parse_url(url);
    }
    if region.is_empty() || !region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(Error::Configuration(format!("invalid AWS region '{region}'")));
    }
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    parse_url(&format!("https://{host}.{region}.amazonaws.com{suffix}/"))
}

/// A token of keys whose end is given as text.
fn token(keys: Keys, expires: Option<&str>) -> Token {
    Token {
        secret: Secret::Keys(keys),
        expires: expires.and_then(|time| time.parse::<Timestamp>().ok()),
    }
}

#[cfg(test)]
mod tests;
