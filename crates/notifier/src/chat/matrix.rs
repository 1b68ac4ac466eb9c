//! `matrix`: a text event in a room, in a thread if wanted.
//!
//! The transaction is named by what is said: a homeserver drops what it has heard already, so another attempt repeats
//! nothing.

use aws_lc_rs::digest;
use http::Method;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::error::Error;
use crate::notification::{Notification, Sent, State, Thread};
use crate::request::{Answer, Request};
use crate::said::{Fields, Said, cut_json};
use crate::target::Target;

/// An event takes 65,536 bytes altogether.
const MAX_TEXT: usize = 40_000;

/// One text event.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Matrix homeserver URL")?;
    let transaction = transaction(notification);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["_matrix", "client", "r0", "rooms"]);
        path.extend([&target.channel, "send", "m.room.message", &transaction]);
    }
    let mut payload = json!({ "msgtype": "m.text", "body": body(notification) });
    let first = notification.thread_text("event");
    if let Some(first) = first {
        payload["m.relates_to"] = in_thread(first);
    }
    let request = Request::json(url, &payload)
        .with_method(Method::PUT)
        .header(AUTHORIZATION, &format!("Bearer {}", target.token))?;
    Ok(vec![if notification.threaded && first.is_none() {
        request.accepting(accept)
    } else {
        request
    }])
}

fn body(notification: &Notification) -> String {
    let said = Said::from_notification(notification);
    let head = format!("{} {}", said.pick("💫", "🚨"), said.title());
    let fields = said.fields(Fields::MANY).into_iter();
    let metadata: String = fields
        .map(|(name, value)| format!("- {name}: {value}\n"))
        .collect();
    format!("{head}\n{}\n{metadata}", cut_json(said.text(), MAX_TEXT))
}

fn in_thread(first: &str) -> Value {
    json!({
        "rel_type": "m.thread",
        "event_id": first,
        "is_falling_back": true, // for clients that know answers only
        "m.in_reply_to": { "event_id": first },
    })
}

/// As in Flux, if it says what Flux says.
fn transaction(notification: &Notification) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(&go_text::json::to_vec(&notification.event));
    match notification.state {
        State::Event => {}
        State::Firing => context.update(b"firing"),
        State::Resolved => context.update(b"resolved"),
    }
    context.update(notification.text.as_deref().unwrap_or_default().as_bytes());
    hex::encode(context.finish())
}

fn accept(answer: &Answer) -> Result<Sent, Error> {
    let thread = Thread::of_texts(&[("event", answer.json()["event_id"].as_str())]);
    Ok(Sent { thread })
}
