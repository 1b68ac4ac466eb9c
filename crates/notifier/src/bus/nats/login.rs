//! How to get in at a NATS server. Of what a Secret has, as in Flux the first counts: `creds` (a user's JWT and the key
//! for it), `nkey`, name and password.

use std::fmt;

use serde_json::{Value, json};

use super::key::Key;
use crate::error::Error;
use crate::target::Target;

/// A file of credentials is some hundred bytes; JWTs with many permissions are larger.
const MAX_CREDENTIALS: usize = 64 << 10;

/// How to get in.
#[derive(Debug)]
pub(super) enum Login {
    /// A user's JWT, and the key that signs what the server asks.
    Credentials(String, Key),
    /// The key alone.
    Key(Key),
    /// A name and a password.
    Password(Password),
    /// Whoever connects gets in.
    Nobody,
}

/// Something to say.
#[derive(Clone, PartialEq)]
pub(super) enum Password {
    /// A name and a password.
    User(String, String),
    /// A token.
    Token(String),
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::User(..) => "User(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}

impl Login {
    /// The way of a target. Errors quote nothing.
    pub(super) fn from_target(target: &Target) -> Result<Self, Error> {
        let data = |key: &str| target.secret.get(key).filter(|data| !data.is_empty());
        if let Some(credentials) = data("creds") {
            return of_file(credentials);
        }
        if let Some(seed) = data("nkey") {
            return Ok(Self::Key(Key::of_seed(&String::from_utf8_lossy(seed))?));
        }
        if target.username.is_empty() || target.password.is_empty() {
            return Ok(Self::Nobody);
        }
        Ok(Self::Password(Password::User(
            target.username.clone(),
            target.password.clone(),
        )))
    }

    /// Returns the fields of CONNECT. `password` is that of the server's address, and `nonce` the text that
    /// the server asks to sign.
    pub(super) fn fields(&self, password: Option<&Password>, nonce: Option<&str>) -> Result<Value, Error> {
        let signed = |key: &Key| match nonce {
            Some(nonce) => Ok(key.sign(nonce.as_bytes())),
            None => Err(Error::invalid(
                "the server asks for no signature: it is not set up for nkeys",
            )),
        };
        Ok(match (self, password) {
            (Self::Credentials(jwt, key), password) => {
                let mut fields = password.map_or_else(|| json!({}), Password::fields);
                fields["jwt"] = jwt.as_str().into();
                fields["sig"] = signed(key)?.into();
                fields
            }
            (_, Some(password)) => password.fields(),
            (Self::Key(key), None) => json!({"nkey": key.public(), "sig": signed(key)?}),
            (Self::Password(password), None) => password.fields(),
            (Self::Nobody, None) => json!({}),
        })
    }
}

impl Password {
    fn fields(&self) -> Value {
        match self {
            Self::User(user, password) => json!({"user": user, "pass": password}),
            Self::Token(token) => json!({"auth_token": token}),
        }
    }
}

/// Two texts between lines of dashes: the JWT and the seed.
fn of_file(file: &[u8]) -> Result<Login, Error> {
    let unusable = || Error::invalid("failed to read creds: it must hold a user's JWT and an nkey seed");
    let text = std::str::from_utf8(file)
        .ok()
        .filter(|text| text.len() <= MAX_CREDENTIALS);
    let lines = text.ok_or_else(unusable)?.lines().map(str::trim);
    let is_rule = |line: &str| line.len() >= 6 && line.starts_with("---") && line.ends_with("---");
    let mut lines = lines.filter(|line| !line.is_empty()).peekable();
    let mut texts = Vec::new();
    while let Some(line) = lines.next() {
        if is_rule(line)
            && line.contains("BEGIN")
            && let Some(text) = lines.next_if(|line| !is_rule(line))
        {
            texts.push(text);
        }
    }
    match texts[..] {
        [jwt, seed, ..] => Ok(Login::Credentials(jwt.to_owned(), Key::of_seed(seed)?)),
        _ => Err(unusable()),
    }
}
