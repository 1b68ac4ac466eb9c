//! `sentry`: an error is an event, and what succeeds a transaction, in an envelope. The address is a DSN.
//!
//! Names are derived from what is said, so that Sentry drops what it has got already.

use aws_lc_rs::digest;
use event::Severity;
use http::{HeaderName, Method};
use serde_json::{Value, json};
use url::Url;

use super::{is_failure, metadata, rfc3339};
use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{cut, message, stable_key};
use crate::target::Target;

/// Sentry cuts longer ones.
const MAX_TEXT: usize = 8_192;
const MAX_NAME: usize = 200;
const CLIENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// One envelope. As in Flux, only errors and information are sent.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let dsn = Dsn::from_target(target)?;
    let event = &notification.event;
    let is_known = matches!(event.severity, Severity::Error | Severity::Info);
    if !is_known && notification.state == State::Event {
        return Ok(Vec::new());
    }
    let id = hex::encode(&digest_of(notification)[..16]);
    let (kind, mut payload) = if is_failure(notification) {
        ("event", failure(target, notification))
    } else {
        ("transaction", success(notification, &id))
    };
    payload["event_id"] = id.as_str().into();
    payload["platform"] = "other".into();
    payload["sdk"] = json!({ "name": "windlass", "version": env!("CARGO_PKG_VERSION") });
    if !target.channel.is_empty() {
        payload["environment"] = target.channel.as_str().into();
    }
    let payload = go_text::json::to_vec(&payload);
    let mut body = go_text::json::to_vec(&json!({ "event_id": id }));
    body.extend(format!("\n{{\"type\":\"{kind}\",\"length\":{}}}\n", payload.len()).bytes());
    body.extend(payload);
    body.push(b'\n');
    let request = Request::new(Method::POST, dsn.envelope, "application/x-sentry-envelope", body);
    let name = HeaderName::from_static("x-sentry-auth");
    Ok(vec![request.header(name, &dsn.authentication)?])
}

/// A Data Source Name, `https://KEY@HOST/PATH/PROJECT`, read.
struct Dsn {
    envelope: Url,
    authentication: String,
}

impl Dsn {
    fn from_target(target: &Target) -> Result<Self, Error> {
        if target.address.is_empty() {
            return Err(Error::invalid("DSN cannot be empty"));
        }
        let mut url = target.url("Sentry DSN")?;
        let key = url.username().to_owned();
        let path = url.path().trim_end_matches('/').to_owned();
        let (prefix, project) = path.rsplit_once('/').unwrap_or_default();
        if key.is_empty() || project.is_empty() {
            return Err(Error::invalid(
                "invalid Sentry DSN: it must be https://KEY@HOST/PROJECT",
            ));
        }
        let mut authentication = format!("Sentry sentry_version=7, sentry_client={CLIENT}, sentry_key={key}");
        if let Some(secret) = url.password() {
            authentication.push_str(&format!(", sentry_secret={secret}"));
        }
        url.set_path(&format!("{prefix}/api/{project}/envelope/"));
        url.set_query(None);
        // both can be taken from a URL that has a host
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self {
            envelope: url,
            authentication,
        })
    }
}

fn failure(target: &Target, notification: &Notification) -> Value {
    let event = &notification.event;
    let mut failure = json!({
        "timestamp": rfc3339(event.timestamp),
        "level": "error",
        "server_name": cut(&event.reporting_controller, MAX_NAME),
        "transaction": transaction(notification),
        "message": cut(message(notification), MAX_TEXT),
        "contexts": { "metadata": metadata(notification) },
    });
    if notification.state == State::Firing {
        failure["fingerprint"] = json!([stable_key(target, notification)]);
    }
    failure
}

fn success(notification: &Notification, id: &str) -> Value {
    let event = &notification.event;
    let subject = notification.subject();
    let mut tags: Value = metadata(notification).into_iter().collect();
    let known = [
        ("kind", subject.kind),
        ("namespace", subject.namespace),
        ("name", subject.name),
    ];
    for (name, value) in known {
        tags[format!("flux_involved_object_{name}")] = cut(value, MAX_NAME).into();
    }
    tags["flux_reporting_controller"] = cut(&event.reporting_controller, MAX_NAME).into();
    tags["flux_reporting_instance"] = cut(&event.reporting_instance, MAX_NAME).into();
    tags["flux_reason"] = cut(&event.reason, MAX_NAME).into();
    let time = rfc3339(event.timestamp);
    let span = &id[..16];
    json!({
        "type": "transaction",
        "level": "info",
        "transaction": transaction(notification),
        "message": cut(message(notification), MAX_TEXT),
        "server_name": cut(&event.reporting_controller, MAX_NAME),
        "contexts": { "trace": { "trace_id": id, "span_id": span, "op": "event" } },
        "tags": &tags,
        "timestamp": &time,
        "start_timestamp": &time,
        "spans": [{
            "trace_id": id,
            "span_id": span,
            "op": "event",
            "origin": "manual",
            "tags": &tags,
            "timestamp": &time,
            "start_timestamp": &time,
        }],
    })
}

fn transaction(notification: &Notification) -> String {
    let subject = notification.subject();
    let parts = [subject.kind, subject.namespace, subject.name];
    let [kind, namespace, name] = parts.map(|text| cut(text, MAX_TEXT));
    cut(&format!("{kind}: {namespace}/{name}"), MAX_TEXT).into_owned()
}

fn digest_of(notification: &Notification) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&go_text::json::to_vec(&notification.event));
    context.update(&[notification.state as u8]);
    context.update(notification.alert.namespace.as_bytes());
    context.update(b"/");
    context.update(notification.alert.name.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}
