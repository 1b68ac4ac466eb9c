//! `generic` and `generic-hmac`: the event as it is, to whoever wants it.

use aws_lc_rs::hmac;
use event::Event;

use crate::error::Error;
use crate::notification::Notification;
use crate::request::Request;
use crate::said::cut;
use crate::target::Target;

/// Says which controller the event comes from.
const COMPONENT: &str = "gotk-component";
const MAX_COMPONENT: usize = 1_000;

/// Without a signature.
pub(crate) fn generic(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    Ok(vec![forward(target, notification)?])
}

/// With an HMAC of the body under the Secret's token.
pub(crate) fn signed(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    if target.token.is_empty() {
        return Err(Error::invalid("HMAC key is empty"));
    }
    let request = forward(target, notification)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, target.token.as_bytes());
    let signature = hex::encode(hmac::sign(&key, &request.body));
    Ok(vec![
        request.named_header("X-Signature", &format!("sha256={signature}"))?,
    ])
}

fn forward(target: &Target, notification: &Notification) -> Result<Request, Error> {
    let url = target.url("hook URL")?;
    let event = worded(notification);
    let mut request = Request::json(url, &*event);
    // third parties may have written anything there
    let component = cut(event.reporting_controller.trim(), MAX_COMPONENT);
    if let Ok(known) = request.clone().named_header(COMPONENT, &component) {
        request = known;
    }
    for (name, value) in target.headers.iter().filter(|(name, _)| !is_about_framing(name)) {
        request = request.named_header(name, value)?;
    }
    Ok(request)
}

/// True for headers that the connection sets itself; users cannot set them. Go ignores most of them, too.
pub(crate) fn is_about_framing(name: &str) -> bool {
    let names = [
        "host",
        "content-length",
        "transfer-encoding",
        "trailer",
        "connection",
    ];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The event with the text of the template, if there is one.
pub(crate) fn worded(notification: &Notification) -> std::borrow::Cow<'_, Event> {
    use std::borrow::Cow;
    match &notification.text {
        None => Cow::Borrowed(&notification.event),
        Some(text) => Cow::Owned(Event {
            message: text.clone(),
            ..notification.event.clone()
        }),
    }
}
