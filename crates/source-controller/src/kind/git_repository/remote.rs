//! How a repository is reached, and its submodules: who is shown which credentials.

use url::Url;

use super::submodules::is_same_server;
use crate::error::{Error, TransportError};
use crate::fetch::git::auth::{self, Access, SecretData};
use crate::fetch::{git, http};

/// The repository of an object, with what its Secrets give.
pub(super) struct Remotes {
    /// Without credentials.
    pub(super) url: Url,
    access: Access,
    clients: http::Clients,
}

impl Remotes {
    pub(super) fn new(
        mut url: Url,
        secret: &SecretData,
        proxy: Option<http::Proxy>,
        clients: &http::Clients,
    ) -> Result<Self, Error> {
        let mut access = auth::access(&mut url, secret).map_err(Error::ConfigureAuthentication)?;
        access.settings.proxy = proxy;
        Ok(Self {
            url,
            access,
            clients: clients.clone(),
        })
    }

    /// The repository itself.
    pub(super) fn main(&self) -> Result<git::Remote, Error> {
        self.build(self.url.clone(), self.access.clone())
    }

    /// Another repository. On the same server it gets the same credentials; on others only what stands in its address,
    /// the proxy and the certificate authority.
    pub(super) fn other(&self, mut url: Url) -> Result<git::Remote, Error> {
        if url.scheme() == "ssh" {
            return Err(Error::Unsupported {
                field: "spec.recurseSubmodules with a submodule over ssh".to_owned(),
            });
        }
        let nothing = SecretData::new();
        let own = auth::access(&mut url, &nothing).map_err(Error::ConfigureAuthentication)?;
        let access = if is_same_server(&self.url, &url) {
            self.access.clone()
        } else {
            Access {
                settings: http::Settings {
                    ca: self.access.settings.ca.clone(),
                    proxy: self.access.settings.proxy.clone(),
                    ..own.settings
                },
                authorization: own.authorization,
            }
        };
        self.build(url, access)
    }

    fn build(&self, url: Url, access: Access) -> Result<git::Remote, Error> {
        let settings = access.settings.towards(url.host_str().unwrap_or_default());
        let client = self
            .clients
            .get(&settings)
            .map_err(|error| Error::GenerateTransport {
                url: http::public(&url),
                source: TransportError::Build(error),
            })?;
        Ok(git::Remote {
            url,
            client,
            authorization: access.authorization,
        })
    }
}
