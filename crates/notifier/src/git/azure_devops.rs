//! `azuredevops`: the status of a commit at Azure DevOps, with a personal access token or as a workload.

use cloud_identity::azure;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::address::Repository as Address;
use super::api::{self, Api};
use super::status::{Standing, State, Status};
use crate::edge::Http;
use crate::error::Error;
use crate::identity;
use crate::notification::{Notification, Sent};
use crate::target::Target;

/// Azure DevOps Server has had it since 2020.
const VERSION: (&str, &str) = ("api-version", "6.0");
/// Which statuses are ours.
const GENRE: &str = "fluxcd";

#[derive(Deserialize)]
struct Statuses {
    #[serde(default)]
    value: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    state: Option<String>,
    description: Option<String>,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    name: Option<String>,
    genre: Option<String>,
}

/// A repository of a project of an organisation.
#[derive(Debug, PartialEq)]
struct Repository {
    root: Url,
    project: String,
    name: String,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Repository::parse(&target.address).map(drop)
}

/// Sets the status unless it stands already.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    let repository = Repository::parse(&http.target.address)?;
    let (project, name) = (repository.project.as_str(), repository.name.as_str());
    let api = repository.api(http).await?;
    let api = api.about(status.missing(&format!("{project}/{name}")));
    let state = match status.state {
        State::Pending => "pending",
        State::Success => "succeeded",
        State::Failure => "error",
    };
    let genre = match notification.event.metadata.get(event::keys::SUMMARY) {
        Some(summary) => format!("{GENRE}:{summary}"),
        None => GENRE.to_owned(),
    };
    let path = [
        project,
        "_apis",
        "git",
        "repositories",
        name,
        "commits",
        &status.commit,
        "statuses",
    ];
    let found: Statuses = api
        .get(&path, &[VERSION, ("latestOnly", "true")])
        .await
        .map_err(|error| error.within("could not list commit statuses"))?;
    let is_mine = |found: &Found| {
        let context = found.context.as_ref();
        context.is_some_and(|context| {
            context.name.as_deref() == Some(&status.id) && context.genre.as_deref() == Some(&genre)
        })
    };
    let standing = found.value.into_iter().find(is_mine).map(|found| Standing {
        state: found.state.unwrap_or_default(),
        description: found.description.unwrap_or_default(),
    });
    if status.is_news(state, standing.as_ref()) {
        let body = json!({
            "state": state,
            "description": status.description,
            "context": {"genre": genre, "name": status.id},
        });
        let posted = api.post(&path, &[VERSION], &body).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}

impl Repository {
    /// Reads `https://dev.azure.com/organisation/project/_git/name` and `git@ssh.dev.azure.com:v3/organisation/project/name`.
    fn parse(address: &str) -> Result<Self, Error> {
        let address = Address::parse(address)?;
        let parts: Vec<&str> = address.id.split('/').collect();
        let (origin, [organisation, project, name]) = match parts[..] {
            ["v3", organisation, project, name] if address.host() == "ssh.dev.azure.com" => (
                Url::parse("https://dev.azure.com").expect("it is a constant"),
                [organisation, project, name],
            ),
            [organisation, project, _, name] => (address.origin.clone(), [organisation, project, name]),
            _ => return Err(Error::invalid(format!("invalid repository id '{}'", address.id))),
        };
        Ok(Self {
            root: api::url(&origin, &[organisation])?,
            project: project.to_owned(),
            name: name.to_owned(),
        })
    }

    async fn api<'a>(&self, http: Http<'a>) -> Result<Api<'a>, Error> {
        let api = Api::new(http, self.root.clone());
        match http.target.token.trim() {
            "" => {
                // The controller's token opens what the controller may see. It must not go where a tenant wants it to.
                let host = self.root.host_str().unwrap_or_default();
                let is_microsoft = host == "dev.azure.com" || host.ends_with(".visualstudio.com");
                if self.root.scheme() != "https" || !is_microsoft {
                    return Err(Error::invalid(
                        "failed to acquire azure devops token: an identity of Azure is shown only to https://dev.azure.com and *.visualstudio.com",
                    ));
                }
                let token = identity::azure(http, azure::DEV_OPS).await;
                api.bearer(&token.map_err(|error| error.within("failed to acquire azure devops token"))?)
            }
            token => api.basic("", token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_organisation_project_and_name() {
        for (address, expected) in [
            (
                "https://dev.azure.com/foo/bar/_git/baz",
                "https://dev.azure.com/foo bar baz",
            ),
            (
                "https://me@dev.azure.com/foo/my%20bar/_git/baz",
                "https://dev.azure.com/foo my bar baz",
            ),
            (
                "git@ssh.dev.azure.com:v3/foo/bar/baz",
                "https://dev.azure.com/foo bar baz",
            ),
            (
                "https://tfs.local:8080/foo/bar/_git/baz",
                "https://tfs.local:8080/foo bar baz",
            ),
        ] {
            let repository = Repository::parse(address).unwrap();
            let text = format!("{} {} {}", repository.root, repository.project, repository.name);
            assert_eq!(text, expected);
        }
        assert!(Repository::parse("https://dev.azure.com/foo/bar/baz").is_err());
    }
}
