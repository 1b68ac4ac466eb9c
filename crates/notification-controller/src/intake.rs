//! Events in: posted, as Kubernetes Events, and read off the status of objects.
//!
//! The same thing by two ways is one: the key of Flux's rate limit is its identity ([`limit`]).

pub mod clean;
pub mod http;
pub mod kubernetes;
pub mod limit;
pub mod status;
pub mod transition;
