//! Token of a Git service.

use crate::target::Target;

/// The token, or else the password: as in Flux a Secret may have either.
pub(super) fn token(target: &Target) -> Option<&str> {
    [&target.token, &target.password]
        .into_iter()
        .map(|token| token.trim())
        .find(|token| !token.is_empty())
}
