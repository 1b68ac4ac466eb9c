//! Azure AKS: the API server takes access tokens of Entra; where it is stands in the kubeconfigs that Azure gives.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::AUTHORIZATION;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::endpoint::{Endpoint, ReadKubeconfig, no_token};
use crate::azure;
use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::identity::Identity;
use crate::provider::{Session, access_token};
use crate::token::Token;

const PATTERN: &str = r"(?i)^/subscriptions/([^/]{36})/resourceGroups/([^/]{1,200})/providers/Microsoft\.ContainerService/managedClusters/([^/]{1,200})$";
static CLUSTER: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("it is a constant"));

/// The application that stands for the API servers of AKS.
const API_SERVER: &str = "6dae42f8-4368-4678-94ff-3960e28e3630/.default";
const API_VERSION: &str = "2025-05-01";

pub(super) async fn token(identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    scoped(API_SERVER, identity, session).await
}

async fn scoped(scope: &str, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
    let access = azure::Access {
        scope: scope.to_owned(),
    };
    access_token(&access, identity, session).await.map_err(no_token)
}

/// `of` is the name of the cluster, and the address that it must have; empty for any.
pub(super) async fn describe(
    of: (&str, &str),
    identity: &Identity,
    session: Session<'_>,
    read_kubeconfig: ReadKubeconfig,
) -> Result<Endpoint, Error> {
    #[derive(Deserialize)]
    struct Described {
        properties: Properties,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Properties {
        aad_profile: Option<Value>,
    }
    #[derive(Deserialize)]
    struct Credentials {
        kubeconfigs: Vec<Kubeconfig>,
    }
    #[derive(Deserialize)]
    struct Kubeconfig {
        value: String,
    }
    let (cluster, address) = of;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '(' | ')');
    let leads_away = cluster.split('/').any(|part| matches!(part, "." | ".."));
    if !CLUSTER.is_match(cluster) || !cluster.chars().all(is_plain) || leads_away {
        return Err(Error::Configuration(format!(
            "invalid AKS cluster ID: '{cluster}'. must match {PATTERN}"
        )));
    }
    let failed = |source: Error| Error::DescribeCluster {
        kind: "AKS",
        cluster: cluster.to_owned(),
        source: source.into(),
    };
    let manager = manager(session.environment.get_or("AZURE_AUTHORITY_HOST", ""));
    let token = scoped(&format!("{manager}/.default"), identity, session).await?;
    let bearer = format!("Bearer {}", token.as_bearer().unwrap_or_default());
    let request = |method, below: &str| {
        let url = parse_url(&format!("{manager}{cluster}{below}?api-version={API_VERSION}"))?;
        Request::new(method, url).secret_header(AUTHORIZATION, &bearer)
    };
    let described: Described = ask_json(session.http, request(Method::GET, "")?)
        .await
        .map_err(failed)?;
    if described.properties.aad_profile.is_none() {
        return Err(Error::Configuration(format!(
            "AKS cluster {cluster} does not have Microsoft Entra ID integration enabled. See docs for enabling: \
             https://learn.microsoft.com/en-us/azure/aks/enable-authentication-microsoft-entra-id"
        )));
    }
    let listed = request(Method::POST, "/listClusterUserCredential")?;
    let listed: Credentials = ask_json(session.http, listed).await.map_err(failed)?;
    let decoded = listed
        .kubeconfigs
        .iter()
        .filter_map(|found| STANDARD.decode(&found.value).ok());
    let endpoints: Vec<Endpoint> = decoded.filter_map(|found| read_kubeconfig(&found)).collect();
    let fits = |endpoint: &&Endpoint| address.is_empty() || same_server(&endpoint.address, address);
    endpoints.iter().find(fits).cloned().ok_or_else(|| {
        let known: Vec<String> = endpoints.iter().map(|endpoint| format!("'{}'", endpoint.address)).collect();
        Error::Configuration(format!(
            "no kubeconfig found for AKS cluster {cluster} matching the specified address '{address}'. cluster \
             addresses: [{}]",
            known.join(", ")
        ))
    })
}

/// The manager of resources in the cloud of this authority.
fn manager(authority: &str) -> &'static str {
    if authority.contains("chinacloudapi.cn") {
        "https://management.chinacloudapi.cn"
    } else if authority.contains("microsoftonline.us") {
        "https://management.usgovcloudapi.net"
    } else {
        "https://management.azure.com"
    }
}

fn same_server(one: &str, other: &str) -> bool {
    let parse = |text: &str| {
        let text = if text.starts_with("http") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        Url::parse(&text).ok()
    };
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => {
            one.host() == other.host() && one.port_or_known_default() == other.port_or_known_default()
        }
        _ => false,
    }
}
