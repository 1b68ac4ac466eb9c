//! `zoom`: a rich message for an incoming webhook of Team Chat.

use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::{Fields, Said, cut};
use crate::target::Target;

/// A message of Team Chat has no more characters.
const MAX_TEXT: usize = 4_096;

/// One message.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Zoom incoming webhook URL")?;
    if target.token.is_empty() {
        return Err(Error::invalid("empty Zoom verification token"));
    }
    let is_pinned = url
        .query_pairs()
        .any(|(name, value)| name == "format" && !value.is_empty());
    if !is_pinned {
        url.query_pairs_mut().append_pair("format", "full");
    }
    // the token alone, without a scheme
    let request = Request::json(url, &content(&Said::from_notification(notification)));
    Ok(vec![request.header(AUTHORIZATION, &target.token)?])
}

fn content(said: &Said<'_>) -> Value {
    let mut message = json!({ "type": "message" });
    if !said.text().is_empty() {
        message["text"] = cut(said.text(), MAX_TEXT).into();
    }
    let mut body = vec![message];
    let fields = said.fields(Fields::MANY);
    if !fields.is_empty() {
        let item = |(key, value)| json!({ "key": key, "value": value });
        let items: Value = fields.into_iter().map(item).collect();
        body.push(json!({ "type": "fields", "items": items }));
    }
    json!({
        "content": {
            "head": { "text": said.title(), "sub_head": { "text": cut(said.severity(), 100) } },
            "body": body,
        },
    })
}
