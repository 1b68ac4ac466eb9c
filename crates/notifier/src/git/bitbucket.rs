//! `bitbucket`: the status of a commit at Bitbucket Cloud.

use forge::address::Repository;
use forge::bitbucket::{Bitbucket, ROOT};
use url::Url;

use super::status::Status;
use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::target::Target;

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    login(target)?;
    Repository::parse(&target.address)?.owner_and_name()?;
    Ok(())
}

/// Sets the status unless it stands already.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let root = Url::parse(ROOT).expect("it is a constant");
    send_to(root, http, notification).await
}

/// As [`send`], to a service elsewhere.
pub(super) async fn send_to(root: Url, http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::from_notification(notification)? else {
        return Ok(Sent::default());
    };
    let (username, password) = login(http.target)?;
    let mut bitbucket = Bitbucket::new(http, root, &http.target.address, username, password)?;
    bitbucket.api = bitbucket.api.about(status.missing(&bitbucket.repository.id));
    let key = status.key();
    let standing = bitbucket.status(&status.commit, &key).await;
    let standing = standing.map_err(|error| error.within("could not get commit status"))?;
    if status.is_news(standing.as_ref()) {
        let said = forge::check::Status {
            name: &status.object,
            ..status.as_forge()
        };
        let posted = bitbucket.set_status(said, &key).await;
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
