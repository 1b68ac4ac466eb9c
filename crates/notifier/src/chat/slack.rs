//! `slack`: an attachment, to an incoming webhook or, with a bot's token, to the API.
//!
//! With the API messages can be kept together: the first stands in the channel and shows the latest state, what comes
//! after answers to it.

use serde_json::{Value, json};

use crate::error::{Error, Retry};
use crate::notification::{Notification, Sent, Thread};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut};
use crate::target::Target;

/// The one method of the API that Flux knows; it always answers with 200. Slack has it at more than one host.
const POST_MESSAGE: &str = "/api/chat.postMessage";
const UPDATE: &str = "/api/chat.update";
/// Slack cuts or refuses longer ones.
const MAX_TEXT: usize = 40_000;
const MAX_FALLBACK: usize = 1_000;
const MAX_NAME: usize = 80;

/// One message; in a thread, the first one anew and an answer to it.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Slack hook URL")?;
    let is_api = url.path() == POST_MESSAGE;
    let request = |url, payload: &Value| -> Result<Request, Error> {
        let request = Request::json(url, payload).authorization("Bearer", &target.token)?;
        Ok(if is_api {
            request.accepting(accept)
        } else {
            request
        })
    };
    let payload = payload(target, notification);
    if !is_api || !notification.threaded {
        return Ok(vec![request(url, &payload)?]);
    }
    let first = (
        notification.thread_text("channel"),
        notification.thread_text("ts"),
    );
    let (Some(channel), Some(ts)) = first else {
        return Ok(vec![request(url, &payload)?.accepting(accept_first)]);
    };
    let with = |name: &str| {
        let mut payload = payload.clone();
        payload["channel"] = channel.into();
        payload[name] = ts.into();
        payload
    };
    let mut update = url.clone();
    update.set_path(UPDATE);
    Ok(vec![
        request(update, &with("ts"))?.thread_is_gone_if(message_is_gone),
        request(url, &with("thread_ts"))?.thread_is_gone_if(message_is_gone),
    ])
}

fn payload(target: &Target, notification: &Notification) -> Value {
    let said = Said::from_notification(notification);
    let mut attachment = attachment(&said, ["good", "danger"], MAX_TEXT, Fields::MANY);
    let line = said.text().split('\n').next().unwrap_or_default();
    attachment["fallback"] = cut(&format!("{}: {line}", said.title()), MAX_FALLBACK).into();
    message(&target.channel, name(target, notification), attachment)
}

/// A message in the form that Rocket.Chat and Discord take as well.
pub(super) fn message(channel: &str, username: &str, attachment: Value) -> Value {
    json!({
        "channel": channel,
        "username": cut(username, MAX_NAME),
        "icon_url": "",
        "icon_emoji": "",
        "attachments": [attachment],
    })
}

/// The name that messages come under: the Provider's, or that of the controller that the event is from.
pub(super) fn name<'a>(target: &'a Target, notification: &'a Notification) -> &'a str {
    match target.username.as_str() {
        "" => &notification.event.reporting_controller,
        name => name,
    }
}

/// The attachment that says it all, in one of two colours.
pub(super) fn attachment(
    said: &Said<'_>,
    [good, bad]: [&'static str; 2],
    longest: usize,
    limits: Fields,
) -> Value {
    let field = |(title, value)| json!({ "title": title, "value": value, "short": false });
    json!({
        "fallback": "",
        "color": said.pick(good, bad),
        "author_name": said.title(),
        "text": cut(said.text(), longest),
        "mrkdwn_in": ["text"],
        "fields": said.fields(limits).into_iter().map(field).collect::<Vec<_>>(),
    })
}

fn accept(answer: &Answer) -> Result<Sent, Error> {
    let said = answer.json();
    if said["ok"] == true {
        return Ok(Sent::default());
    }
    let Some(error) = said["error"].as_str() else {
        return Err(Error::passing(
            "Slack responded with something else than its API does",
        ));
    };
    let passing = [
        "ratelimited",
        "rate_limited",
        "message_limit_exceeded",
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
    ];
    let retry = if passing.contains(&error) {
        Retry::Backoff
    } else {
        Retry::Never
    };
    Err(Error::new(format!("Slack responded with error: {error}"), retry))
}

fn accept_first(answer: &Answer) -> Result<Sent, Error> {
    accept(answer)?;
    let said = answer.json();
    let thread = Thread::of_texts(&[("channel", said["channel"].as_str()), ("ts", said["ts"].as_str())]);
    Ok(Sent { thread })
}

fn message_is_gone(answer: &Answer) -> bool {
    let gone = [
        "message_not_found",
        "thread_not_found",
        "cant_update_message",
        "edit_window_closed",
    ];
    matches!(&answer.json()["error"], Value::String(error) if gone.contains(&error.as_str()))
}
