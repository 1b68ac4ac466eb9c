//! `webex`: a message in Markdown to a room. Answers go to the first message.

use serde_json::json;

use crate::error::Error;
use crate::notification::{Notification, Sent, Thread};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut_bytes};
use crate::target::Target;

/// Of a message in bytes.
const MAX_MESSAGE: usize = 7_439;
const FIELDS: Fields = Fields {
    count: 40,
    value: 1_000,
    total: 3_000,
};

/// One message.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Webex hook URL")?;
    let mut payload = json!({ "markdown": markdown(notification) });
    if !target.channel.is_empty() {
        payload["roomId"] = target.channel.as_str().into();
    }
    let first = notification.thread_text("message");
    if let Some(first) = first {
        payload["parentId"] = first.into();
    }
    // with an empty token, as in Flux, Webex says what is missing
    let request = Request::json(url, &payload)
        .header(http::header::AUTHORIZATION, &format!("Bearer {}", target.token))?
        .thread_is_gone_if(|answer| answer.status == 404 || answer.status == 400);
    Ok(vec![if notification.threaded && first.is_none() {
        request.accepting(accept)
    } else {
        request
    }])
}

fn markdown(notification: &Notification) -> String {
    let said = Said::from_notification(notification);
    let head = format!("{} **{}**\n", said.pick("✅", "💣"), said.title());
    let fields = said.fields(FIELDS).into_iter();
    let tail: String = fields
        .map(|(name, value)| format!(">**{name}**: {value}\n"))
        .collect();
    let rest = MAX_MESSAGE.saturating_sub(head.len() + tail.len() + 1);
    format!("{head}{}\n{tail}", cut_bytes(said.text(), rest))
}

fn accept(answer: &Answer) -> Result<Sent, Error> {
    let thread = Thread::of_texts(&[("message", answer.json()["id"].as_str())]);
    Ok(Sent { thread })
}
