//! `bitbucketserver`: the status of a commit at Bitbucket Server and Data Center.

use http::HeaderName;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::api::{self, Api};
use super::status::{Standing, State, Status};
use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::said::cut;
use crate::target::Target;

/// Longer names are refused.
const MAX_NAME: usize = 255;
/// Path between the service and a repository in the URL of a clone.
const CLONE: &str = "/scm/";

#[derive(Deserialize)]
struct Found {
    key: Option<String>,
    name: Option<String>,
    state: Option<String>,
    description: Option<String>,
}

/// A repository at a service.
#[derive(Debug, PartialEq)]
struct Repository {
    /// Where the service is, with its context path.
    root: Url,
    project: String,
    name: String,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Repository::parse(&target.address)?;
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
    let Some(status) = Status::of(notification)? else {
        return Ok(Sent::default());
    };
    check(http.target)?;
    let repository = Repository::parse(&http.target.address)?;
    let (project, name) = (repository.project.as_str(), repository.name.as_str());
    let api = repository
        .api(http)?
        .about(status.missing(&format!("{project}/{name}")));
    let state = match status.state {
        State::Pending => "INPROGRESS",
        State::Success => "SUCCESSFUL",
        State::Failure => "FAILED",
    };
    // The page of a commit shows the name only.
    let title = format!("{} [{}]", status.object, status.description);
    let title = cut(&title, MAX_NAME);
    let key = status.key();
    let commits = [
        "projects",
        project,
        "repos",
        name,
        "commits",
        &status.commit,
        "builds",
    ];
    let found: Option<Found> = api
        .find(&commits, &[("key", &key)])
        .await
        .map_err(|error| error.within("could not get existing commit status"))?;
    let is_mine = |found: &Found| found.key.as_deref() == Some(&key) && found.name.as_deref() == Some(&title);
    let pending_is_no_news = status.state == State::Pending && found.is_some();
    let standing = found.filter(is_mine).map(|found| Standing {
        state: found.state.unwrap_or_default(),
        description: found.description.unwrap_or_default(),
    });
    if !pending_is_no_news && status.is_news(state, standing.as_ref()) {
        let body = json!({
            "key": key,
            "state": state,
            "name": title,
            "description": status.description,
            "url": link(&http.target.address),
        });
        let posted = api.post(&commits, &[], &body).await;
        posted.map_err(|error| error.within("could not post build status"))?;
    }
    Ok(Sent::default())
}

impl Repository {
    /// Reads `https://host/context/scm/project/name.git`.
    fn parse(address: &str) -> Result<Self, Error> {
        let refuse = |problem: &str| Error::invalid(format!("could not parse git address: {problem}"));
        let mut root = Url::parse(address.trim()).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(root.scheme(), "http" | "https") {
            return Err(refuse(
                "unsupported scheme type in address. Must be http or https",
            ));
        }
        let path = percent_decode_str(root.path()).decode_utf8();
        let path = path.map_err(|_| refuse("its path is not UTF-8"))?.into_owned();
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let (context, id) = path
            .rsplit_once(CLONE)
            .ok_or_else(|| refuse("supplied provider address is not http(s) git clone url"))?;
        let (project, name) = id
            .split_once('/')
            .filter(|(project, name)| !project.is_empty() && !name.is_empty() && !name.contains('/'))
            .ok_or_else(|| refuse("invalid repository id"))?;
        root.set_path(context);
        root.set_query(None);
        root.set_fragment(None);
        // Neither fails for http: both only take away.
        let _ = (root.set_username(""), root.set_password(None));
        Ok(Self {
            root,
            project: project.to_owned(),
            name: name.to_owned(),
        })
    }

    fn api<'a>(&self, http: Http<'a>) -> Result<Api<'a>, Error> {
        let target = http.target;
        let api = Api::new(http, api::url(&self.root, &["rest", "api", "latest"])?)
            .header(HeaderName::from_static("x-atlassian-token"), "no-check")
            .header(HeaderName::from_static("x-requested-with"), "XMLHttpRequest");
        match target.token.as_str() {
            "" => api.basic(&target.username, &target.password),
            token => api.bearer(token.trim()),
        }
    }
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

    fn parsed(address: &str) -> String {
        match Repository::parse(address) {
            Ok(repository) => format!("{} {} {}", repository.root, repository.project, repository.name),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_address_of_a_clone_has_place_project_and_name() {
        for (address, expected) in [
            (
                "https://example.com:7990/scm/projectfoo/repobar.git",
                "https://example.com:7990/ projectfoo repobar",
            ),
            (
                "https://u:p@example.com/context/scm/x/scm/foo/bar.git",
                "https://example.com/context/scm/x foo bar",
            ),
            ("http://example.com/scm/~me/bar", "http://example.com/ ~me bar"),
        ] {
            assert_eq!(parsed(address), expected);
        }
        for address in [
            "ssh://git@example.com/scm/foo/bar.git",
            "https://example.com/foo/bar.git",
            "https://example.com/scm/foo",
            "https://example.com/scm/foo/bar/baz.git",
            "",
        ] {
            assert!(
                parsed(address).starts_with("could not parse git address: "),
                "{address}"
            );
        }
        assert_eq!(
            link("https://u:p@example.com/scm/a/b.git"),
            "https://example.com/scm/a/b.git"
        );
    }
}
