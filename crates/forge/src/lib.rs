//! Git services ("forges") over their REST APIs: repositories and deploy keys, pull requests, checks, statuses of commits.
//!
//! In: the address of a repository, a login, and an [`exchange::Exchange`] that sends requests. Nothing here opens a
//! connection, reads a Secret or knows Kubernetes. [`Forge`] is one face for all; what is special stays in the file of
//! each forge. A pull request from a fork is never taken for one of the repository's own branch.

pub mod address;
pub mod annotation;
pub mod api;
pub mod azure_devops;
pub mod bitbucket;
pub mod bitbucket_server;
pub mod check;
pub mod comment;
pub mod deployment;
pub mod error;
pub mod exchange;
mod forge;
pub mod gitea;
pub mod github;
pub mod gitlab;
pub mod hosting;
pub mod incoming;
pub mod log;
pub mod markdown;
pub mod pull_request;
pub mod reference;
pub mod retry_after;
pub mod web;

pub use error::{Error, Retry};
pub use forge::{Forge, Kind, Login};
