//! The TCP connection to the server: direct, or through a SOCKS5 or HTTP proxy that resolves the server's name.

mod shown;
mod socks;
mod tunnel;

pub(crate) use shown::shown;
use tokio::io;
use tokio::net::TcpStream;

use crate::error::Error;

/// A proxy between us and the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// `socks5://host:port`, `socks5h://…` (the same: the proxy resolves names, as with Go's client) or `http://…`.
    pub address: String,
    /// User and password, if it wants any.
    pub credentials: Option<(String, String)>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Proxy").finish_non_exhaustive()
    }
}

enum Scheme {
    Socks5,
    Http,
}

/// Connects to the server. The caller bounds the time.
pub(crate) async fn dial(host: &str, port: u16, proxy: Option<&Proxy>) -> Result<TcpStream, Error> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let Some(proxy) = proxy else {
        return connect(host, port).await;
    };
    let (scheme, proxy_host, proxy_port) = parse(&proxy.address)?;
    let mut stream = connect(&proxy_host, proxy_port).await?;
    let credentials = proxy
        .credentials
        .as_ref()
        .map(|(user, password)| (user.as_str(), password.as_str()));
    let opened = match scheme {
        Scheme::Socks5 => socks::open(&mut stream, host, port, credentials).await,
        Scheme::Http => tunnel::open(&mut stream, host, port, credentials).await,
    };
    match opened {
        Ok(()) => Ok(stream),
        Err(problem) => Err(Error::Proxy {
            address: shown(host, port),
            proxy: shown(&proxy_host, proxy_port),
            problem: problem.to_string(),
        }),
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, Error> {
    let failed = |source: io::Error| Error::Dial {
        address: shown(host, port),
        source,
    };
    let stream = TcpStream::connect((host, port)).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

fn parse(address: &str) -> Result<(Scheme, String, u16), Error> {
    let (scheme, rest) = address
        .split_once("://")
        .ok_or(Error::ProxyAddress("its address is no URL"))?;
    let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
        "socks5" | "socks5h" => (Scheme::Socks5, 1080),
        "http" => (Scheme::Http, 80),
        _ => {
            return Err(Error::ProxyAddress(
                "only socks5:// and http:// proxies can be used with ssh",
            ));
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let bad_port = |_| Error::ProxyAddress("the port in its address is not a number");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(bad_port)?),
        _ => (authority, default_port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(Error::ProxyAddress("its address names no host"));
    }
    Ok((scheme, host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies_are_read() {
        let read = |address| {
            parse(address)
                .map(|(_, host, port)| shown(&host, port))
                .map_err(|e| e.to_string())
        };
        assert_eq!(read("socks5://proxy").unwrap(), "proxy:1080");
        assert_eq!(read("socks5h://u:p@proxy:9050").unwrap(), "proxy:9050");
        assert_eq!(read("http://[::1]:3128/").unwrap(), "[::1]:3128");
        assert_eq!(read("http://[::1]").unwrap(), "[::1]:80");
        for address in ["proxy:1080", "https://proxy", "socks5://", "http://proxy:x", ""] {
            assert!(
                read(address)
                    .unwrap_err()
                    .starts_with("failed to use the proxy: "),
                "{address}"
            );
        }
    }
}
