//! GitHub, in the cloud and on premises: where its API is, and how to get in with a token or as a GitHub App.

pub(super) mod comment;
pub(super) mod dispatch;
pub(super) mod status;

use cloud_identity::github::{APP_ID, App};
use http::HeaderName;
use http::header::ACCEPT;
use url::Url;

use super::address::Repository;
use super::api::{self, Api};
use crate::edge::Http;
use crate::error::Error;
use crate::identity;
use crate::target::Target;

/// A repository at GitHub.
struct GitHub<'a> {
    api: Api<'a>,
    repository: Repository,
    /// None: the token is a person's.
    app: Option<App>,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    app(target)?;
    let repository = Repository::parse(&target.address)?;
    repository.owner_and_name()?;
    root(&repository).map(drop)
}

impl<'a> GitHub<'a> {
    async fn of(http: Http<'a>) -> Result<Self, Error> {
        let repository = Repository::parse(&http.target.address)?;
        repository.owner_and_name()?;
        let app = app(http.target)?;
        let token = match (super::token::token(http.target), &app) {
            (Some(token), _) => token.to_owned(),
            (None, Some(app)) => identity::github_app(http, app).await?,
            (None, None) => return Err(no_login()),
        };
        let api = Api::new(http, root(&repository)?)
            .header(ACCEPT, "application/vnd.github+json")
            .header(HeaderName::from_static("x-github-api-version"), "2022-11-28")
            .bearer(&token)?;
        Ok(Self { api, repository, app })
    }

    /// The path to something of the repository.
    fn path<'b>(&'b self, rest: &[&'b str]) -> Result<Vec<&'b str>, Error> {
        let (owner, name) = self.repository.owner_and_name()?;
        Ok([&["repos", owner, name], rest].concat())
    }
}

/// The App of the Secret, unless there is a token.
fn app(target: &Target) -> Result<Option<App>, Error> {
    if super::token::token(target).is_some() {
        return Ok(None);
    }
    if !target.secret.contains_key(APP_ID) {
        return Err(no_login());
    }
    App::from_secret(&target.secret)
        .map(Some)
        .map_err(|error| Error::invalid(error.to_string()))
}

fn no_login() -> Error {
    Error::invalid("github token or github app details must be specified")
}

/// GitHub Enterprise Server has its API below a path, unless the host is one for the API.
fn root(repository: &Repository) -> Result<Url, Error> {
    let host = repository.host();
    if host == "github.com" {
        return Ok(Url::parse("https://api.github.com/").expect("it is a constant"));
    }
    if host.starts_with("api.") || host.contains(".api.") {
        return Ok(repository.origin.clone());
    }
    api::url(&repository.origin, &["api", "v3"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_type::ProviderType;

    #[test]
    fn the_api_is_where_the_host_has_it() {
        for (address, expected) in [
            ("https://github.com/a/b", "https://api.github.com/"),
            ("git@github.com:a/b.git", "https://api.github.com/"),
            (
                "https://github.example.com/a/b",
                "https://github.example.com/api/v3",
            ),
            (
                "https://github.example.com:8443/a/b",
                "https://github.example.com:8443/api/v3",
            ),
            ("https://api.octo.ghe.com/a/b", "https://api.octo.ghe.com/"),
        ] {
            let repository = Repository::parse(address).unwrap();
            assert_eq!(root(&repository).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn without_a_token_it_takes_a_whole_app() {
        let mut target = Target::new(ProviderType::GitHub, "https://github.com/a/b");
        let problem = |target: &Target| check(target).unwrap_err().to_string();
        assert_eq!(
            problem(&target),
            "github token or github app details must be specified"
        );
        target.secret.insert(APP_ID.to_owned(), b"1".to_vec());
        assert_eq!(
            problem(&target),
            "app installation owner or ID must be provided to use github app authentication"
        );
        target.password = "hunter2".to_owned();
        check(&target).unwrap();
        target.address = "https://github.com/a".to_owned();
        assert_eq!(problem(&target), "invalid repository id 'a'");
    }
}
