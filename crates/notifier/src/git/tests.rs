//! Git services on this machine, which check what theirs check.

mod comments;
pub(crate) mod flux;
mod identities;
pub(crate) mod service;
mod statuses;
mod words;
pub(crate) mod world;
