//! Where to say it, and how to get in.

use std::collections::BTreeMap;
use std::fmt;

use url::Url;

use crate::error::Error;
use crate::provider_type::ProviderType;

/// Which service, where, and how to get in: a Provider and its Secrets, read.
#[derive(Clone)]
pub struct Target {
    /// Which service.
    pub type_: ProviderType,
    /// `spec.address`, or the Secret's `address` without surrounding whitespace.
    pub address: String,
    /// `spec.channel`.
    pub channel: String,
    /// `spec.username`, or the Secret's.
    pub username: String,
    /// The Secret's password.
    pub password: String,
    /// The Secret's token.
    pub token: String,
    /// The Secret's headers.
    pub headers: BTreeMap<String, String>,
    /// The URL of a proxy, which may hold a user and a password.
    pub proxy: Option<String>,
    /// Certificates, if the system's will not do.
    pub tls: Option<Tls>,
    /// All data of the Secret: those of a GitHub App, of NATS, and so on.
    pub secret: BTreeMap<String, Vec<u8>>,
    /// The Provider.
    pub provider: ProviderRef,
    /// The ServiceAccount whose identity at a cloud provider is used; None is the controller's own.
    pub service_account: Option<String>,
    /// The controller's own identity is not shown through the proxy, or under the certificates, of the target.
    pub locked: bool,
}

/// Certificates that are not the system's, in PEM.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The only certificate authorities that are trusted; None trusts the system's.
    pub ca: Option<Vec<u8>>,
    /// The client's certificate and its key.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// A Provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ProviderRef {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
}

impl Target {
    /// A target of this type at an address, with nothing else.
    pub fn new(type_: ProviderType, address: impl Into<String>) -> Self {
        Self {
            type_,
            address: address.into(),
            channel: String::new(),
            username: String::new(),
            password: String::new(),
            token: String::new(),
            headers: BTreeMap::new(),
            proxy: None,
            tls: None,
            secret: BTreeMap::new(),
            provider: ProviderRef::default(),
            service_account: None,
            locked: false,
        }
    }

    /// The address as a URL. `what` names it in the error, which does not quote it: it may be a secret.
    pub(crate) fn url(&self, what: &str) -> Result<Url, Error> {
        let problem = |why: &str| Error::invalid(format!("invalid {what}: {why}"));
        let url = match Url::parse(&self.address) {
            Ok(url) => url,
            Err(_) if self.address.is_empty() => return Err(problem("the address is empty")),
            Err(error) => return Err(problem(&error.to_string())),
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(problem("it must begin with https:// or http:// and a host"));
        }
        Ok(url)
    }
}

/// Nothing of it but names: addresses of webhooks are secrets as well.
impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Target")
            .field("type_", &self.type_)
            .field("provider", &self.provider)
            .field("channel", &self.channel)
            .field("service_account", &self.service_account)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("ca", &self.ca.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish()
    }
}
