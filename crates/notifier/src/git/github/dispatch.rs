//! `githubdispatch`: a repository_dispatch event, which starts workflows of GitHub Actions.

use serde::Serialize;

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::forward;
use crate::notification::{Notification, Sent};
use crate::said::cut;

/// Longer types are refused.
const MAX_TYPE: usize = 100;

#[derive(Serialize)]
struct Dispatch<'a> {
    event_type: &'a str,
    client_payload: &'a event::Event,
}

/// Sends the event as it is.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let event = forward::worded(notification);
    let object = &event.involved_object;
    let event_type = format!("{}/{}.{}", object.kind, object.name, object.namespace);
    let dispatch = Dispatch {
        event_type: &cut(&event_type, MAX_TYPE),
        client_payload: &event,
    };
    let (mut github, _) = sign_in(http).await?;
    let missing = format!(
        "there is no repository {}, or the token may not write to it",
        github.repository.id
    );
    github.api = github.api.about(missing);
    let sent = github
        .api
        .post(&github.path(&["dispatches"])?, &[], &dispatch)
        .await;
    sent.map_err(|error| error.within("could not send github repository dispatch webhook"))?;
    Ok(Sent::default())
}
