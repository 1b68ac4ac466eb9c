//! `discord`: an attachment for the Slack-compatible end of a webhook, as Flux sends it.
//!
//! Messages that are kept together are one, which changes: that takes the webhook's own end and form.

use http::Method;
use serde_json::{Value, json};
use url::Url;

use super::slack;
use crate::error::Error;
use crate::notification::{Notification, Sent, Thread};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut};
use crate::target::Target;

/// An embed takes 4,096 characters of text and 6,000 altogether.
const MAX_TEXT: usize = 3_500;
const FIELDS: Fields = Fields {
    count: 25,
    value: 1_000,
    total: 2_000,
};
const GREEN: u32 = 0x002e_b886;
const RED: u32 = 0x00a3_0200;

/// One message, new or changed.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Discord hook URL")?;
    let path = url
        .path()
        .trim_end_matches('/')
        .trim_end_matches("/slack")
        .to_owned();
    let name = slack::name(target, notification);
    let said = Said::from_notification(notification);
    if !notification.threaded {
        url.set_path(&format!("{path}/slack"));
        let attachment = slack::attachment(&said, ["good", "danger"], MAX_TEXT, FIELDS);
        return Ok(vec![Request::json(url, &slack::message("", name, attachment))]);
    }
    let embed = embed(&said);
    let Some(first) = notification.thread_text("message") else {
        url.set_path(&path);
        url.query_pairs_mut().append_pair("wait", "true");
        let payload =
            json!({ "username": cut(name, 80), "embeds": [embed], "allowed_mentions": { "parse": [] } });
        return Ok(vec![Request::json(url, &payload).accepting(accept)]);
    };
    let url = message_url(url, &path, first);
    let payload = json!({ "embeds": [embed], "allowed_mentions": { "parse": [] } });
    let request = Request::json(url, &payload).with_method(Method::PATCH);
    Ok(vec![request.thread_is_gone_if(|answer| answer.status == 404)])
}

fn embed(said: &Said<'_>) -> Value {
    let fields = said.fields(FIELDS).into_iter();
    let fields = fields.filter(|(name, value)| !name.trim().is_empty() && !value.trim().is_empty());
    json!({
        "author": { "name": cut(&said.title(), 256) },
        "description": cut(said.text(), MAX_TEXT),
        "color": if said.is_bad() { RED } else { GREEN },
        "fields": fields
            .map(|(name, value)| json!({ "name": name, "value": value, "inline": false }))
            .collect::<Vec<_>>(),
    })
}

fn message_url(mut url: Url, path: &str, message: &str) -> Url {
    url.set_path(path);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.extend(["messages", message]);
    }
    url
}

fn accept(answer: &Answer) -> Result<Sent, Error> {
    let thread = Thread::of_texts(&[("message", answer.json()["id"].as_str())]);
    Ok(Sent { thread })
}
