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
//! | `pushed` | which tags of images were pushed |
//! | [`filter`] | CEL over a call and the objects that it would wake |
//! | [`Evaluator`] | where CEL is evaluated |
//!
//! No HTTP client is here: discovery documents and keys are fetched through a [`KeySource`].

mod body;
mod call;
mod cdevents;
mod content_type;
mod evaluator;
pub mod filter;
mod gcr;
mod json;
mod keys;
mod oidc;
mod oidc_rules;
mod pushed;
mod receiver_type;
mod service;
mod signature;
mod token;

pub use crate::call::OidcProvider;
pub use evaluator::Evaluator;
pub use keys::{KeySource, Keys};
pub use receiver_type::{ReceiverType, UnknownType};

pub use crate::call::{Accepted, Call, Refused, Rules};

/// The tags of images that an allowed call reports as pushed: a hint, which is to be asked of the registry.
pub fn pushed_tags(call: &Call<'_>, accepted: &Accepted) -> Vec<String> {
    pushed::tags(accepted.payload.as_deref().unwrap_or(call.body))
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
