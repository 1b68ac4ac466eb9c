//! Clusters of cloud providers: where they are, and tokens that their API servers take.

mod aks;
mod eks;
mod endpoint;
mod gke;

use crate::exchange::Error;
use crate::identity::Identity;
use crate::provider::Session;
use crate::token::Token;

pub use endpoint::{Endpoint, ReadKubeconfig};

/// Provider of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon EKS.
    Aws,
    /// Azure AKS.
    Azure,
    /// Google GKE.
    Gcp,
}

/// Known facts about a cluster. Texts may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its provider.
    pub cloud: Cloud,
    /// Its name at the provider.
    pub resource: String,
    /// Its API server. What is missing the provider is asked for.
    pub address: String,
    /// PEM of the certificate authority of its API server.
    pub authority: String,
}

impl Cluster {
    /// Where the API server is: as given, and the rest as the provider says.
    pub async fn endpoint(
        &self,
        identity: &Identity,
        session: Session<'_>,
        read_kubeconfig: ReadKubeconfig,
    ) -> Result<Endpoint, Error> {
        // The controller's own token is shown to the cluster that the provider knows by that name, and to no one whom whoever
        // wrote the address and authority chose. A ServiceAccount is the writer's own.
        let is_controller = matches!(identity, Identity::Controller);
        if !is_controller && !self.address.is_empty() && !self.authority.is_empty() {
            return Ok(self.completed(Endpoint {
                address: String::new(),
                authority: Vec::new(),
            }));
        }
        let described = match self.cloud {
            Cloud::Aws => eks::describe(&self.resource, identity, session).await?,
            Cloud::Azure => {
                let of = (self.resource.as_str(), self.address.as_str());
                aks::describe(of, identity, session, read_kubeconfig).await?
            }
            Cloud::Gcp => gke::describe(&self.resource, identity, session).await?,
        };
        if is_controller {
            return self.only_if_asked_for(described);
        }
        Ok(self.completed(described))
    }

    /// The endpoint that the provider describes, unless another address was given.
    fn only_if_asked_for(&self, described: Endpoint) -> Result<Endpoint, Error> {
        let host = |address: &str| {
            let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
            let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
            rest.trim_end_matches(":443").trim_end_matches('.').to_lowercase()
        };
        if self.address.is_empty() || host(&self.address) == host(&described.address) {
            return Ok(described);
        }
        Err(Error::Configuration(format!(
            "address '{}' is not that of cluster '{}', which is {}",
            self.address, self.resource, described.address
        )))
    }

    /// A token for the API server.
    pub async fn token(&self, identity: &Identity, session: Session<'_>) -> Result<Token, Error> {
        match self.cloud {
            Cloud::Aws => eks::token(&self.resource, identity, session).await,
            Cloud::Azure => aks::token(identity, session).await,
            Cloud::Gcp => gke::token(identity, session).await,
        }
    }

    fn completed(&self, described: Endpoint) -> Endpoint {
        Endpoint {
            address: Some(&self.address)
                .filter(|address| !address.is_empty())
                .map_or(described.address, Clone::clone),
            authority: Some(&self.authority)
                .filter(|authority| !authority.is_empty())
                .map_or(described.authority, |authority| authority.clone().into_bytes()),
        }
    }
}

#[cfg(test)]
mod tests;
