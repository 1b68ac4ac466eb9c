//! The metadata server of Azure's machines: tokens of the identities that a machine has.

use http::{HeaderName, Method};
use serde::Deserialize;
use serde_json::Value;

use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::provider::Session;
use crate::token::Token;

const HOST: &str = "http://169.254.169.254";

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    /// Seconds; a text on some machines, a number on others.
    expires_in: Value,
}

/// A token of a managed identity: the one of this client id, or the machine's own.
pub async fn managed_identity(
    client: Option<&str>,
    scope: &str,
    session: Session<'_>,
) -> Result<Token, Error> {
    // The address can be changed as in other SDKs of Azure; their Go SDK cannot.
    let host = session
        .environment
        .get_or("AZURE_POD_IDENTITY_AUTHORITY_HOST", HOST);
    let mut url = parse_url(&format!(
        "{}/metadata/identity/oauth2/token",
        host.trim_end_matches('/')
    ))?;
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    url.query_pairs_mut()
        .append_pair("api-version", "2018-02-01")
        .append_pair("resource", resource);
    if let Some(client) = client {
        url.query_pairs_mut().append_pair("client_id", client);
    }
    let request = Request::local(Method::GET, url).header(HeaderName::from_static("metadata"), "true");
    let granted: Granted = ask_json(session.http, request).await?;
    let seconds = match &granted.expires_in {
        Value::String(text) => text.parse().unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    };
    Ok(Token::bearer(
        granted.access_token,
        seconds,
        session.environment.now(),
    ))
}
