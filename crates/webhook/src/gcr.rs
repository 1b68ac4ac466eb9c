//! Google's registries: a message of Pub/Sub with a token of the service account that pushes it. Without the account and
//! the audience of the Secret anybody with a Google account could call (GHSA-h9cx-xjg6-5v2w).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::body::{fingerprint, first_json};
use crate::call::{Accepted, Call, Refused, Rules};
use crate::keys::{KeySource, Keys, Place};
use crate::signature::are_equal;
use crate::token::Token;

/// Google's public keys.
const KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";
/// Google writes its name both ways.
const ISSUERS: [&str; 2] = ["accounts.google.com", "https://accounts.google.com"];

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    data: Option<String>,
}

/// Message of a registry, as filters see it.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Push {
    action: Option<String>,
    digest: Option<String>,
    tag: Option<String>,
}

/// Decides on a call.
pub(crate) async fn verify<S: KeySource>(
    call: &Call<'_>,
    rules: &Rules<'_>,
    keys: &Keys<S>,
) -> Result<Accepted, Refused> {
    let needed = |key: &str| {
        let missing = || {
            Refused::new(format!(
                "invalid secret data: required field '{key}' for GCR receiver"
            ))
        };
        rules.secret(key).ok_or_else(missing)
    };
    needed("token")?;
    let (email, audience) = (needed("email")?, needed("audience")?);
    let failed = |reason: &str| Refused::new(format!("cannot authenticate GCR request: {reason}"));
    let token = Token::of_call(call).map_err(|refused| failed(&refused.0))?;
    let audience =
        std::str::from_utf8(audience).map_err(|_| failed("the audience in the secret is no text"))?;
    if !token.is_for(audience) {
        return Err(failed("invalid ID token: it is for another audience"));
    }
    token
        .check_time(rules.now)
        .map_err(|refused| failed(&refused.0))?;
    if !ISSUERS.contains(&token.text("iss")) {
        return Err(failed(
            "token issuer is neither 'accounts.google.com' nor 'https://accounts.google.com'",
        ));
    }
    keys.check(Place::Certificates(KEYS), &token, rules.now)
        .await
        .map_err(|reason| failed(&reason))?;
    if !are_equal(token.text("email").as_bytes(), email) {
        return Err(failed("token email is that of another account"));
    }
    if token.claims().get("email_verified") != Some(&serde_json::Value::Bool(true)) {
        return Err(failed("token email is not verified"));
    }
    let payload = push(call.body)?;
    Ok(Accepted {
        identity: Some(fingerprint(call.body)),
        payload: Some(payload),
        ..Accepted::default()
    })
}

/// Takes the registry's message out of its envelope.
fn push(body: &[u8]) -> Result<Vec<u8>, Refused> {
    let envelope: Option<Envelope> = first_json(body)
        .map_err(|reason| Refused::new(format!("cannot decode GCR webhook payload: {reason}")))?;
    let data = envelope
        .and_then(|envelope| envelope.message?.data)
        .unwrap_or_default();
    let malformed = || Refused::new("cannot decode GCR webhook body");
    let data = STANDARD.decode(data).map_err(|_| malformed())?;
    let push: Push = serde_json::from_slice::<Option<Push>>(&data)
        .map_err(|_| malformed())?
        .unwrap_or_default();
    let text = |text: Option<String>| text.unwrap_or_default();
    let push = serde_json::json!({
        "action": text(push.action),
        "digest": text(push.digest),
        "tag": text(push.tag),
    });
    Ok(push.to_string().into_bytes())
}
