//! How a repository is reached, and its submodules: who is shown which credentials.

use api::source::GitRepository;
use git_client::{self, Algorithms, Way, auth, ssh};
use transport::auth::{Access, SecretData};
use transport::http;
use url::Url;

use super::{Error, References, Ways};

/// The repository of an object, with what its Secrets give.
pub struct Remotes {
    /// Without a password; with a user only for ssh.
    pub url: Url,
    reach: Reach,
    clients: http::Clients,
}

enum Reach {
    Http(Access),
    Ssh(ssh::Settings),
}

impl Remotes {
    pub(super) fn new(
        object: &GitRepository,
        mut url: Url,
        references: &References,
        ways: Ways<'_>,
    ) -> Result<Self, Error> {
        let reach = if url.scheme() == "ssh" {
            Reach::Ssh(ssh_settings(
                object,
                &mut url,
                references,
                ways.ssh_algorithms.clone(),
            )?)
        } else {
            let mut access = transport::auth::access(&mut url, &references.secret)
                .map_err(Error::ConfigureAuthentication)?;
            access.settings.proxy = references.proxy.clone();
            Reach::Http(access)
        };
        Ok(Self {
            url,
            reach,
            clients: ways.clients.clone(),
        })
    }

    /// The repository itself.
    ///
    /// # Errors
    /// When no client can be made of its TLS material.
    pub fn main(&self) -> Result<git_client::Remote, Error> {
        match &self.reach {
            Reach::Http(access) => self.over_http(self.url.clone(), access.clone()),
            Reach::Ssh(settings) => Ok(over_ssh(self.url.clone(), settings)),
        }
    }

    /// Another repository. On the same server it gets the same credentials; on others only what stands in its address,
    /// the proxy and the certificate authority. Over ssh the key is offered to every server whose own key is in
    /// `known_hosts`, as in Flux: nothing that is shown there can be used by the server, and the Secret says which they are.
    pub fn other(&self, mut url: Url) -> Result<git_client::Remote, Error> {
        if url.scheme() == "ssh" {
            return match &self.reach {
                Reach::Ssh(settings) => {
                    let _ = url.set_password(None); // fails only for URLs that can have none
                    Ok(over_ssh(url, settings))
                }
                // There is no key, in Flux neither.
                Reach::Http(_) => Err(Error::NoKey),
            };
        }
        let nothing = SecretData::new();
        let own = transport::auth::access(&mut url, &nothing).map_err(Error::ConfigureAuthentication)?;
        let access = match &self.reach {
            Reach::Http(access) if is_same_server(&self.url, &url) => access.clone(),
            Reach::Http(access) => Access {
                settings: http::Settings {
                    ca: access.settings.ca.clone(),
                    proxy: access.settings.proxy.clone(),
                    ..own.settings
                },
                authorization: own.authorization,
            },
            Reach::Ssh(_) => own,
        };
        self.over_http(url, access)
    }

    /// The repository's address as it may be shown. The user is part of one of ssh, as in Flux's messages.
    pub fn shown(&self) -> String {
        match self.reach {
            Reach::Http(_) => http::public(&self.url),
            Reach::Ssh(_) => self.url.to_string(),
        }
    }

    fn over_http(&self, url: Url, access: Access) -> Result<git_client::Remote, Error> {
        let settings = access.settings.towards(url.host_str().unwrap_or_default());
        let client = self.clients.get(&settings).map_err(|error| Error::Build {
            url: http::public(&url),
            source: error,
        })?;
        Ok(git_client::Remote {
            url,
            way: Way::Http {
                client,
                authorization: access.authorization,
            },
        })
    }
}

fn over_ssh(url: Url, settings: &ssh::Settings) -> git_client::Remote {
    git_client::Remote {
        url,
        way: Way::Ssh(Box::new(settings.clone())),
    }
}

fn ssh_settings(
    object: &GitRepository,
    url: &mut Url,
    references: &References,
    algorithms: Algorithms,
) -> Result<ssh::Settings, Error> {
    let settings = auth::ssh(url, &references.secret, algorithms, references.proxy.clone());
    settings.map_err(|error| match error {
        transport::auth::Error::MissingPassphrase => Error::MissingPassphrase {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object
                .spec
                .secret_ref
                .as_ref()
                .map_or_else(String::new, |secret| secret.name.clone()),
        },
        error => Error::ConfigureAuthentication(error),
    })
}

/// Returns whether credentials for the one may be shown to the other.
pub fn is_same_server(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}
