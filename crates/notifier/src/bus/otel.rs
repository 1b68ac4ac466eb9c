//! `otel`: each event as a span, in a trace for each Alert and revision; OTLP over HTTP.
//!
//! Trace ids are Flux's: of the Alert's UID and the revision. Span ids are made of what the span is about, so that
//! another attempt at sending is the same span.

mod protocol;

use event::Event;
use http::Method;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::edge::Http;
use crate::error::Error;
use crate::forward::is_about_framing;
use crate::notification::{Notification, Sent};
use crate::request::{Answer, Request};
use crate::said;
use crate::target::Target;
use protocol::{
    Code, ExportTraceServiceRequest, ExportTraceServiceResponse, INTERNAL, KeyValue, Resource, ResourceSpans,
    Scope, ScopeSpans, Span, Status,
};

/// Where traces go when the address has no path.
const DEFAULT_PATH: &str = "/v1/traces";
/// Which conventions the names of the resource are of.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.34.0";
const SCOPE: &str = "flux:notification-controller";
/// Sampled; and the parent is elsewhere, as is known.
const FLAGS: u32 = 0x301;
/// Objects of this kind begin no deployment.
const SKIPPED: &str = "HelmRepository";

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    endpoint(target).map(drop)
}

/// Sends the span.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    match render(http.target, notification, Timestamp::now())? {
        Some(request) => http.send_all(vec![request]).await,
        None => Ok(Sent::default()),
    }
}

fn render(target: &Target, notification: &Notification, now: Timestamp) -> Result<Option<Request>, Error> {
    if notification.event.involved_object.kind == SKIPPED {
        return Ok(None);
    }
    let body = export(notification, now).encode_to_vec();
    let request = Request::new(Method::POST, endpoint(target)?, "application/x-protobuf", body);
    let mut request = login(request.accepting(accept), target)?;
    let headers = target.headers.iter();
    for (name, value) in headers.filter(|(name, _)| !is_about_framing(name)) {
        request = request.named_header(name, value)?;
    }
    Ok(Some(request))
}

fn endpoint(target: &Target) -> Result<Url, Error> {
    let mut url = target.url("OTEL endpoint")?;
    // No path and "/" are one in a Url, and two in Go's.
    let rest = target.address.split_once("://").map_or("", |(_, rest)| rest);
    if url.path() == "/" && !rest.contains('/') {
        url.set_path(DEFAULT_PATH);
    }
    Ok(url)
}

/// A name and a password, or else a token; headers of the Secret come before.
fn login(request: Request, target: &Target) -> Result<Request, Error> {
    let has_own = target
        .headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
    let token = [&target.token, &target.password]
        .into_iter()
        .find(|token| !token.is_empty());
    match token {
        Some(_) if has_own => Ok(request),
        Some(token) if target.username.is_empty() => request.authorization("Bearer", token),
        Some(token) => request.basic(&target.username, token),
        None => Ok(request),
    }
}

/// A collector that takes only a part says so in an answer of success.
fn accept(answer: &Answer) -> Result<Sent, Error> {
    let partial = ExportTraceServiceResponse::decode(answer.body.clone())
        .ok()
        .and_then(|response| response.partial_success)
        .filter(|partial| partial.rejected_spans > 0);
    match partial {
        Some(partial) => Err(Error::invalid(format!(
            "the collector rejected the span: {}",
            partial.error_message
        ))),
        None => Ok(Sent::default()),
    }
}

fn export(notification: &Notification, now: Timestamp) -> ExportTraceServiceRequest {
    let alert = &notification.alert;
    let resource = [
        ("service.name", format!("{}/{}", alert.namespace, alert.name)),
        ("service.namespace", alert.namespace.clone()),
        ("service.instance.id", alert.uid.clone()),
    ];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource
                    .iter()
                    .map(|(key, value)| KeyValue::new(key, value))
                    .collect(),
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope {
                    name: SCOPE.to_owned(),
                }),
                spans: vec![span(notification, now)],
            }],
            schema_url: SCHEMA.to_owned(),
        }],
    }
}

fn span(notification: &Notification, now: Timestamp) -> Span {
    let event = &notification.event;
    let object = &event.involved_object;
    let begin = event.timestamp.unwrap_or(now);
    let trace = Sha256::digest(format!("{}:{}", notification.alert.uid, revision(event)));
    let id = Sha256::digest(format!(
        "{}:{object}:{}:{begin}:{}",
        hex::encode(trace),
        event.reason,
        event.message
    ));
    let of_object = [
        ("object.uid", &object.uid),
        ("object.kind", &object.kind),
        ("object.name", &object.name),
        ("object.namespace", &object.namespace),
    ];
    let attributes = of_object
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    let metadata = event
        .metadata
        .iter()
        .map(|(key, value)| KeyValue::new(key, value));
    Span {
        trace_id: trace[..16].to_vec(),
        span_id: id[..8].to_vec(),
        flags: FLAGS,
        name: format!("{}: {}/{}", object.kind, object.namespace, object.name),
        kind: INTERNAL,
        start_time_unix_nano: nanoseconds(begin),
        end_time_unix_nano: nanoseconds(now.max(begin)),
        attributes: attributes.chain(metadata).collect(),
        status: Some(if event.is_error() {
            Status {
                message: said::message(notification).to_owned(),
                code: Code::Error as i32,
            }
        } else {
            Status {
                message: String::new(),
                code: Code::Ok as i32,
            }
        }),
    }
}

/// Returns the revision, which all events of a rollout have in common.
fn revision(event: &Event) -> String {
    let metadata = &event.metadata;
    match (metadata.get("app-version"), metadata.get("oci-digest")) {
        (Some(version), Some(digest)) => format!("{version}@{digest}"),
        _ => metadata
            .get(event::keys::REVISION)
            .cloned()
            .unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
