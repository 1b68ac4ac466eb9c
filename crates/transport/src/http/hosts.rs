//! Servers that requests may go to, where someone who is not trusted writes the addresses.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use url::Url;

/// A list of servers: host, port and scheme of each. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hosts(Arc<BTreeSet<Origin>>);

/// Scheme, host and port.
type Origin = (String, String, u16);

/// Why a text names no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no server; write its host, its host and port, or http:// and these")]
pub struct NoHost(String);

/// One entry of the list: `git.example.com`, `git.example.com:8443` or `http://git.example.com`. Without a scheme it means https.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host(Origin);

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        let refused = || NoHost(text.to_owned());
        let spelled = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}"),
        };
        let url = Url::parse(&spelled).map_err(|_| refused())?;
        // With more than a server in it, someone expects more than is looked at.
        let is_server = matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && !text.ends_with('/')
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && !text.contains('*');
        origin(&url).filter(|_| is_server).map(Self).ok_or_else(refused)
    }
}

impl FromIterator<Host> for Hosts {
    fn from_iter<I: IntoIterator<Item = Host>>(hosts: I) -> Self {
        Self(Arc::new(hosts.into_iter().map(|host| host.0).collect()))
    }
}

impl Hosts {
    /// Returns whether a request may go there.
    pub fn permit(&self, url: &Url) -> bool {
        origin(url).is_some_and(|origin| self.0.contains(&origin))
    }
}

fn origin(url: &Url) -> Option<Origin> {
    let host = url.host_str()?.to_owned();
    Some((url.scheme().to_owned(), host, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_of_the_list_are_permitted() {
        let entries = [
            "git.example.com",
            "GIT.example.org:8443",
            "http://10.0.0.1:3000",
            "[::1]",
        ];
        let hosts: Hosts = entries
            .iter()
            .map(|entry| entry.parse::<Host>().unwrap())
            .collect();
        for (url, expected) in [
            ("https://git.example.com/a", true),
            ("https://GIT.EXAMPLE.COM:443/a", true),
            ("https://ana:pass@git.example.com/a", true),
            ("http://git.example.com/a", false),
            ("https://git.example.com:8443/a", false),
            ("https://git.example.com.evil.io/a", false),
            ("https://git.example.com@evil.io/a", false),
            ("https://evil.io/git.example.com", false),
            ("https://git.example.com./a", false),
            ("https://git.example.org:8443/a", true),
            ("https://git.example.org/a", false),
            ("http://10.0.0.1:3000/", true),
            ("http://167772161:3000/", true), // the same address, spelled as a number
            ("http://10.0.0.1/", false),
            ("https://[::1]/", true),
            ("ssh://git@git.example.com/a", false),
        ] {
            assert_eq!(hosts.permit(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn an_entry_is_a_server_and_nothing_else() {
        for text in [
            "",
            "https://",
            "git.example.com/org",
            "git.example.com/",
            "*.example.com",
            "ssh://git.example.com",
            "a@example.com",
            "git.example.com?x",
            "git.example.com:port",
            "a b",
        ] {
            assert_eq!(text.parse::<Host>(), Err(NoHost(text.to_owned())), "{text}");
        }
    }
}
