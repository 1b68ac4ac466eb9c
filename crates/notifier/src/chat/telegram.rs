//! `telegram`: a message in MarkdownV2 to a chat, or to a topic of a forum (`chat:topic`). Answers go to the first
//! message.

use serde_json::{Value, json};
use url::Url;

use crate::error::Error;
use crate::notification::{Notification, Sent, Thread};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut, cut_utf16};
use crate::target::Target;

/// As in Flux, there is no other: `spec.address` means nothing.
const API: &str = "https://api.telegram.org";
/// Of a message without its markup, in code units of UTF-16.
const MAX_MESSAGE: usize = 4_096;
const FIELDS: Fields = Fields {
    count: 40,
    value: 500,
    total: 1_500,
};

/// One message.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    if target.channel.is_empty() {
        return Err(Error::invalid("empty Telegram channel"));
    }
    if target.token.is_empty() {
        return Err(Error::invalid("empty Telegram token"));
    }
    let mut url = Url::parse(API).expect("it is one");
    url.path_segments_mut()
        .expect("it has a host")
        .extend([&format!("bot{}", target.token), "sendMessage"]);
    let mut payload = json!({ "text": text(notification), "parse_mode": "MarkdownV2" });
    match target.channel.split_once(':') {
        None => payload["chat_id"] = target.channel.as_str().into(),
        Some((chat, "")) => payload["chat_id"] = chat.into(),
        Some((chat, topic)) => {
            payload["chat_id"] = chat.into();
            payload["message_thread_id"] = topic.into();
        }
    }
    let first = notification
        .thread_text("message")
        .and_then(|id| id.parse::<i64>().ok());
    if let Some(first) = first {
        payload["reply_parameters"] = json!({ "message_id": first, "allow_sending_without_reply": true });
    }
    let request = Request::json(url, &payload);
    Ok(vec![if notification.threaded && first.is_none() {
        request.accepting(accept)
    } else {
        request
    }])
}

fn text(notification: &Notification) -> String {
    let said = Said::from_notification(notification);
    let subject = notification.subject();
    let kind = cut(subject.kind, 600).to_lowercase();
    let emoji = said.pick("💫", "🚨");
    let heading = format!("{emoji} {kind}/{}/{}", subject.name, subject.namespace);
    let heading = cut_utf16(&heading, 600);
    let fields = said.fields(FIELDS);
    let mut left = MAX_MESSAGE - 2 - length(&heading);
    let mut metadata = String::new();
    for (name, value) in &fields {
        metadata.push_str(&format!("\\- *{}*: {}\n", escaped(name), escaped(value)));
        left = left.saturating_sub(length(name) + length(value) + "- : \n".len());
    }
    let message = cut_utf16(said.text(), left);
    format!("*{}*\n{}\n{metadata}", escaped(&heading), escaped(&message))
}

fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Everything that MarkdownV2 gives a meaning to stands for itself.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for found in text.chars() {
        if r"\.-_[]()~>`#+=|{}!*".contains(found) {
            escaped.push('\\');
        }
        escaped.push(found);
    }
    escaped
}

fn accept(answer: &Answer) -> Result<Sent, Error> {
    let message = match &answer.json()["result"]["message_id"] {
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    };
    let thread = Thread::of_texts(&[("message", message.as_deref())]);
    Ok(Sent { thread })
}
