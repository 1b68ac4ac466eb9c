//! `zulip`: a message in Markdown to `channel/topic`. Messages that are kept together have a topic of their own.

use http::Method;

use crate::error::Error;
use crate::markdown;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::{Said, cut};
use crate::target::Target;

/// In characters.
const MAX_MESSAGE: usize = 10_000;
const MAX_TOPIC: usize = 60;

/// One message.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Zulip endpoint URL")?;
    url.set_path("/api/v1/messages");
    let (channel, topic) = match target.channel.split_once('/') {
        Some((channel, topic)) if !channel.is_empty() && !topic.is_empty() => (channel, topic),
        _ => {
            return Err(Error::invalid(format!(
                "invalid Zulip channel format, expected <channel>/<topic>, got '{}'",
                target.channel
            )));
        }
    };
    let topic = if notification.threaded {
        format!("{topic}: {}", Said::from_notification(notification).title())
    } else {
        topic.to_owned()
    };
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("content", &markdown::post(notification, MAX_MESSAGE))
        .append_pair("to", channel)
        .append_pair("topic", &cut(&topic, MAX_TOPIC))
        .append_pair("type", "stream")
        .finish();
    let request = Request::new(Method::POST, url, "application/x-www-form-urlencoded", body);
    if target.username.is_empty() && target.password.is_empty() {
        return Ok(vec![request]);
    }
    Ok(vec![request.basic(&target.username, &target.password)?])
}
