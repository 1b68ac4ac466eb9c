//! `gitlabmergerequestcomment`: one note on a merge request.

use http::Method;

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::comment::{self, Comment, Places};
use crate::notification::{Notification, Sent};

/// Makes the note, or changes it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let comment = Comment::new(notification, &http.target.provider, comment::MERGE_REQUEST)?;
    let mut gitlab = sign_in(http)?;
    gitlab.api = gitlab
        .api
        .about(comment.missing("merge request", &gitlab.project));
    let number = comment.number.to_string();
    let notes = vec!["projects", &gitlab.project, "merge_requests", &number, "notes"];
    let places = Places {
        all: notes.clone(),
        each: notes,
        change: Method::PUT,
        query: &[("sort", "asc"), ("order_by", "created_at")],
        is_paged: true,
    };
    comment
        .put(&gitlab.api, &places, notification, comment::me(&gitlab.api))
        .await
}
