//! Clients: one for each distinct way to make connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use reqwest::redirect::{Attempt, Policy};
use url::Url;

use crate::error::Error;
use crate::target::{Target, Tls};

/// Establishing a connection takes no longer than this; the Provider's own timeout holds as well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Services are called now and then: connections that wait for the next call cost memory at both ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Targets with settings of their own are few; when there are more, idle clients are built anew.
const MAX_CLIENTS: usize = 64;
/// As in Go, roughly.
const MAX_REDIRECTS: usize = 5;

/// How connections are made. Equal settings share a client.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Settings {
    tls: Option<Tls>,
    proxy: Option<String>,
    /// Use no proxy, not even one of the environment.
    direct: bool,
}

/// The clients of an edge.
#[derive(Default)]
pub(super) struct Clients {
    by_settings: Mutex<HashMap<Settings, reqwest::Client>>,
}

impl Clients {
    /// The client for a target, made when first asked for.
    pub(super) fn get(&self, target: &Target, url: &Url) -> Result<reqwest::Client, Error> {
        let settings = Settings {
            tls: target.tls.clone(),
            proxy: target.proxy.clone(),
            direct: target.proxy.is_none() && is_this_machine(url),
        };
        let mut clients = self.by_settings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&settings) {
            return Ok(client.clone());
        }
        let client = build(&settings)?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear(); // clients in use live on in their users
        }
        clients.insert(settings, client.clone());
        Ok(client)
    }
}

fn build(settings: &Settings) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!(
            "windlass-notification-controller/",
            env!("CARGO_PKG_VERSION")
        ))
        .redirect(Policy::custom(follow))
        .http1_title_case_headers() // as Go writes them
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(1);
    if let Some(tls) = &settings.tls {
        builder = with_certificates(builder, tls)?;
    }
    if settings.direct {
        builder = builder.no_proxy();
    }
    if let Some(proxy) = &settings.proxy {
        let proxy = reqwest::Proxy::all(resolving(proxy)).map_err(|_| {
            Error::invalid("unable to parse proxy URL: it must be http://, https:// or socks5://")
        })?;
        builder = builder.proxy(proxy);
    }
    let problem = |error: reqwest::Error| Error::invalid(format!("failed to set up connections: {error}"));
    builder.build().map_err(problem)
}

fn with_certificates(
    mut builder: reqwest::ClientBuilder,
    tls: &Tls,
) -> Result<reqwest::ClientBuilder, Error> {
    // what is wrong with a key must not quote it
    if let Some(ca) = &tls.ca {
        let certificates = reqwest::Certificate::from_pem_bundle(ca).unwrap_or_default();
        if certificates.is_empty() {
            return Err(Error::invalid(
                "failed to get TLS config: the certificate authority holds no PEM certificate",
            ));
        }
        builder = builder.tls_certs_only(certificates);
    }
    if let Some((certificate, key)) = &tls.certificate {
        let both = [certificate.as_slice(), b"\n", key].concat();
        let identity = reqwest::Identity::from_pem(&both).map_err(|_| {
            Error::invalid("failed to get TLS config: the client certificate and its key are not PEM")
        })?;
        builder = builder.identity(identity);
    }
    Ok(builder)
}

/// A redirect may move an endpoint on its host, and from http to https. Anything else would hand what is in the request
/// to someone else, or turn it into a question.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_request = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let stays = attempt.previous().first().is_some_and(|first| {
        let to = attempt.url();
        let same_port = first.port_or_known_default() == to.port_or_known_default();
        let upgrade = first.scheme() == "http" && to.scheme() == "https";
        first.host_str() == to.host_str() && (upgrade || (first.scheme() == to.scheme() && same_port))
    });
    if keeps_request && stays && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// As in Go, a proxy of the environment is not used for this machine.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// As with Go's client, a SOCKS5 proxy resolves the names of servers, whichever way its address is written.
fn resolving(address: &str) -> String {
    match address.strip_prefix("socks5://") {
        Some(rest) => format!("socks5h://{rest}"),
        None => address.to_owned(),
    }
}
