//! Token of a provider: a secret and its expiry.

use std::fmt;

use jiff::Timestamp;

/// A secret that opens something. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// Keys that requests to Amazon are signed with.
    Keys(Keys),
    /// A bearer token.
    Bearer(String),
    /// Name and password for basic authentication.
    Login {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Keys(_) => "Keys(…)",
            Self::Bearer(_) => "Bearer(…)",
            Self::Login { .. } => "Login(…)",
        })
    }
}

/// A secret and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The secret.
    pub secret: Secret,
    /// Until when it is good; None when no one said so.
    pub expires: Option<Timestamp>,
}

impl Token {
    /// A bearer token that is good for so many seconds from now.
    pub(crate) fn bearer(token: String, seconds: i64, now: Timestamp) -> Self {
        // A year is more than any provider gives; it also keeps the sum in range.
        let seconds = seconds.clamp(0, 366 * 24 * 3600);
        Self {
            secret: Secret::Bearer(token),
            expires: now.checked_add(jiff::SignedDuration::from_secs(seconds)).ok(),
        }
    }

    /// The bearer token, if it is one.
    #[must_use]
    pub fn as_bearer(&self) -> Option<&str> {
        match &self.secret {
            Secret::Bearer(token) => Some(token),
            Secret::Keys(_) | Secret::Login { .. } => None,
        }
    }

    /// The keys, if they are such.
    #[must_use]
    pub fn as_keys(&self) -> Option<&Keys> {
        match &self.secret {
            Secret::Keys(keys) => Some(keys),
            Secret::Bearer(_) | Secret::Login { .. } => None,
        }
    }

    /// Name and password, if it is a login.
    #[must_use]
    pub fn as_login(&self) -> Option<(&str, &str)> {
        match &self.secret {
            Secret::Login { username, password } => Some((username, password)),
            Secret::Keys(_) | Secret::Bearer(_) => None,
        }
    }
}

/// Keys that requests are signed with. Their `Debug` output does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Names the key; not secret.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// Goes along with temporary keys.
    pub session_token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys(…)")
    }
}
