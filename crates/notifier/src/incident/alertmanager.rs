//! `alertmanager`: an alert with the metadata for labels, as in Flux.
//!
//! Alertmanager tells alerts apart by all their labels. What fires and is resolved has only those that stay the same,
//! and the rest as annotations; else its end would be that of another alert.

use std::collections::BTreeMap;

use event::keys;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{metadata, rfc3339};
use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{cut, cut_json, message};
use crate::target::Target;
use crate::words;

const MAX_TEXT: usize = 50_000;
const MAX_LABEL: usize = 1_000;
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Go's zero time: no end is known.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// One alert.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Alertmanager URL")?;
    let alert = match notification.state {
        State::Event => event_alert(notification),
        State::Firing | State::Resolved => lasting_alert(notification),
    };
    let mut request = Request::json(url, &json!([alert])).authorization("Bearer", &target.token)?;
    if !target.username.is_empty() && !target.password.is_empty() {
        request = request.basic(&target.username, &target.password)?;
    }
    Ok(vec![request])
}

fn event_alert(notification: &Notification) -> Value {
    let event = &notification.event;
    let mut annotations = annotations(notification);
    let mut labels = metadata(notification);
    if let Some(summary) = labels.remove(keys::SUMMARY) {
        annotations.insert(keys::SUMMARY.to_owned(), summary);
    }
    let name = format!(
        "Flux{}{}",
        cut(notification.subject().kind, MAX_LABEL),
        words::title_case(&cut(&event.reason, MAX_LABEL))
    );
    labels.extend(object_labels(notification, &name, event.severity.as_str()));
    labels.insert("reason".to_owned(), cut(&event.reason, MAX_LABEL).into());
    json!({
        "status": "firing",
        "labels": labels,
        "annotations": annotations,
        "startsAt": rfc3339(event.timestamp),
        "endsAt": NEVER,
    })
}

fn lasting_alert(notification: &Notification) -> Value {
    let event = &notification.event;
    let name = format!("Flux{}Failed", cut(notification.subject().kind, MAX_LABEL));
    let mut labels = object_labels(notification, &name, "error");
    labels.insert("key".to_owned(), cut(&notification.key, MAX_LABEL).into());
    let mut annotations = annotations(notification);
    annotations.extend(metadata(notification));
    annotations.insert("reason".to_owned(), cut(&event.reason, MAX_LABEL).into());
    let time = rfc3339(event.timestamp);
    if notification.state == State::Firing {
        return json!({
            "status": "firing",
            "labels": labels,
            "annotations": annotations,
            "startsAt": time,
            "endsAt": end(event.timestamp),
        });
    }
    // without a begin Alertmanager keeps that of the alert
    json!({ "status": "resolved", "labels": labels, "annotations": annotations, "endsAt": time })
}

/// When an alert ends of which no one says that it did. Without an end, Alertmanager would end it after minutes.
fn end(begin: Option<Timestamp>) -> String {
    match begin.and_then(|begin| begin.checked_add(LONGEST).ok()) {
        None => NEVER.to_owned(),
        end => rfc3339(end),
    }
}

fn annotations(notification: &Notification) -> BTreeMap<String, Value> {
    let text = cut_json(message(notification), MAX_TEXT);
    BTreeMap::from([("message".to_owned(), text.into())])
}

fn object_labels(notification: &Notification, name: &str, severity: &str) -> BTreeMap<String, Value> {
    let event = &notification.event;
    let subject = notification.subject();
    let labels = [
        ("alertname", name),
        ("severity", severity),
        ("kind", subject.kind),
        ("name", subject.name),
        ("namespace", subject.namespace),
        ("reportingcontroller", &event.reporting_controller),
    ];
    let labels = labels.into_iter();
    labels
        .map(|(name, value)| (name.to_owned(), cut(value, MAX_LABEL).into()))
        .collect()
}
