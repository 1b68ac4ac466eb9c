//! Key services that are asked over HTTP: one signed or authenticated request for each data key.
//!
//! The HTTP client is given, as everywhere in `cloud_identity`: time-outs, proxies, certificates and the sizes of
//! answers are its owner's. Where a request goes is in the encrypted file, so whoever can write the file chooses it:
//! tokens of a cloud only go to hosts of that cloud, and a token of Vault to where its owner's file says.

pub mod aws;
pub mod azure;
pub mod gcp;
pub mod vault;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_identity::{Access, Reach, Request};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, Method};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use url::Url;
use zeroize::Zeroizing;

use crate::key::KeyError;

/// Bytes of a server's refusal that are quoted.
const MAX_QUOTED: usize = 300;

/// A secret in an answer.
struct Hidden(Zeroizing<String>);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

/// Sends JSON and reads JSON.
async fn ask<T: DeserializeOwned>(access: &Access, request: Request) -> Result<T, String> {
    let host = request.url.origin().ascii_serialization();
    let answer = access.http.send(request).await;
    let answer = answer.map_err(|error| format!("failed to reach {host}: {error}"))?;
    if !answer.status.is_success() {
        return Err(format!(
            "{host} answered {}{}",
            answer.status,
            refusal(&answer.body)
        ));
    }
    // The messages of serde_json quote values.
    serde_json::from_slice(&answer.body).map_err(|_| format!("{host} did not answer as its interface says"))
}

fn json_request(method: Method, url: Url, body: &serde_json::Value, content_type: &'static str) -> Request {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Request {
        method,
        url,
        headers,
        body: body.to_string().into_bytes(),
        reach: Reach::Remote,
    }
}

fn bearer(token: &str) -> Result<(HeaderName, HeaderValue), String> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "the access token has characters that no header can carry".to_owned())?;
    value.set_sensitive(true);
    Ok((AUTHORIZATION, value))
}

fn decoded(text: &Hidden) -> Result<Zeroizing<Vec<u8>>, String> {
    let bytes = STANDARD.decode(text.0.as_bytes());
    bytes
        .map(Zeroizing::new)
        .map_err(|_| "cannot decode base64 plaintext into data key bytes".to_owned())
}

fn failed(what: &str) -> impl Fn(String) -> KeyError {
    move |problem| KeyError(format!("{what}: {problem}"))
}

/// The reason in the answer of Amazon, Google, Microsoft, Vault.
fn refusal(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        return String::new();
    };
    let places = ["/error/message", "/message", "/Message", "/errors/0", "/__type"];
    let reason = places.iter().find_map(|place| value.pointer(place)?.as_str());
    let Some(reason) = reason else {
        return String::new();
    };
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_QUOTED)
        .collect();
    format!(": {line}")
}

#[cfg(test)]
#[path = "kms/tests.rs"]
mod tests;
