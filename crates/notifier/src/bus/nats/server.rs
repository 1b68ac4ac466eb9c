//! Which servers an address of NATS means: one or several, separated by commas.

use percent_encoding::percent_decode_str;
use url::Url;

use super::login::Password;
use crate::error::Error;

const DEFAULT_PORT: u16 = 4222;
/// More are not tried.
const MAX_SERVERS: usize = 8;

/// A server.
#[derive(Debug, PartialEq)]
pub(super) struct Server {
    /// Its name or address.
    pub(super) host: String,
    /// Its port.
    pub(super) port: u16,
    /// True if it must speak TLS.
    pub(super) is_secure: bool,
    /// Credentials in the address, which take precedence over a Secret's name and password.
    pub(super) password: Option<Password>,
}

impl Server {
    /// All servers of an address. Errors quote nothing of it: it may hold a password.
    pub(super) fn all(address: &str) -> Result<Vec<Self>, Error> {
        let parts = address.split(',').map(str::trim).filter(|part| !part.is_empty());
        let servers: Result<Vec<_>, _> = parts.take(MAX_SERVERS).map(Self::from_text).collect();
        match servers? {
            servers if servers.is_empty() => Err(Error::invalid("NATS server (address) cannot be empty")),
            servers => Ok(servers),
        }
    }

    fn from_text(text: &str) -> Result<Self, Error> {
        let refuse = |problem: &str| Error::invalid(format!("invalid NATS server (address): {problem}"));
        let url = match text.contains("://") {
            true => Url::parse(text),
            false => Url::parse(&format!("nats://{text}")),
        };
        let url = url.map_err(|error| refuse(&error.to_string()))?;
        let is_secure = match url.scheme() {
            "nats" => false,
            "tls" => true,
            _ => return Err(refuse("it must begin with nats:// or tls://")),
        };
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refuse("it has no host"))?;
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port().unwrap_or(DEFAULT_PORT),
            is_secure,
            password: password(&url),
        })
    }
}

fn password(url: &Url) -> Option<Password> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    match (url.username(), url.password()) {
        ("", None) => None,
        (token, None) => Some(Password::Token(decoded(token))),
        (user, Some(password)) => Some(Password::User(decoded(user), decoded(password))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_server_or_several() {
        let servers = Server::all("nats://u:p%40ss@a.example:4223, tls://token@b.example,[::1]:1,c").unwrap();
        let texts: Vec<_> = servers
            .iter()
            .map(|server| {
                format!(
                    "{} {} {} {:?}",
                    server.host, server.port, server.is_secure, server.password
                )
            })
            .collect();
        assert_eq!(
            texts,
            [
                "a.example 4223 false Some(User(…))",
                "b.example 4222 true Some(Token(…))",
                "::1 1 false None",
                "c 4222 false None",
            ]
        );
        assert_eq!(
            servers[0].password,
            Some(Password::User("u".to_owned(), "p@ss".to_owned()))
        );
    }

    #[test]
    fn other_addresses_are_refused_without_quoting_them() {
        for address in [
            "",
            " , ",
            "ws://u:hunter2@h",
            "nats://",
            "nats://u:hunter2@h:99999",
        ] {
            let error = Server::all(address).unwrap_err().to_string();
            assert!(
                error.contains("NATS server (address)") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
