//! `bitbucketserver`: the status of a commit at Bitbucket Server and Data Center.

use forge::bitbucket_server::{Address, BitbucketServer};
use forge::check::State;
use url::Url;

use super::status::Status;
use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::said::cut;
use crate::target::Target;

/// Longer names are refused.
const MAX_NAME: usize = 255;
/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Address::parse(&target.address)?;
    let has_login = !target.username.is_empty() && !target.password.is_empty();
    if target.token.is_empty() && !has_login {
        return Err(Error::invalid(
            "invalid credentials, expected to be one of username/password or API Token",
        ));
    }
    Ok(())
}

/// Sets the status unless it stands already.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let Some(status) = Status::from_notification(notification)? else {
        return Ok(Sent::default());
    };
    check(http.target)?;
    let (username, password) = match http.target.token.trim() {
        "" => (http.target.username.as_str(), http.target.password.as_str()),
        token => ("", token),
    };
    let mut server = BitbucketServer::new(http, &http.target.address, username, password)?;
    let Address { project, name, .. } = &server.address;
    let missing = status.missing(&format!("{project}/{name}"));
    server.api = server.api.about(missing);
    // The page of a commit shows the name only.
    let title = format!("{} [{}]", status.object, status.description);
    let title = cut(&title, MAX_NAME);
    let key = status.key();
    let found = server.status(&status.commit, &key).await;
    let found = found.map_err(|error| error.within("could not get existing commit status"))?;
    let pending_is_no_news = status.state == State::Pending && found.is_some();
    let standing = found.filter(|found| found.name == title);
    if !pending_is_no_news && status.is_news(standing.as_ref()) {
        let said = forge::check::Status {
            name: &title,
            url: &link(&http.target.address),
            ..status.as_forge()
        };
        let posted = server.set_status(said, &key).await;
        posted.map_err(|error| error.within("could not post build status"))?;
    }
    Ok(Sent::default())
}

/// Where the status leads to: the address as it is in the Provider, without what gets in.
fn link(address: &str) -> String {
    match Url::parse(address.trim()) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            let _ = (url.set_username(""), url.set_password(None));
            url.to_string()
        }
        _ => address.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_address_without_its_password() {
        assert_eq!(
            link("https://u:p@example.com/scm/a/b.git"),
            "https://example.com/scm/a/b.git"
        );
    }
}
