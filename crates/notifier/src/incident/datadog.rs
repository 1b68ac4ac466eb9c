//! `datadog`: an event with the metadata for tags. What fires and is resolved is one event to Datadog.

use http::HeaderName;
use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{Fields, Said, cut, fields, message, stable_key};
use crate::target::Target;

const MAX_TITLE: usize = 500;
const MAX_TEXT: usize = 4_000;
const MAX_TAG: usize = 200;

/// One event.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    if target.token.is_empty() {
        return Err(Error::invalid("token cannot be empty"));
    }
    let mut url = target.url("DataDog address")?;
    url.set_path("/api/v1/events");
    url.set_query(None);
    let request = Request::json(url, &event(target, notification));
    Ok(vec![
        request.header(HeaderName::from_static("dd-api-key"), &target.token)?,
    ])
}

fn event(target: &Target, notification: &Notification) -> Value {
    let event = &notification.event;
    let subject = notification.subject();
    let parts = [subject.kind, subject.name, subject.namespace];
    let [kind, name, namespace] = parts.map(|text| cut(text, MAX_TITLE));
    let title = format!("Events from the {kind} {name}/{namespace}");
    let alert_type = match notification.state {
        State::Resolved => "success",
        _ if Said::from_notification(notification).is_bad() => "error",
        _ => "info",
    };
    let mut sent = json!({
        "title": cut(&title, MAX_TITLE),
        "text": cut(message(notification), MAX_TEXT),
        "tags": tags(notification),
        "source_type_name": "fluxcd",
        "alert_type": alert_type,
    });
    if let Some(time) = event.timestamp {
        sent["date_happened"] = time.as_second().into();
    }
    if notification.state != State::Event {
        sent["aggregation_key"] = stable_key(target, notification).into();
    }
    sent
}

fn tags(notification: &Notification) -> Vec<String> {
    let event = &notification.event;
    let subject = notification.subject();
    let known = [
        ("flux_reporting_controller", event.reporting_controller.as_str()),
        ("flux_reason", &event.reason),
        ("kube_kind", subject.kind),
        ("kube_name", subject.name),
        ("kube_namespace", subject.namespace),
    ];
    let more = fields(notification, Fields::MANY);
    let more = more.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
    let tags = known.into_iter().chain(more);
    let tags = tags.map(|(name, value)| format!("{name}:{}", cut(value, MAX_TAG)).to_lowercase());
    tags.map(|tag| cut(&tag, MAX_TAG).into_owned()).collect()
}
