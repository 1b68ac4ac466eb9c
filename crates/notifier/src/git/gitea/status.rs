//! `gitea`: the status of a commit.

use serde::Deserialize;
use serde_json::json;

use super::Gitea;
use crate::edge::Http;
use crate::error::Error;
use crate::git::status::{Standing, State, Status};
use crate::notification::{Notification, Sent};

/// More is not given at once, unless the administrator says so.
const PAGE: usize = 50;
const MAX_PAGES: usize = 4;

#[derive(Deserialize)]
struct Found {
    status: Option<String>,
    context: Option<String>,
    description: Option<String>,
}

/// Sets the status unless it stands already.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    let mut gitea = Gitea::of(http)?;
    gitea.api = gitea.api.about(status.missing(&gitea.repository.id));
    let state = match status.state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
    };
    let standing = gitea.standing(&status).await?;
    if status.is_news(state, standing.as_ref()) {
        let body = json!({
            "state": state,
            "target_url": "",
            "description": status.description,
            "context": status.id,
        });
        let path = gitea.path(&["statuses", &status.commit])?;
        let posted = gitea.api.post(&path, &[], &body).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}

impl Gitea<'_> {
    /// The latest status of this id.
    async fn standing(&self, status: &Status) -> Result<Option<Standing>, Error> {
        let path = self.path(&["commits", &status.commit, "statuses"])?;
        let limit = PAGE.to_string();
        for page in 1..=MAX_PAGES {
            let page = page.to_string();
            let query = [
                ("page", page.as_str()),
                ("limit", &limit),
                ("sort", "highestindex"),
            ];
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
                    state: mine.status.unwrap_or_default(),
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
