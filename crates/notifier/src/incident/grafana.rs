//! `grafana`: a mark on graphs, found by its tags.

use http::header::AUTHORIZATION;
use serde_json::json;

use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{Fields, Said, cut, cut_json, fields, json_length};
use crate::target::Target;

/// Bytes of tags that Grafana accepts by default (`[annotations] tags_length`), as JSON; it refuses more.
const MAX_TAGS: usize = 500;
const MAX_TEXT: usize = 10_000;

/// One annotation.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Grafana URL")?;
    let said = Said::from_notification(notification);
    let text = match &notification.text {
        None => said.title(),
        Some(text) => cut(text, MAX_TEXT).into_owned(),
    };
    let time = notification.event.timestamp;
    let payload = json!({
        "when": time.map(jiff::Timestamp::as_second),
        "text": text,
        "tags": tags(notification),
    });
    let mut request = Request::json(url, &payload);
    if !target.token.is_empty() {
        request = request.header(AUTHORIZATION, &format!("Bearer {}", target.token))?;
    } else if !target.username.is_empty() && !target.password.is_empty() {
        request = request.basic(&target.username, &target.password)?;
    }
    Ok(vec![request])
}

/// As in Flux: who, the metadata, and what of. Metadata that is too much is left out.
fn tags(notification: &Notification) -> Vec<String> {
    let event = &notification.event;
    let subject = notification.subject();
    let first = [
        "flux".to_owned(),
        cut_json(&event.reporting_controller, 40).into_owned(),
    ];
    let mut last = vec![
        format!("kind: {}", cut_json(subject.kind, 40)),
        format!("name: {}", cut_json(subject.name, 253)),
        format!("namespace: {}", cut_json(subject.namespace, 63)),
    ];
    match notification.state {
        State::Event => {}
        State::Firing => last.push("state: firing".to_owned()),
        State::Resolved => last.push("state: resolved".to_owned()),
    }
    let length = |tag: &String| json_length(tag) + r#""","#.len();
    let mut left = MAX_TAGS.saturating_sub(first.iter().chain(&last).map(length).sum());
    let mut tags = Vec::from(first);
    for (name, value) in fields(notification, Fields::MANY) {
        let tag = format!("{}: {}", name.replace(':', "|"), value.replace(':', "|"));
        if let Some(rest) = left.checked_sub(length(&tag)) {
            left = rest;
            tags.push(tag);
        }
    }
    tags.append(&mut last);
    tags
}
