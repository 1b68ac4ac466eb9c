//! A token as Google grants it.

use serde::Deserialize;

use crate::provider::Session;
use crate::token::Token;

/// Scopes of the tokens of the controller and of ServiceAccounts, as in Flux.
pub(super) const SCOPES: [&str; 2] = [
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/userinfo.email",
];

/// An OAuth answer.
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: String,
    expires_in: i64,
}

impl Granted {
    pub(super) fn token(self, session: Session<'_>) -> Token {
        Token::bearer(self.access_token, self.expires_in, session.environment.now())
    }
}
