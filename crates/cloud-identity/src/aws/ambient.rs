//! Keys that the controller gets from its surroundings, in the order of Amazon's SDKs: variables, web identity,
//! container credentials (ECS, EKS Pod Identity), the instance's metadata (IMDSv2 only). Profiles in files are for
//! people, not for pods: they are not read.

use http::{HeaderName, Method};
use serde::Deserialize;
use url::{Host, Url};

use super::{sts, token};
use crate::environment::Environment;
use crate::exchange::{Error, Request, ask, ask_json, parse_url};
use crate::provider::Session;
use crate::token::{Keys, Token};

const CONTAINER_HOST: &str = "http://169.254.170.2";
const METADATA_HOST: &str = "http://169.254.169.254";

/// Keys in JSON, as container and instance metadata give them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

impl From<Document> for Token {
    fn from(document: Document) -> Self {
        let keys = Keys {
            access_key_id: document.access_key_id,
            secret_access_key: document.secret_access_key,
            session_token: document.token,
        };
        token(keys, document.expiration.as_deref())
    }
}

/// The first that there are. What is configured and fails is an error, not a reason to become someone else.
pub(super) async fn keys(sts_endpoint: &Url, session: Session<'_>) -> Result<Token, Error> {
    let environment = session.environment;
    if let Some(keys) = of_variables(environment) {
        return Ok(token(keys, None));
    }
    if let (Some(file), Some(role)) = (
        environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"),
        environment.get("AWS_ROLE_ARN"),
    ) {
        let assertion = environment.read(file)?;
        let name = environment.get_or("AWS_ROLE_SESSION_NAME", "source-controller");
        return sts::assume_role_with_web_identity(
            session.http,
            sts_endpoint.clone(),
            role,
            name,
            &assertion,
        )
        .await;
    }
    match container_url(environment)? {
        Some(url) => of_container(url, session).await,
        None => of_instance(session).await,
    }
}

fn of_variables(environment: &Environment) -> Option<Keys> {
    Some(Keys {
        access_key_id: environment.get("AWS_ACCESS_KEY_ID")?.to_owned(),
        secret_access_key: environment.get("AWS_SECRET_ACCESS_KEY")?.to_owned(),
        session_token: environment.get("AWS_SESSION_TOKEN").map(str::to_owned),
    })
}

fn container_url(environment: &Environment) -> Result<Option<Url>, Error> {
    if let Some(path) = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        return parse_url(&format!("{CONTAINER_HOST}{path}")).map(Some);
    }
    let Some(url) = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
        return Ok(None);
    };
    let url = parse_url(url)?;
    let is_near = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || matches!(ip.octets(), [169, 254, 170, 2 | 23]),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.to_string() == "fd00:ec2::23",
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if is_near || url.scheme() == "https" {
        return Ok(Some(url));
    }
    Err(Error::configuration(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or lead to this machine or its container agent",
    ))
}

async fn of_container(url: Url, session: Session<'_>) -> Result<Token, Error> {
    let environment = session.environment;
    let authorization = match environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(environment.read(file)?),
        None => environment
            .get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
            .map(str::to_owned),
    };
    let mut request = Request::local(Method::GET, url);
    if let Some(authorization) = authorization {
        request = request.secret_header(http::header::AUTHORIZATION, &authorization)?;
    }
    let document: Document = ask_json(session.http, request).await?;
    Ok(document.into())
}

async fn of_instance(session: Session<'_>) -> Result<Token, Error> {
    let environment = session.environment;
    if environment
        .get("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return Err(Error::configuration(
            "no AWS credentials in the environment, and the EC2 instance metadata is disabled",
        ));
    }
    let host = environment
        .get_or("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA_HOST)
        .trim_end_matches('/');
    let ttl = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    let request =
        Request::local(Method::PUT, parse_url(&format!("{host}/latest/api/token"))?).header(ttl, "21600");
    let pass = text(&ask(session.http, request).await?.body);
    let get = |path: &str| {
        let url = parse_url(&format!(
            "{host}/latest/meta-data/iam/security-credentials/{path}"
        ))?;
        let name = HeaderName::from_static("x-aws-ec2-metadata-token");
        Request::local(Method::GET, url).secret_header(name, &pass)
    };
    let roles = text(&ask(session.http, get("")?).await?.body);
    let Some(role) = roles.lines().next() else {
        return Err(Error::configuration("the EC2 instance has no IAM role"));
    };
    let document: Document = ask_json(session.http, get(&super::encode(role.trim(), false))?).await?;
    Ok(document.into())
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().to_owned()
}
