//! `github`: the status of a commit.

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::deployment;
use crate::git::status::Status;
use crate::notification::{Notification, Sent};

/// Sets the status unless it stands already, and that of the deployment.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::from_notification(notification)? else {
        return Ok(Sent::default());
    };
    let (mut github, _) = sign_in(http).await?;
    github.api = github.api.about(status.missing(&github.repository.id));
    let standing = github.status(&status.commit, &status.id).await;
    let standing = standing.map_err(|error| error.within("could not list commit statuses"))?;
    if status.is_news(standing.as_ref()) {
        let posted = github.set_status(status.as_forge()).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    let description = deployment::description(notification);
    if let Some(deployment) = deployment::of(notification, &status, &description) {
        github.deploy(deployment).await?;
    }
    Ok(Sent::default())
}
