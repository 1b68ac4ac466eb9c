//! `incident.io`: an alert fires or is resolved at an HTTP alert source.

use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{incident_key, is_failure, is_progressing, metadata};
use crate::error::Error;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::{Said, cut, cut_json, message};
use crate::target::Target;

const MAX_TEXT: usize = 50_000;

/// One alert event.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("incident.io alert source URL")?;
    if target.token.is_empty() {
        return Err(Error::invalid("empty incident.io API token"));
    }
    if is_progressing(notification) {
        return Ok(Vec::new());
    }
    let request = Request::json(url, &alert(target, notification));
    Ok(vec![
        request.header(AUTHORIZATION, &format!("Bearer {}", target.token))?,
    ])
}

fn alert(target: &Target, notification: &Notification) -> Value {
    let event = &notification.event;
    let said = Said::from_notification(notification);
    let mut details = metadata(notification);
    let mut add = |name: &str, value: &str| {
        details.insert(name.to_owned(), cut(value, 1_000).into());
    };
    add("severity", said.severity());
    add("reason", &event.reason);
    if !event.reporting_controller.is_empty() {
        add("reportingController", &event.reporting_controller);
    }
    let mut alert = json!({
        "title": format!("{}: {}", said.title(), cut(&event.reason, 200)),
        "status": if is_failure(notification) { "firing" } else { "resolved" },
        "deduplication_key": incident_key(target, notification),
        "metadata": details,
    });
    let text = message(notification);
    if !text.is_empty() {
        alert["description"] = cut_json(text, MAX_TEXT).into();
    }
    alert
}
