//! Values of flags as Go spells them: bools and listening addresses.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Parses the spellings of `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Result<bool, String> {
    go_text::numeral::parse_bool(text).ok_or_else(|| format!("{text:?} is neither true nor false"))
}

/// Why a text is not an address to listen on.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// There is no port, or it is not a number.
    #[error("failed to parse address {text:?}: it must be 'host:port' or ':port'")]
    Parse {
        /// The given text.
        text: String,
    },
    /// The host has no address.
    #[error("failed to resolve the host of address {text:?}")]
    Resolve {
        /// The given text.
        text: String,
        /// Error of the resolver.
        #[source]
        source: Option<std::io::Error>,
    },
}

/// Parses an address as Go's `net.Listen` takes it: "127.0.0.1:80", "localhost:80", "[::1]:80", or ":80" for
/// all interfaces of both families, which is `[::]:80` (`admin::bind` falls back to IPv4 where there is no
/// IPv6).
pub fn parse_address(text: &str) -> Result<SocketAddr, AddressError> {
    let parse_error = || AddressError::Parse {
        text: text.to_owned(),
    };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(parse_error)?;
    let port: u16 = port.parse().map_err(|_| parse_error())?;
    if host.is_empty() {
        return Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
    }
    if host.contains(':') {
        return Err(parse_error());
    }
    let resolve_error = |source| AddressError::Resolve {
        text: text.to_owned(),
        source,
    };
    let mut addresses = (host, port)
        .to_socket_addrs()
        .map_err(|source| resolve_error(Some(source)))?;
    addresses.next().ok_or_else(|| resolve_error(None))
}

/// An address to listen on, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenAddress {
    /// Nothing is served ("0" or "", as controller-runtime has it).
    Disabled,
    /// Where to listen.
    Socket(SocketAddr),
}

impl ListenAddress {
    /// Where to listen, or None if nothing is to be served.
    pub fn socket(self) -> Option<SocketAddr> {
        match self {
            Self::Disabled => None,
            Self::Socket(address) => Some(address),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text == "0" {
            return Ok(Self::Disabled);
        }
        parse_address(text).map(Self::Socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let cases = [
            (":8080", "[::]:8080"),
            ("127.0.0.1:9440", "127.0.0.1:9440"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:0", "0.0.0.0:0"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_address(text).expect(text).to_string(), expected);
        }
        assert!(
            parse_address("localhost:80")
                .expect("every machine has it")
                .ip()
                .is_loopback()
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "8080", "host", "host:", ":http", ":65536", "::1:80"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zero_switches_an_endpoint_off() {
        for text in ["0", ""] {
            assert_eq!(
                text.parse::<ListenAddress>().expect(text),
                ListenAddress::Disabled
            );
        }
    }
}
