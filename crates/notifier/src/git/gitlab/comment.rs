//! `gitlabmergerequestcomment`: one note on a merge request.

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::comment::{self, Comment};
use crate::notification::{Notification, Sent};

/// Makes the note, or changes it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let comment = Comment::new(notification, &http.target.provider, comment::MERGE_REQUEST)?;
    let mut gitlab = sign_in(http)?;
    gitlab.api = gitlab
        .api
        .about(comment.missing("merge request", &gitlab.project));
    let number = comment.number.to_string();
    let places = gitlab.comments(&number);
    comment
        .put(&gitlab.api, &places, notification, async {
            Ok(forge::comment::me(&gitlab.api).await?)
        })
        .await
}
