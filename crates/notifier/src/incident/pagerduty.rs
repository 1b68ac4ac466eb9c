//! `pagerduty`: an incident is triggered or resolved through the Events API v2, and what succeeds is a change.

use serde_json::{Value, json};
use url::Url;

use super::{incident_key, is_failure, is_progressing, metadata, rfc3339};
use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{cut, cut_json, message};
use crate::target::Target;
use crate::words;

const MAX_SUMMARY: usize = 1_024;
/// PagerDuty takes 512 KB altogether.
const MAX_TEXT: usize = 100_000;

/// A trigger, or a resolution just in case and a change.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("PagerDuty endpoint URL")?;
    if is_progressing(notification) {
        return Ok(Vec::new());
    }
    let enqueue = |path: &str, payload: &Value| {
        let mut to: Url = url.clone();
        to.set_path(path);
        to.set_query(None);
        Request::json(to, payload)
    };
    let mut requests = vec![enqueue("/v2/enqueue", &event(target, notification))];
    if notification.state == State::Event && notification.event.severity == event::Severity::Info {
        requests.push(enqueue("/v2/change/enqueue", &change(target, notification)));
    }
    Ok(requests)
}

fn event(target: &Target, notification: &Notification) -> Value {
    let mut event = json!({
        "routing_key": target.channel,
        "event_action": "resolve",
        "dedup_key": incident_key(target, notification),
    });
    if is_failure(notification) {
        let subject = notification.subject();
        event["event_action"] = "trigger".into();
        event["payload"] = json!({
            "summary": summary(notification),
            "source": source(notification),
            "severity": "error",
            "timestamp": rfc3339(notification.event.timestamp),
            "component": cut(subject.name, 255),
            "group": cut(subject.kind, 255),
            "custom_details": details(notification),
        });
    }
    event
}

fn change(target: &Target, notification: &Notification) -> Value {
    json!({
        "routing_key": target.channel,
        "payload": {
            "summary": summary(notification),
            "source": source(notification),
            "timestamp": rfc3339(notification.event.timestamp),
            "custom_details": details(notification),
        },
    })
}

fn summary(notification: &Notification) -> String {
    let subject = notification.subject();
    let name = words::name(subject.kind, subject.name);
    let description = words::description(&notification.event.reason);
    cut(&format!("{description}: {name}"), MAX_SUMMARY).into_owned()
}

fn source(notification: &Notification) -> String {
    format!("Flux {}", cut(&notification.event.reporting_controller, 200))
}

fn details(notification: &Notification) -> Value {
    let metadata = Some(metadata(notification)).filter(|metadata| !metadata.is_empty());
    json!({ "message": cut_json(message(notification), MAX_TEXT), "metadata": metadata })
}
