//! `githubpullrequestcomment`: one comment on a pull request.

use super::sign_in;
use crate::edge::Http;
use crate::error::Error;
use crate::git::comment::{self, Comment};
use crate::identity;
use crate::notification::{Notification, Sent};

/// Makes the comment, or changes it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let comment = Comment::new(notification, &http.target.provider, comment::PULL_REQUEST)?;
    let (mut github, app) = sign_in(http).await?;
    github.api = github
        .api
        .about(comment.missing("pull request", &github.repository.id));
    let number = comment.number.to_string();
    let places = github.comments(&number)?;
    let me = async {
        match &app {
            // The App's comments are by a robot of its name.
            Some(app) => Ok(format!("{}[bot]", identity::github_slug(http, app).await?)),
            None => Ok(forge::comment::me(&github.api).await?),
        }
    };
    comment.put(&github.api, &places, notification, me).await
}
