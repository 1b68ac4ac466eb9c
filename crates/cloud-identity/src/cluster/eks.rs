//! Amazon EKS: a token is a presigned question to STS, who one is, for this cluster.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HeaderMap;
use http::{HeaderName, HeaderValue, Method};
use jiff::SignedDuration;
use regex::Regex;
use serde::Deserialize;

use super::endpoint::{Endpoint, authority, no_token};
use crate::aws::{self, Signer, service_url, sha256_hex};
use crate::exchange::{Error, Request, ask_json};
use crate::identity::Identity;
use crate::provider::{Session, access_token};
use crate::token::{Keys, Secret, Token};

const PATTERN: &str = r"^arn:aws[\w-]*:eks:([^:]{1,100}):[0-9]{1,30}:cluster/(.{1,200})$";
static CLUSTER: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("it is a constant"));

/// For how long EKS takes a token, and the signature in it is good.
const LIFE: SignedDuration = SignedDuration::from_mins(15);
const SIGNED_SECONDS: u32 = 900;

struct Resource<'a> {
    region: &'a str,
    name: &'a str,
}

fn parse(arn: &str) -> Result<Resource<'_>, Error> {
    let found = CLUSTER.captures(arn).and_then(|found| {
        let text = |group| found.get(group).map(|text| text.as_str());
        let name = text(2)?;
        // The name is a part of a path that is signed.
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        is_name.then_some(Resource {
            region: text(1)?,
            name,
        })
    });
    found.ok_or_else(|| {
        Error::Configuration(format!("invalid EKS cluster ARN: '{arn}'. must match {PATTERN}"))
    })
}

async fn keys(region: &str, identity: &Identity, session: Session<'_>) -> Result<Keys, Error> {
    let access = aws::Access {
        region: Some(region.to_owned()),
        sts_endpoint: None,
    };
    let token = access_token(&access, identity, session).await.map_err(no_token)?;
    let keys = token.as_keys().cloned();
    keys.ok_or_else(|| Error::configuration("the access token is none of AWS"))
}

pub(super) async fn describe(
    arn: &str,
    identity: &Identity,
    session: Session<'_>,
) -> Result<Endpoint, Error> {
    #[derive(Deserialize)]
    struct Answer {
        cluster: Described,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Described {
        endpoint: String,
        certificate_authority: Authority,
    }
    #[derive(Deserialize)]
    struct Authority {
        data: String,
    }
    let Resource { region, name } = parse(arn)?;
    let keys = keys(region, identity, session).await?;
    let failed = |source: Error| Error::DescribeCluster {
        kind: "EKS",
        cluster: arn.to_owned(),
        source: source.into(),
    };
    let mut url = service_url(session.environment, "EKS", "eks", region)?;
    url.set_path(&format!("clusters/{name}"));
    let mut request = Request::new(Method::GET, url);
    let signer = Signer {
        keys,
        region: region.to_owned(),
        service: "eks",
    };
    let now = session.environment.now();
    let signed = signer.sign(&request.method, &request.url, &mut request.headers, b"", now);
    signed.map_err(|_| Error::configuration("the keys have characters that no header can carry"))?;
    let answer: Answer = ask_json(session.http, request).await.map_err(failed)?;
    Ok(Endpoint {
        address: answer.cluster.endpoint,
        authority: authority(&answer.cluster.certificate_authority.data, "EKS")?,
    })
}

pub(super) async fn token(arn: &str, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    let Resource { region, name } = parse(arn)?;
    let keys = keys(region, identity, session).await?;
    let mut url = service_url(session.environment, "STS", "sts", region)?;
    url.set_query(Some("Action=GetCallerIdentity&Version=2011-06-15"));
    let mut headers = HeaderMap::new();
    let cluster = HeaderValue::from_str(name).map_err(|_| Error::configuration("invalid cluster name"))?;
    headers.insert(HeaderName::from_static("x-k8s-aws-id"), cluster);
    let signer = Signer {
        keys,
        region: region.to_owned(),
        service: "sts",
    };
    let now = session.environment.now();
    let signed = signer.presign(&url, &headers, &sha256_hex(b""), SIGNED_SECONDS, now);
    Ok(Token {
        secret: Secret::Bearer(format!("k8s-aws-v1.{}", URL_SAFE_NO_PAD.encode(signed.as_str()))),
        expires: now.checked_add(LIFE).ok(),
    })
}
