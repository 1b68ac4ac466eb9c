//! GitLab: how to get in.

pub(super) mod comment;
pub(super) mod status;

use forge::address::Repository;
use forge::gitlab::GitLab;

use crate::edge::Http;
use crate::error::Error;
use crate::target::Target;

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    token(target)?;
    Repository::parse(&target.address)?;
    Ok(())
}

fn sign_in(http: Http<'_>) -> Result<GitLab<'_>, Error> {
    Ok(GitLab::new(http, &http.target.address, token(http.target)?)?)
}

fn token(target: &Target) -> Result<&str, Error> {
    super::token::token(target).ok_or_else(|| Error::invalid("gitlab token cannot be empty"))
}
