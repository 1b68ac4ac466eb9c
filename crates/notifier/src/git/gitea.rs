//! Gitea and Forgejo: where the API is, and how to get in.

pub(super) mod comment;
pub(super) mod status;

use http::header::AUTHORIZATION;

use super::address::Repository;
use super::api::{self, Api};
use crate::edge::Http;
use crate::error::Error;
use crate::target::Target;

/// A repository at Gitea.
struct Gitea<'a> {
    api: Api<'a>,
    repository: Repository,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    token(target)?;
    Repository::parse(&target.address)?.owner_and_name().map(drop)
}

impl<'a> Gitea<'a> {
    fn of(http: Http<'a>) -> Result<Self, Error> {
        let repository = Repository::parse(&http.target.address)?;
        repository.owner_and_name()?;
        let root = api::url(&repository.origin, &["api", "v1"])?;
        let api = Api::new(http, root).secret(AUTHORIZATION, "token ", token(http.target)?)?;
        Ok(Self { api, repository })
    }

    /// The path to something of the repository.
    fn path<'b>(&'b self, rest: &[&'b str]) -> Result<Vec<&'b str>, Error> {
        let (owner, name) = self.repository.owner_and_name()?;
        Ok([&["repos", owner, name], rest].concat())
    }
}

fn token(target: &Target) -> Result<&str, Error> {
    super::token::token(target).ok_or_else(|| Error::invalid("gitea token cannot be empty"))
}
