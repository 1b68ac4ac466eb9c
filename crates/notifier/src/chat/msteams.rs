//! `msteams`: an Adaptive Card for a workflow, or a MessageCard for the connectors that Microsoft retires.

use event::keys;
use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut_json};
use crate::target::Target;

/// Teams takes 28 KB altogether.
const MAX_TEXT: usize = 14_000;
const FIELDS: Fields = Fields {
    count: 40,
    value: 2_000,
    total: 6_000,
};
const MAX_TITLE: usize = 1_000;

/// One card.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("MS Teams webhook URL")?;
    let said = Said::from_notification(notification);
    let host = url.host_str().unwrap_or_default();
    Ok(vec![if host.ends_with(".webhook.office.com") {
        Request::json(url, &message_card(&said)).accepting(accept_connector)
    } else {
        Request::json(url, &adaptive_card(&said))
    }])
}

fn message_card(said: &Said<'_>) -> Value {
    let title = cut_json(&said.title(), MAX_TITLE).into_owned();
    let facts = said.fields(FIELDS).into_iter();
    json!({
        "@type": "MessageCard",
        "@context": "http://schema.org/extensions",
        "themeColor": said.pick("0076D7", "FF0000"),
        "summary": &title,
        "sections": [{
            "activityTitle": cut_json(said.text(), MAX_TEXT),
            "activitySubtitle": &title,
            "facts": facts.map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
        }],
    })
}

fn adaptive_card(said: &Said<'_>) -> Value {
    let title = cut_json(&said.title(), MAX_TITLE).into_owned();
    let mut message = json!({ "type": "TextBlock", "wrap": true });
    if !said.text().is_empty() {
        message["text"] = cut_json(said.text(), MAX_TEXT).into();
    }
    if said.is_bad() {
        message["color"] = "attention".into();
    }
    let mut facts = said.fields(FIELDS);
    facts.sort_by_key(|(name, _)| name != keys::SUMMARY); // it comes first, the others stay in order
    let mut fact_set = json!({ "type": "FactSet" });
    if !facts.is_empty() {
        let fact = |(title, value)| json!({ "title": title, "value": value });
        fact_set["facts"] = facts.into_iter().map(fact).collect();
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "msteams": { "width": "Full" },
                "body": [{
                    "type": "Container",
                    "items": [
                        { "type": "TextBlock", "text": title, "size": "large", "weight": "bolder", "wrap": true },
                        message,
                        fact_set,
                    ],
                }],
            },
        }],
    })
}

/// A connector answers with 200 even if Teams did not take the card, and says so in words.
fn accept_connector(answer: &Answer) -> Result<Sent, Error> {
    let text = String::from_utf8_lossy(&answer.body);
    if !text.contains("delivery failed") {
        return Ok(Sent::default());
    }
    let status = text.split_once("HTTP error ").map(|(_, rest)| rest);
    let status: String = status
        .unwrap_or_default()
        .chars()
        .take_while(char::is_ascii_digit)
        .take(3)
        .collect();
    let text = format!("the connector responded that Microsoft Teams answered with HTTP error '{status}'");
    Err(if status.starts_with('4') && status != "429" {
        Error::invalid(text)
    } else {
        Error::passing(text)
    })
}
