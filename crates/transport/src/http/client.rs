//! Clients: one for each distinct way to make connections.
//!
//! In: the TLS and proxy settings of an object. Out: a client that is shared by all objects with equal settings.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use url::Url;

use super::{Error, Hosts, public};

/// Establishing a connection takes no longer than this; the object's own time-out holds as well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Objects with settings of their own are few; when there are more, idle clients are built anew.
const MAX_CLIENTS: usize = 64;

/// How connections of one object are made. Equal settings share a client.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// PEM of certificate authorities that are trusted besides the system's.
    pub ca: Option<Vec<u8>>,
    /// PEM of the client certificate, followed by that of its key.
    pub identity: Option<Vec<u8>>,
    /// Accept any server certificate: only for OCI registries with `spec.insecure`, as Flux does.
    pub skip_verification: bool,
    /// Proxy for all requests; None leaves it to the environment variables.
    pub proxy: Option<Proxy>,
    /// Use no proxy, not even one of the environment.
    pub direct: bool,
    /// The only servers that [`send`](super::send) asks, redirects included; None for all.
    pub only: Option<Hosts>,
}

impl Settings {
    /// The settings for a remote at this host. As Go does it, a proxy of the environment is not used for this machine.
    pub fn towards(mut self, host: &str) -> Self {
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
        self.direct = self.proxy.is_none() && (loopback || name == "localhost");
        self
    }
}

/// An HTTP or SOCKS proxy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// Its address.
    pub address: String,
    /// User and password, if it wants any.
    pub credentials: Option<(String, String)>,
}

/// A client, and where it may go. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    client: reqwest::Client,
    only: Option<Hosts>,
}

impl Client {
    /// Refuses a request to where this client may not go.
    pub(super) fn check(&self, url: &Url) -> Result<(), Error> {
        match &self.only {
            Some(hosts) if !hosts.permit(url) => Err(Error::NotListed { url: public(url) }),
            _ => Ok(()),
        }
    }
}

/// A client that may go anywhere.
impl From<reqwest::Client> for Client {
    fn from(client: reqwest::Client) -> Self {
        Self { client, only: None }
    }
}

/// For requests that are sent without [`send`](super::send): to addresses that were checked, or that are trusted.
impl Deref for Client {
    type Target = reqwest::Client;

    fn deref(&self) -> &reqwest::Client {
        &self.client
    }
}

/// The clients of this process.
#[derive(Clone, Default)]
pub struct Clients {
    by_settings: Arc<Mutex<HashMap<Settings, Client>>>,
}

impl Clients {
    /// The client for these settings, made when first asked for.
    pub fn get(&self, settings: &Settings) -> Result<Client, Error> {
        let mut clients = self.by_settings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(settings) {
            return Ok(client.clone());
        }
        let client = Client {
            client: build(settings)?,
            only: settings.only.clone(),
        };
        if clients.len() >= MAX_CLIENTS {
            clients.clear(); // clients in use live on in their users
        }
        clients.insert(settings.clone(), client.clone());
        Ok(client)
    }
}

fn build(settings: &Settings) -> Result<reqwest::Client, Error> {
    let configure = |error: reqwest::Error| Error::Configure(error.without_url().to_string());
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(2)
        .tls_danger_accept_invalid_certs(settings.skip_verification);
    if let Some(ca) = &settings.ca {
        let certificates = reqwest::Certificate::from_pem_bundle(ca).map_err(configure)?;
        if certificates.is_empty() {
            return Err(Error::Configure(
                "the certificate authority holds no PEM certificate".to_owned(),
            ));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some(identity) = &settings.identity {
        builder = builder.identity(reqwest::Identity::from_pem(identity).map_err(configure)?);
    }
    if settings.direct {
        builder = builder.no_proxy();
    }
    if let Some(proxy) = &settings.proxy {
        let mut to = reqwest::Proxy::all(resolving(&proxy.address)).map_err(configure)?;
        if let Some((user, password)) = &proxy.credentials {
            to = to.basic_auth(user, password);
        }
        builder = builder.proxy(to);
    }
    builder.build().map_err(configure)
}

/// As with Go's client, a SOCKS5 proxy resolves the names of servers, whichever way its address is written.
fn resolving(address: &str) -> String {
    match address.strip_prefix("socks5://") {
        Some(rest) => format!("socks5h://{rest}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
        let direct = |host: &str| Settings::default().towards(host).direct;
        assert!(
            ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]
                .into_iter()
                .all(direct)
        );
        assert!(
            !["example.com", "10.0.0.1", "localhost.example.com"]
                .into_iter()
                .any(direct)
        );
        let proxy = Some(Proxy {
            address: "http://proxy".to_owned(),
            credentials: None,
        });
        assert!(
            !Settings {
                proxy,
                ..Default::default()
            }
            .towards("localhost")
            .direct
        );
    }

    #[test]
    fn a_socks_proxy_resolves_names() {
        assert_eq!(resolving("socks5://proxy:1080"), "socks5h://proxy:1080");
        assert_eq!(resolving("socks5h://proxy"), "socks5h://proxy");
        assert_eq!(resolving("http://proxy"), "http://proxy");
    }
}
