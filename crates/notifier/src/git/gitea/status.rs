//! `gitea`: the status of a commit.

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::status::Status;
use crate::notification::{Notification, Sent};

/// Sets the status unless it stands already.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::from_notification(notification)? else {
        return Ok(Sent::default());
    };
    let mut gitea = sign_in(http)?;
    gitea.api = gitea.api.about(status.missing(&gitea.repository.id));
    let standing = gitea.status(&status.commit, &status.id).await;
    let standing = standing.map_err(|error| error.within("could not list commit statuses"))?;
    if status.is_news(standing.as_ref()) {
        let posted = gitea.set_status(status.as_forge()).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}
