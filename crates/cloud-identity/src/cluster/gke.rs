//! Google GKE: the API server takes access tokens of Google.

use std::sync::LazyLock;

use http::Method;
use http::header::AUTHORIZATION;
use regex::Regex;
use serde::Deserialize;

use super::endpoint::{Endpoint, authority, no_token};
use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::gcp;
use crate::identity::Identity;
use crate::provider::{Session, access_token};
use crate::token::Token;

const PATTERN: &str = r"^projects/[^/]{1,200}/locations/[^/]{1,200}/clusters/[^/]{1,200}$";
static CLUSTER: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("it is a constant"));

pub(super) async fn describe(
    cluster: &str,
    identity: &Identity,
    session: Session<'_>,
) -> Result<Endpoint, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        endpoint: String,
        master_auth: MasterAuth,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct MasterAuth {
        cluster_ca_certificate: String,
    }
    // It becomes a path, in which nothing may lead elsewhere.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | ':');
    let leads_away = cluster.split('/').any(|part| matches!(part, "." | ".."));
    if !CLUSTER.is_match(cluster) || !cluster.chars().all(is_plain) || leads_away {
        return Err(Error::Configuration(format!(
            "invalid GKE cluster ID: '{cluster}'. must match {PATTERN}"
        )));
    }
    let token = token(identity, session).await?;
    let failed = |source: Error| Error::DescribeCluster {
        kind: "GKE",
        cluster: cluster.to_owned(),
        source: source.into(),
    };
    let url = parse_url(&format!("https://container.googleapis.com/v1/{cluster}"))?;
    let bearer = format!("Bearer {}", token.as_bearer().unwrap_or_default());
    let request = Request::new(Method::GET, url).secret_header(AUTHORIZATION, &bearer)?;
    let answer: Answer = ask_json(session.http, request).await.map_err(failed)?;
    Ok(Endpoint {
        address: answer.endpoint,
        authority: authority(&answer.master_auth.cluster_ca_certificate, "GKE")?,
    })
}

pub(super) async fn token(identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    access_token(&gcp::Access, identity, session)
        .await
        .map_err(no_token)
}
