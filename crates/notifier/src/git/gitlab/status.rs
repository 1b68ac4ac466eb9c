//! `gitlab`: the status of a commit.

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
    let mut gitlab = sign_in(http)?;
    gitlab.api = gitlab.api.about(status.missing(&gitlab.project));
    let standing = gitlab.status(&status.commit, &status.id).await;
    let standing = standing.map_err(|error| error.within("unable to list commit status"))?;
    if status.is_news(standing.as_ref()) {
        let posted = gitlab.set_status(status.as_forge()).await;
        posted.map_err(|error| error.within("unable to set commit status"))?;
    }
    let description = deployment::description(notification);
    if let Some(deployment) = deployment::of(notification, &status, &description) {
        gitlab.deploy(deployment).await?;
    }
    Ok(Sent::default())
}
