//! Services that keep incidents, alerts and marks on graphs: what is opened under a key is closed under it.
//!
//! An event that is told as Flux tells it has Flux's keys. What fires and is resolved has a key of its own
//! ([`crate::said::stable_key`]), since reasons and revisions differ between the two.

pub(crate) mod alertmanager;
pub(crate) mod datadog;
pub(crate) mod grafana;
pub(crate) mod incidentio;
pub(crate) mod opsgenie;
pub(crate) mod pagerduty;
pub(crate) mod sentry;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::notification::{Notification, State};
use crate::said::{Fields, fields, stable_key};
use crate::target::Target;

/// Says that something is on its way, and neither failed nor done.
const PROGRESSING: &str = "Progressing";

/// Returns whether there is nothing to open or close yet.
fn is_progressing(notification: &Notification) -> bool {
    notification.state == State::Event && notification.event.reason == PROGRESSING
}

/// Returns whether it is to be opened, and not closed.
fn is_failure(notification: &Notification) -> bool {
    match notification.state {
        State::Event => notification.event.is_error(),
        State::Firing => true,
        State::Resolved => false,
    }
}

/// Key of an object's incidents: its UID as in Flux, or the key of the event or of several objects.
fn incident_key(target: &Target, notification: &Notification) -> String {
    if notification.state == State::Event && notification.is_about_one() {
        notification.event.involved_object.uid.clone()
    } else {
        stable_key(target, notification)
    }
}

/// The metadata as texts by name.
fn metadata(notification: &Notification) -> BTreeMap<String, Value> {
    let fields = fields(notification, Fields::MANY).into_iter();
    fields
        .map(|(name, value)| (name.into_owned(), Value::from(value)))
        .collect()
}

/// When it happened in RFC 3339, in whole seconds; Go's zero time if no one said.
fn rfc3339(time: Option<Timestamp>) -> String {
    match time {
        Some(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => "0001-01-01T00:00:00Z".to_owned(),
    }
}
