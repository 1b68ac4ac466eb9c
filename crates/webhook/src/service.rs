//! Services that call: how each authenticates, what it calls the event, and what its body must be.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::body::{fingerprint, first_json, place};
use crate::call::{Accepted, Call, Refused, Rules};
use crate::{ReceiverType, cdevents, content_type, signature};

/// More of an event's name is not logged.
const MOST_EVENT_BYTES: usize = 100;

/// Decides on a call of a service that has no ID tokens.
pub(crate) fn verify(type_: ReceiverType, call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    match type_ {
        ReceiverType::GitHub => hub(call, rules, "GitHub", "X-GitHub-Event"),
        ReceiverType::Bitbucket => hub(call, rules, "Bitbucket server", "X-Event-Key"),
        ReceiverType::GitLab => gitlab(call, rules),
        ReceiverType::Harbor => harbor(call, rules),
        ReceiverType::GenericHmac => generic_hmac(call, rules),
        ReceiverType::Nexus => nexus(call, rules),
        ReceiverType::Quay => is_body::<Quay>(call, "Quay"),
        ReceiverType::DockerHub => is_body::<DockerHub>(call, "DockerHub"),
        ReceiverType::Acr => is_body::<Acr>(call, "ACR"),
        ReceiverType::CdEvents => cdevent(call, rules),
        ReceiverType::Generic => Ok(Accepted::default()),
        ReceiverType::GenericOidc | ReceiverType::Gcr => Err(Refused::new("it needs a token")),
    }
}

/// GitHub and those that took its way over: the body is signed, in one header or the other. Their bodies have ids and
/// times in them, so the same body twice is one call sent again.
fn hub(call: &Call<'_>, rules: &Rules<'_>, who: &str, event: &str) -> Result<Accepted, Refused> {
    let invalid =
        |reason: String| Refused::new(format!("the {who} signature header is invalid, err: {reason}"));
    let mut header = call.header("X-Hub-Signature-256");
    if header.is_empty() {
        header = call.header("X-Hub-Signature");
    }
    let type_ = content_type::media_type(call.header("Content-Type"))
        .ok_or_else(|| invalid("mime: malformed Content-Type".to_owned()))?;
    signature::verify(header, call.body, token(rules)?).map_err(|refused| invalid(refused.0))?;
    let payload = match type_.as_str() {
        "application/json" => None,
        "application/x-www-form-urlencoded" => {
            let payload = content_type::form_field(call.body, "payload");
            Some(payload.ok_or_else(|| invalid("the form is malformed".to_owned()))?)
        }
        other => {
            return Err(invalid(format!(
                "webhook request has unsupported Content-Type {other:?}"
            )));
        }
    };
    Ok(Accepted {
        event: Some(allowed(call.text(event), rules, who)?),
        payload,
        identity: Some(fingerprint(call.body)),
        ..Accepted::default()
    })
}

fn gitlab(call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    if !signature::are_equal(call.header("X-Gitlab-Token"), token(rules)?) {
        return Err(Refused::new(
            "the X-Gitlab-Token header value does not match the receiver token",
        ));
    }
    let event = allowed(call.text("X-Gitlab-Event"), rules, "GitLab")?;
    Ok(Accepted {
        event: Some(event),
        ..Accepted::default()
    })
}

fn harbor(call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    if signature::are_equal(call.header("Authorization"), token(rules)?) {
        Ok(Accepted::default())
    } else {
        Err(Refused::new(
            "the Harbor Authorization header value does not match the receiver token",
        ))
    }
}

fn generic_hmac(call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    signature::verify(call.header("X-Signature"), call.body, token(rules)?)
        .map_err(|refused| Refused::new(format!("unable to validate HMAC signature: {refused}")))?;
    Ok(Accepted::default())
}

fn nexus(call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    let header = call.header("X-Nexus-Webhook-Signature");
    if header.is_empty() {
        return Err(Refused::new("the Nexus signature is missing from header"));
    }
    if !signature::verify_sha1_digits(header, call.body, token(rules)?) {
        return Err(Refused::new("invalid Nexus signature"));
    }
    if call.body.trim_ascii_start().starts_with(b"[") {
        return Err(Refused::new("cannot decode Nexus webhook payload: it is a list"));
    }
    serde_json::from_slice::<Option<Nexus>>(call.body)
        .map_err(|error| Refused::new(format!("cannot decode Nexus webhook payload: {}", place(&error))))?;
    Ok(Accepted {
        identity: Some(fingerprint(call.body)),
        ..Accepted::default()
    })
}

/// CDEvents carry an id, which is the same when one is sent again.
fn cdevent(call: &Call<'_>, rules: &Rules<'_>) -> Result<Accepted, Refused> {
    let id = cdevents::validate(call.body)
        .map_err(|reason| Refused::new(format!("unable to validate CDEvent event: {reason}")))?;
    let event = call.text("Ce-Type");
    if !is_listed(&event, rules) {
        let event = loggable(&event);
        return Err(Refused::new(format!("the CDEvent {event:?} is not authorised")));
    }
    Ok(Accepted {
        event: Some(loggable(&event)),
        identity: Some(fingerprint(id.as_bytes())),
        ..Accepted::default()
    })
}

/// The registries that prove nothing but that they know the path.
fn is_body<T: DeserializeOwned>(call: &Call<'_>, who: &str) -> Result<Accepted, Refused> {
    // A list would be taken for the fields in their order.
    let is_list = call.body.trim_ascii_start().starts_with(b"[");
    let body = if is_list {
        Err("it is a list".to_owned())
    } else {
        first_json::<Option<T>>(call.body)
    };
    match body {
        Ok(_) => Ok(Accepted::default()),
        Err(reason) => Err(Refused::new(format!(
            "cannot decode {who} webhook payload: {reason}"
        ))),
    }
}

/// The token to compare with. Flux takes an empty one, with which anybody can sign.
fn token<'a>(rules: &Rules<'a>) -> Result<&'a [u8], Refused> {
    let token = rules.secret.and_then(|secret| secret.get("token"));
    token
        .map(Vec::as_slice)
        .filter(|token| !token.is_empty())
        .ok_or_else(|| Refused::new("invalid secret data: field 'token' is empty"))
}

fn allowed(event: String, rules: &Rules<'_>, who: &str) -> Result<String, Refused> {
    let is_allowed = is_listed(&event, rules);
    let event = loggable(&event);
    if is_allowed {
        Ok(event)
    } else {
        Err(Refused::new(format!(
            "the {who} event {event:?} is not authorised"
        )))
    }
}

/// Shortens an event's name for the log: its header is not signed.
fn loggable(event: &str) -> String {
    let start = &event[..event.floor_char_boundary(MOST_EVENT_BYTES)];
    start
        .chars()
        .filter(|character| !character.is_control())
        .collect()
}

fn is_listed(event: &str, rules: &Rules<'_>) -> bool {
    let is_same = |allowed: &String| allowed.to_lowercase() == event.to_lowercase();
    rules.events.is_empty() || rules.events.iter().any(is_same)
}

/// Fields that Flux reads: they may be missing or null, but not of another type.
#[derive(Deserialize)]
struct Quay {
    #[serde(rename = "docker_url")]
    _docker_url: Option<Text>,
    #[serde(rename = "updated_tags")]
    _updated_tags: Option<Vec<Option<Text>>>,
}

#[derive(Deserialize)]
struct DockerHub {
    #[serde(rename = "push_data")]
    _push_data: Option<PushData>,
    #[serde(rename = "repository")]
    _repository: Option<Repository>,
}

#[derive(Deserialize)]
struct PushData {
    #[serde(rename = "tag")]
    _tag: Option<Text>,
}

#[derive(Deserialize)]
struct Repository {
    #[serde(rename = "repo_url")]
    _repo_url: Option<Text>,
}

#[derive(Deserialize)]
struct Acr {
    #[serde(rename = "action")]
    _action: Option<Text>,
    #[serde(rename = "target")]
    _target: Option<AcrTarget>,
}

#[derive(Deserialize)]
struct AcrTarget {
    #[serde(rename = "repository")]
    _repository: Option<Text>,
    #[serde(rename = "tag")]
    _tag: Option<Text>,
}

#[derive(Deserialize)]
struct Nexus {
    #[serde(rename = "action")]
    _action: Option<Text>,
    #[serde(rename = "repositoryName")]
    _repository_name: Option<Text>,
}

/// A text that is not kept.
struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, _: &str) -> Result<Text, E> {
                Ok(Text)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests;
