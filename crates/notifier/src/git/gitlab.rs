//! GitLab: where its API is, and how to get in.

pub(super) mod comment;
pub(super) mod status;

use http::HeaderName;

use super::address::Repository;
use super::api::{self, Api};
use crate::edge::Http;
use crate::error::Error;
use crate::target::Target;

/// A project, by its path or its number.
struct GitLab<'a> {
    api: Api<'a>,
    project: String,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    token(target)?;
    Repository::parse(&target.address).map(drop)
}

impl<'a> GitLab<'a> {
    fn of(http: Http<'a>) -> Result<Self, Error> {
        let repository = Repository::parse(&http.target.address)?;
        let root = api::url(&repository.origin, &["api", "v4"])?;
        let header = HeaderName::from_static("private-token");
        Ok(Self {
            api: Api::new(http, root).secret(header, "", token(http.target)?)?,
            project: repository.id,
        })
    }
}

fn token(target: &Target) -> Result<&str, Error> {
    super::token::token(target).ok_or_else(|| Error::invalid("gitlab token cannot be empty"))
}
