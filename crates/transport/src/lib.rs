//! Shared parts of all clients of remotes, whichever protocol they speak.
//!
//! [`http`] sends requests with bounds, through proxies, and keeps credentials with their origin; [`cause`] says why a connection
//! failed; [`auth`] reads credentials from Secrets; [`received`] counts what arrives; [`stop`] cancels work on other threads; [`nearest`] finds the names that a person may have
//! meant. Nothing here knows Kubernetes, Git, registries or object stores.

pub mod auth;
pub mod cause;
pub mod http;
pub mod nearest;
pub mod received;
pub mod stop;
