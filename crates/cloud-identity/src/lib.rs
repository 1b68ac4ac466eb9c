//!
//! In: who asks ([`Identity`]: the controller itself, or a ServiceAccount of a tenant) and what for (a [`Provider`]). Out:
//! a [`Token`], from the [`Cache`] as long as it is fresh. Knows neither Kubernetes nor an HTTP client: requests go
//! through [`Http`], tokens of ServiceAccounts come from an [`Issuer`], and what the surroundings say is in an
//! [`Environment`]. No error, and no `Debug` output, holds a secret.
//!
//! | module | who | controller | ServiceAccount |
//! |---|---|---|---|
//! | [`aws`] | Amazon | environment, web identity (IRSA), ECS and EKS Pod Identity, IMDSv2 | web identity |
//! | [`gcp`] | Google | credential file, metadata server | workload identity federation |
//! | [`azure`] | Microsoft | client secret, workload identity, managed identity | federated credential |
//! | [`github`] | GitHub Apps | – | – (the key of the App) |
//!
//! [`registry`], [`git`] and [`cluster`] turn such tokens into what registries, Git servers and Kubernetes clusters of
//! these providers want.

pub mod aws;
pub mod azure;
mod cache;
pub mod cluster;
mod environment;
mod exchange;
pub mod gcp;
pub mod git;
pub mod github;
mod identity;
mod jwt;
mod provider;
pub mod registry;
mod token;
mod xml;

pub use cache::{Cache, Counts};
pub use environment::Environment;
pub use exchange::{Answer, Error, Future, Http, Reach, Request, SendError};
pub use identity::{Identity, Issuer, ServiceAccount};
pub use provider::{Access, Provider, Session, access_token};
pub use token::{Secret, Token};

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests only")]
mod fake;
