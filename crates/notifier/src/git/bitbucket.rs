//! `bitbucket`: the status of a commit at Bitbucket Cloud.

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::address::Repository;
use super::api::Api;
use super::status::{Standing, State, Status};
use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::target::Target;

/// There is one Bitbucket Cloud, whatever the host of the address.
const ROOT: &str = "https://api.bitbucket.org/2.0/";
/// Where the status leads to: Bitbucket wants it to lead somewhere.
const LINK: &str = "https://bitbucket.org";

#[derive(Deserialize)]
struct Found {
    state: Option<String>,
    description: Option<String>,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    login(target)?;
    Repository::parse(&target.address)?.owner_and_name().map(drop)
}

/// Sets the status unless it stands already.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let root = Url::parse(ROOT).expect("it is a constant");
    send_to(root, http, notification).await
}

/// As [`send`], to a service elsewhere.
pub(super) async fn send_to(root: Url, http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    let (username, password) = login(http.target)?;
    let repository = Repository::parse(&http.target.address)?;
    let (owner, name) = repository.owner_and_name()?;
    let api = Api::new(http, root)
        .basic(username, password)?
        .about(status.missing(&repository.id));
    let state = match status.state {
        State::Pending => "INPROGRESS",
        State::Success => "SUCCESSFUL",
        State::Failure => "FAILED",
    };
    let key = status.key();
    let build = [
        "repositories",
        owner,
        name,
        "commit",
        &status.commit,
        "statuses",
        "build",
    ];
    let found: Option<Found> = api
        .find(&[&build[..], &[key.as_str()]].concat(), &[])
        .await
        .map_err(|error| error.within("could not get commit status"))?;
    let standing = found.map(|found| Standing {
        state: found.state.unwrap_or_default(),
        description: found.description.unwrap_or_default(),
    });
    if status.is_news(state, standing.as_ref()) {
        let body = json!({
            "key": key,
            "state": state,
            "name": status.object,
            "url": LINK,
            "description": status.description,
        });
        let posted = api.post(&build, &[], &body).await;
        posted.map_err(|error| error.within("could not create commit status"))?;
    }
    Ok(Sent::default())
}

/// The token is a name and an app password.
fn login(target: &Target) -> Result<(&str, &str), Error> {
    let token = target.token.trim();
    if token.is_empty() {
        return Err(Error::invalid("bitbucket token cannot be empty"));
    }
    match token.split_once(':') {
        Some((username, password)) if !password.contains(':') => Ok((username, password)),
        _ => Err(Error::invalid(
            "invalid token format, expected to be <user>:<password>",
        )),
    }
}
