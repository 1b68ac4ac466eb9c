//! `gitlab`: the status of a commit.

use serde::Deserialize;
use serde_json::json;

use super::GitLab;
use crate::edge::Http;
use crate::error::Error;
use crate::git::status::{Standing, State, Status};
use crate::notification::{Notification, Sent};

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    id: u64,
    status: Option<String>,
    name: Option<String>,
    description: Option<String>,
}

/// Sets the status unless it stands already.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    let mut gitlab = GitLab::of(http)?;
    gitlab.api = gitlab.api.about(status.missing(&gitlab.project));
    let state = match status.state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failed",
    };
    let standing = gitlab.standing(&status).await?;
    if status.is_news(state, standing.as_ref()) {
        let body = json!({"state": state, "name": status.id, "description": status.description});
        let path = ["projects", &gitlab.project, "statuses", &status.commit];
        let posted = gitlab.api.post(&path, &[], &body).await;
        posted.map_err(|error| error.within("unable to set commit status"))?;
    }
    Ok(Sent::default())
}

impl GitLab<'_> {
    /// The latest status of this name. GitLab leaves out those that a later one replaced, yet not those of other branches.
    async fn standing(&self, status: &Status) -> Result<Option<Standing>, Error> {
        let path = [
            "projects",
            &self.project,
            "repository",
            "commits",
            &status.commit,
            "statuses",
        ];
        let found: Vec<Found> = self
            .api
            .get(
                &path,
                &[("name", &status.id), ("order_by", "id"), ("sort", "desc")],
            )
            .await
            .map_err(|error| error.within("unable to list commit status"))?;
        let mine = found
            .into_iter()
            .filter(|found| found.name.as_deref() == Some(&status.id));
        let mine = mine.max_by_key(|found| found.id);
        Ok(mine.map(|mine| Standing {
            state: mine.status.unwrap_or_default(),
            description: mine.description.unwrap_or_default(),
        }))
    }
}
