//! `giteapullrequestcomment`: one comment on a pull request.

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::comment::{self, Comment};
use crate::notification::{Notification, Sent};

/// Makes the comment, or changes it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let comment = Comment::new(notification, &http.target.provider, comment::PULL_REQUEST)?;
    let mut gitea = sign_in(http)?;
    gitea.api = gitea
        .api
        .about(comment.missing("pull request", &gitea.repository.id));
    let number = comment.number.to_string();
    let places = gitea.comments(&number)?;
    comment
        .put(&gitea.api, &places, notification, async {
            Ok(forge::comment::me(&gitea.api).await?)
        })
        .await
}
