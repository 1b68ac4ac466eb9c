//! `lark`: a card for the bot of a group.

use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut_json};
use crate::target::Target;

/// Lark takes 20 KB altogether.
const MAX_TEXT: usize = 10_000;
const FIELDS: Fields = Fields {
    count: 40,
    value: 1_000,
    total: 5_000,
};
/// The bot says too much at the moment.
const TOO_FREQUENT: [i64; 2] = [11_232, 9_499];

/// One card.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let url = target.url("Lark hook URL")?;
    Ok(vec![
        Request::json(url, &card(&Said::from_notification(notification))).accepting(accept),
    ])
}

fn card(said: &Said<'_>) -> Value {
    let mut content = format!("**{}**\n\n", cut_json(said.text(), MAX_TEXT));
    for (name, value) in said.fields(FIELDS) {
        content.push_str(&format!("{name}: {value}\n"));
    }
    let title = format!("{} {}", said.pick("💫", "🚨"), said.title());
    json!({
        "msg_type": "interactive",
        "card": {
            "config": { "wide_screen_mode": true },
            "header": {
                "title": { "tag": "plain_text", "content": title },
                "template": said.pick("turquoise", "red"),
            },
            "elements": [{ "tag": "div", "text": { "tag": "lark_md", "content": content } }],
        },
    })
}

/// Lark answers with 200 and says in a code what is wrong.
fn accept(answer: &Answer) -> Result<Sent, Error> {
    let said = answer.json();
    let code = said["code"].as_i64().unwrap_or_default();
    if code == 0 {
        return Ok(Sent::default());
    }
    let text = format!(
        "Lark responded with code {code}: {}",
        said["msg"].as_str().unwrap_or_default()
    );
    Err(if TOO_FREQUENT.contains(&code) {
        Error::passing(text)
    } else {
        Error::invalid(text)
    })
}
