//! Says an event to a chat, an incident service, a Git service or a bus: the 34 provider types of Flux.
//!
//! In: a [`Target`] (a Provider and its Secrets, read) and a [`Notification`] (an event, routed and worded). Out: one
//! attempt to say it, and if it failed, an [`Error`] that tells whether another attempt makes sense. Rendering is pure
//! and has a file for each provider; only [`Edge`] touches the network. When to try again, what to group and what to
//! leave out are not decided here, and nothing is read from a cluster.
//!
//! Whatever a service answers is hostile: answers are bounded, and what is quoted of them is free of secrets.

mod bus;
mod chat;
mod edge;
mod error;
mod forward;
mod git;
mod identity;
mod incident;
mod markdown;
mod mask;
mod notification;
mod provider;
mod provider_type;
mod request;
mod retry_after;
mod said;
mod target;
mod words;

pub use edge::{Edge, Identities};
pub use error::{Error, Retry};
pub use notification::{AlertRef, Notification, Sent, State, Thread};
pub use provider::{check, send};
pub use provider_type::{ProviderType, UnknownType};
pub use target::{ProviderRef, Target, Tls};

#[cfg(test)]
mod tests;
