//! Gitea and Forgejo: how to get in.

pub(super) mod comment;
pub(super) mod status;

use forge::address::Repository;
use forge::gitea::Gitea;

use crate::edge::Http;
use crate::error::Error;
use crate::target::Target;

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    token(target)?;
    Repository::parse(&target.address)?.owner_and_name()?;
    Ok(())
}

fn sign_in(http: Http<'_>) -> Result<Gitea<'_>, Error> {
    Ok(Gitea::new(http, &http.target.address, token(http.target)?)?)
}

fn token(target: &Target) -> Result<&str, Error> {
    super::token::token(target).ok_or_else(|| Error::invalid("gitea token cannot be empty"))
}
