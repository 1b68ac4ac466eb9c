//! `github`: the status of a commit.

use serde::Deserialize;
use serde_json::json;

use super::GitHub;
use crate::edge::Http;
use crate::error::Error;
use crate::git::status::{Standing, State, Status};
use crate::notification::{Notification, Sent};

/// A commit has a status for each object and Provider; the latest come first.
const PAGE: usize = 100;
const MAX_PAGES: usize = 3;

#[derive(Deserialize)]
struct Found {
    state: Option<String>,
    context: Option<String>,
    description: Option<String>,
}

/// Sets the status unless it stands already.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    let mut github = GitHub::of(http).await?;
    github.api = github.api.about(status.missing(&github.repository.id));
    let state = match status.state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
    };
    let standing = github.standing(&status).await?;
    if status.is_news(state, standing.as_ref()) {
        let body = json!({"state": state, "description": status.description, "context": status.id});
        let path = github.path(&["statuses", &status.commit])?;
        let posted = github.api.post(&path, &[], &body).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}

impl GitHub<'_> {
    /// The latest status of this id.
    async fn standing(&self, status: &Status) -> Result<Option<Standing>, Error> {
        let path = self.path(&["commits", &status.commit, "statuses"])?;
        for page in 1..=MAX_PAGES {
            let query = [("per_page", PAGE.to_string()), ("page", page.to_string())];
            let query = query.each_ref().map(|(name, value)| (*name, value.as_str()));
            let found: Vec<Found> = self
                .api
                .get(&path, &query)
                .await
                .map_err(|error| error.within("could not list commit statuses"))?;
            let is_last = found.len() < PAGE;
            let mine = found
                .into_iter()
                .find(|found| found.context.as_deref() == Some(&status.id));
            if let Some(mine) = mine {
                return Ok(Some(Standing {
                    state: mine.state.unwrap_or_default(),
                    description: mine.description.unwrap_or_default(),
                }));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }
}
