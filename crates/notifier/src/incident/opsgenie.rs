//! `opsgenie`: an alert for each event, as in Flux; what fires is closed by its alias when it is resolved.

use http::header::AUTHORIZATION;
use serde_json::json;

use super::{metadata, rfc3339};
use crate::error::Error;
use crate::notification::{Notification, State};
use crate::request::Request;
use crate::said::{Said, cut, key_of, message, stable_key};
use crate::target::Target;

const MAX_MESSAGE: usize = 130;
const MAX_DESCRIPTION: usize = 15_000;

/// An alert, or the end of one.
pub(crate) fn render(target: &Target, notification: &Notification) -> Result<Vec<Request>, Error> {
    let mut url = target.url("Opsgenie hook URL")?;
    if target.token.is_empty() {
        return Err(Error::invalid("empty Opsgenie apikey/token"));
    }
    let description = cut(message(notification), MAX_DESCRIPTION);
    let alias = alias(target, notification);
    let payload = if notification.state == State::Resolved {
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([&alias, "close"]);
        }
        url.query_pairs_mut().append_pair("identifierType", "alias");
        json!({ "source": "Flux", "note": description })
    } else {
        let subject = notification.subject();
        let mut details = metadata(notification);
        details.insert(
            "severity".to_owned(),
            Said::from_notification(notification).severity().into(),
        );
        json!({
            "message": cut(&format!("{}/{}", subject.kind, subject.name), MAX_MESSAGE),
            "alias": alias,
            "description": description,
            "details": details,
        })
    };
    let request = Request::json(url, &payload);
    Ok(vec![
        request.header(AUTHORIZATION, &format!("GenieKey {}", target.token))?,
    ])
}

/// Alerts of one alias are one. As in Flux, there is one for each object and reason; what tells of several objects is
/// always another.
fn alias(target: &Target, notification: &Notification) -> String {
    let event = &notification.event;
    match notification.state {
        State::Firing | State::Resolved => stable_key(target, notification),
        State::Event if notification.is_about_one() => {
            key_of(target, &format!("{}/{}", event.involved_object, event.reason))
        }
        State::Event => key_of(
            target,
            &format!("{}/{}", notification.key, rfc3339(event.timestamp)),
        ),
    }
}
