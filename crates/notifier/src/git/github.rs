//! GitHub: how to get in with a token or as a GitHub App.

pub(super) mod comment;
pub(super) mod dispatch;
pub(super) mod status;

use cloud_identity::github::{APP_ID, App};
use forge::address::Repository;
use forge::github::GitHub;

use crate::edge::Http;
use crate::error::Error;
use crate::identity;
use crate::target::Target;

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    app(target)?;
    let repository = Repository::parse(&target.address)?;
    repository.owner_and_name()?;
    forge::github::root(&repository)?;
    Ok(())
}

/// Signs in; the App is None if the token is a person's.
async fn sign_in(http: Http<'_>) -> Result<(GitHub<'_>, Option<App>), Error> {
    Repository::parse(&http.target.address)?.owner_and_name()?;
    let app = app(http.target)?;
    let token = match (super::token::token(http.target), &app) {
        (Some(token), _) => token.to_owned(),
        (None, Some(app)) => identity::github_app(http, app).await?,
        (None, None) => return Err(no_login()),
    };
    Ok((GitHub::new(http, &http.target.address, &token)?, app))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_type::ProviderType;

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
