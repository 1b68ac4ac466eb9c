//! `googlechat`: a card for a webhook of a space. Threads have keys of our choice.

use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::{Fields, Said, cut, cut_json, stable_key};
use crate::target::Target;

/// A message takes 32,000 bytes altogether.
const MAX_TEXT: usize = 15_000;
const FIELDS: Fields = Fields {
    count: 40,
    value: 2_000,
    total: 7_000,
};

/// One card.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Google Chat hook URL")?;
    let mut payload = json!({ "cards": [card(notification)] });
    if notification.threaded {
        let option = ("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD");
        url.query_pairs_mut().append_pair(option.0, option.1);
        payload["thread"] = json!({ "threadKey": stable_key(target, notification) });
    }
    Ok(vec![Request::json(url, &payload)])
}

fn card(notification: &Notification) -> Value {
    let said = Said::from_notification(notification);
    let text = cut_json(said.text(), MAX_TEXT);
    let text = if said.is_bad() {
        format!("<font color=\"#ff0000\">{text}</font>")
    } else {
        text.into_owned()
    };
    let mut sections = vec![json!({
        "header": "",
        "widgets": [{ "textParagraph": { "text": text }, "keyValue": null }],
    })];
    let widgets: Vec<Value> = said.fields(FIELDS).into_iter().map(widget).collect();
    if !widgets.is_empty() {
        sections.push(json!({ "header": "", "widgets": widgets }));
    }
    json!({
        "header": {
            "title": said.title(),
            "subtitle": cut(&notification.event.reporting_controller, 200),
            "imageUrl": null,
            "imageStyle": null,
        },
        "sections": sections,
    })
}

fn widget<T: serde::Serialize>((name, value): (T, T)) -> Value {
    json!({
        "textParagraph": null,
        "keyValue": {
            "topLabel": name,
            "content": value,
            "contentMultiline": false,
            "bottomLabel": null,
            "icon": null,
        },
    })
}
