//! Verifies and reads the webhooks of Git services and registries.
//!
//! In: a call as it came ([`Call`]: headers and body) and what its Receiver allows ([`Rules`]). Out: what is known of it
//! ([`Accepted`]), or why it is refused ([`Refused`]), which is for the log and never for the caller. Whoever can reach
//! the port can send anything: nothing here panics, loops or grows with what a stranger sends beyond the size of the body,
//! and secrets are compared in constant time.
//!
//! | module | what it is |
//! |---|---|
//! | `service` | which headers and bodies each kind of caller sends |
//! | `signature` | HMACs and tokens |
//! | `cdevents` | whether a body is a CDEvent |
//! | `token`, [`Keys`], `oidc`, `gcr` | ID tokens, the keys of their issuers, and who may call with one |
//! | [`filter`] | CEL over a call and the objects that it would wake |
//! | [`Evaluator`] | where CEL is evaluated |
//!
//! No HTTP client is here: discovery documents and keys are fetched through a [`KeySource`].

mod cdevents;
mod content_type;
mod evaluator;
pub mod filter;
mod gcr;
mod json;
mod keys;
mod oidc;
mod receiver_type;
mod service;
mod signature;
mod token;

use std::collections::BTreeMap;

use http::HeaderMap;
use jiff::Timestamp;

pub use evaluator::Evaluator;
pub use keys::{KeySource, Keys};
pub use oidc::OidcProvider;
pub use receiver_type::{ReceiverType, UnknownType};

/// A call as it came.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
}

impl Call<'_> {
    /// The first value of a header; empty if there is none.
    fn header(&self, name: &str) -> &[u8] {
        self.headers.get(name).map_or(&[], |value| value.as_bytes())
    }

    /// As [`header`](Self::header), as text.
    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.header(name)).into_owned()
    }
}

/// Rules of a Receiver.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Service that calls.
    pub type_: ReceiverType,
    /// The events that count; all if there are none.
    pub events: &'a [String],
    /// The Receiver's Secret: `token`, and for some types more.
    pub secret: Option<&'a BTreeMap<String, Vec<u8>>>,
    /// Trusted issuers of tokens, for generic-oidc.
    pub oidc: &'a [OidcProvider],
    /// The time.
    pub now: Timestamp,
}

impl Rules<'_> {
    /// Returns the value of a key of the Secret; None if there is none.
    fn secret(&self, key: &str) -> Option<&[u8]> {
        let value = self.secret?.get(key)?;
        (!value.is_empty()).then_some(value.as_slice())
    }
}

/// A call that its Receiver allows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accepted {
    /// The event, in the words of the caller: as much of it as a log should hold, since nobody signed it.
    pub event: Option<String>,
    /// Claims of a verified token, for generic-oidc.
    pub claims: Option<serde_json::Value>,
    /// Payload that filters see instead of the body: the content of an envelope or a form.
    pub payload: Option<Vec<u8>>,
    /// Identity of a call: two calls share it only if one repeats the other. None where callers may repeat a
    /// call on purpose.
    pub identity: Option<Vec<u8>>,
}

/// Why a call is refused: for the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Refused {
    fn new(reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        // Parts of it may be what the caller sent.
        reason.truncate(reason.floor_char_boundary(500));
        Self(reason)
    }
}

/// Decides whether a Receiver allows a call.
pub async fn verify<S: KeySource>(
    call: &Call<'_>,
    rules: &Rules<'_>,
    keys: &Keys<S>,
    evaluator: &Evaluator,
) -> Result<Accepted, Refused> {
    match rules.type_ {
        ReceiverType::GenericOidc => oidc::verify(call, rules, keys, evaluator).await,
        ReceiverType::Gcr => gcr::verify(call, rules, keys).await,
        type_ => {
            if rules.secret.is_none_or(|secret| !secret.contains_key("token")) {
                return Err(Refused::new("invalid secret data: required field 'token'"));
            }
            service::verify(type_, call, rules)
        }
    }
}
