//! Limits which hosts a download may reach when its address comes from an object's status.
//!
//! Beside an artifact service, an address counts only for ExternalArtifacts, which anybody may make, and for the hosts of other
//! shards. Such a download must not lead back to the service, which would answer *us* what the writer may not read: its host's
//! addresses are refused as they are resolved, whatever name leads there, and what it serves over HTTP refuses requests with
//! [`HEADER`](crate::external::HEADER). Nor does it follow a redirect to another host, or reach addresses that lead nowhere but into this machine's network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

use super::super::{Error, Result};
use crate::client::options::SourceObject;
use crate::external::leads_nowhere;

/// Redirects that are followed, on the same host.
const REDIRECTS: usize = 3;

/// Guard against downloads from addresses that must not be reached.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    /// Host and port of the artifact service.
    service: (String, u16),
}

impl Guard {
    /// Keeps downloads away from the service behind an endpoint.
    pub(super) fn from_endpoint(endpoint: &str) -> Option<Self> {
        let url = Url::parse(endpoint).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let service = (host, url.port_or_known_default()?);
        Some(Self { service })
    }

    /// An HTTP client that keeps to it.
    pub(super) fn client(&self, builder: ClientBuilder) -> reqwest::Result<Client> {
        let same_host = Policy::custom(|attempt| {
            let first = attempt.previous().first();
            let is_same = first.is_some_and(|first| {
                first.host_str() == attempt.url().host_str()
                    && first.port_or_known_default() == attempt.url().port_or_known_default()
            });
            match is_same && attempt.previous().len() <= REDIRECTS {
                true => attempt.follow(),
                false => attempt.stop(),
            }
        });
        builder
            .redirect(same_host)
            .no_proxy()
            .dns_resolver(Arc::new(Guarded(self.clone())))
            .build()
    }

    /// Refuses an address that is written as one; names are looked at as they are resolved.
    pub(super) async fn check(&self, url: &Url, object: &SourceObject) -> Result<()> {
        let literal = url.host_str().map(|host| host.trim_matches(['[', ']']));
        let Some(Ok(address)) = literal.map(str::parse::<IpAddr>) else {
            return Ok(());
        };
        let port = url.port_or_known_default().unwrap_or_default();
        match self.own_addresses().await {
            Ok(own) if !self.refuses(address, port, &own) => Ok(()),
            _ => Err(Error::Forbidden {
                object: object.to_string(),
            }),
        }
    }

    /// The addresses of the service. Without them nothing may be downloaded.
    async fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let (host, port) = &self.service;
        let found = tokio::net::lookup_host((host.as_str(), *port)).await?;
        Ok(found.map(|found| canonical(found.ip())).collect())
    }

    /// An address of the service's host, whatever the port, except that on this very machine other programs are others.
    fn refuses(&self, address: IpAddr, port: u16, own: &[IpAddr]) -> bool {
        let address = canonical(address);
        let is_own = own.contains(&address) && (!address.is_loopback() || port == self.service.1);
        is_own || leads_nowhere(address)
    }
}

fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Resolves names, and gives no address that is refused.
struct Guarded(Guard);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let own = guard.own_addresses().await?;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            // The port is not known here: on loopback it is looked at by the service itself.
            let allowed: Vec<SocketAddr> = found
                .filter(|found| !guard.refuses(found.ip(), 0, &own))
                .collect();
            if allowed.is_empty() {
                let refused = io::Error::new(io::ErrorKind::PermissionDenied, "its address is not allowed");
                return Err(refused.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_and_what_leads_into_the_machine_are_refused_however_they_are_written() {
        let guard = Guard::from_endpoint("https://source-controller.flux-system.svc:9091").unwrap();
        let own = ["10.0.0.7".parse().unwrap()];
        for (address, refused) in [
            ("10.0.0.7", true),
            ("::ffff:10.0.0.7", true),
            ("10.0.0.8", false),
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("0.0.0.0", true),
            ("::", true),
            ("127.0.0.1", false),
        ] {
            assert_eq!(
                guard.refuses(address.parse().unwrap(), 80, &own),
                refused,
                "{address}"
            );
        }
        let local = Guard::from_endpoint("http://127.0.0.1:9091").unwrap();
        let own = ["127.0.0.1".parse().unwrap()];
        assert!(local.refuses(own[0], 9091, &own) && !local.refuses(own[0], 8080, &own));
    }

    #[tokio::test]
    async fn nothing_is_reached_while_the_service_cannot_be_resolved() {
        let guard = Guard::from_endpoint("https://no-such-host.invalid:9091").unwrap();
        let object = SourceObject::new("ExternalArtifact", "a", "b");
        let literal = Url::parse("http://192.0.2.1/x").unwrap();
        assert!(guard.check(&literal, &object).await.is_err());
        let resolved = Guarded(guard).resolve("localhost".parse().unwrap()).await;
        assert!(resolved.is_err());
    }

    #[tokio::test]
    async fn addresses_are_refused_in_any_spelling() {
        let guard = Guard::from_endpoint("http://127.0.0.1:9091").unwrap();
        let object = SourceObject::new("ExternalArtifact", "a", "b");
        for (url, allowed) in [
            ("http://127.0.0.1:9091/x", false),
            ("http://127.1:9091/x", false),
            ("http://0x7f000001:9091/x", false),
            ("http://[::ffff:127.0.0.1]:9091/x", false),
            ("http://2852039166/latest", false), // 169.254.169.254
            ("http://127.0.0.1:80/x", true),
            ("http://example.com/x", true),
        ] {
            let checked = guard.check(&Url::parse(url).unwrap(), &object).await;
            assert_eq!(checked.is_ok(), allowed, "{url}");
        }
    }
}
