//! The address of a repository as people write it, for a clone: where the service is, and which repository it means.
//!
//! As in Flux the service is asked over HTTPS at the host of an ssh address. Unlike there the port of ssh is not
//! carried over, since nothing speaks HTTPS at it.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::Error;

/// Addresses are no longer in the CRD, nor in Secrets of Flux.
const MAX_BYTES: usize = 2048;

/// A repository at a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Scheme, host and port of the service; the path is `/`.
    pub origin: Url,
    /// Its path, without slashes at the ends, and without `.git`.
    pub id: String,
}

impl Repository {
    /// Reads `https://host/a/b.git`, `ssh://git@host/a/b` or `git@host:a/b`. Errors quote no user, password or query.
    pub fn parse(address: &str) -> Result<Self, Error> {
        let address = address.trim();
        if address.is_empty() || address.len() > MAX_BYTES {
            return Err(refuse("it must have 1 to 2048 bytes"));
        }
        let (origin, path) = match address.split_once("://") {
            Some((scheme, _)) => of_url(scheme, address)?,
            None => of_ssh(address)?,
        };
        let id = path.trim_matches('/');
        let id = id.strip_suffix(".git").unwrap_or(id);
        let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        if !id.split('/').all(is_name) {
            return Err(Error::invalid("invalid repository id in address"));
        }
        Ok(Self {
            origin,
            id: id.to_owned(),
        })
    }

    /// Owner and name of the repository, for paths with no further parts.
    pub fn owner_and_name(&self) -> Result<(&str, &str), Error> {
        match self.id.split_once('/') {
            Some((owner, name)) if !name.contains('/') => Ok((owner, name)),
            _ => Err(Error::invalid(format!("invalid repository id '{}'", self.id))),
        }
    }

    /// The host.
    pub fn host(&self) -> &str {
        self.origin.host_str().unwrap_or_default()
    }
}

fn of_url(scheme: &str, address: &str) -> Result<(Url, String), Error> {
    let url = Url::parse(address).map_err(|error| refuse(&error.to_string()))?;
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refuse("it has no host"))?;
    let path = percent_decode_str(url.path()).decode_utf8();
    let path = path.map_err(|_| refuse("its path is not UTF-8"))?.into_owned();
    let origin = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => url.origin().ascii_serialization(),
        "ssh" | "git+ssh" => format!("https://{host}"),
        _ => return Err(refuse("it must begin with https://, http:// or ssh://")),
    };
    Ok((service(&origin)?, path))
}

/// Parses scp's form: `user@host:path`.
fn of_ssh(address: &str) -> Result<(Url, String), Error> {
    let unlike = || {
        refuse("it must be like https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name")
    };
    let (place, path) = address.split_once(':').ok_or_else(unlike)?;
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~' | '+' | '%');
    if host.is_empty() || !host.chars().all(is_host) || !path.chars().all(is_path) {
        return Err(unlike());
    }
    Ok((service(&format!("https://{host}"))?, path.to_owned()))
}

fn service(origin: &str) -> Result<Url, Error> {
    Url::parse(origin).map_err(|error| refuse(&error.to_string()))
}

fn refuse(problem: &str) -> Error {
    Error::invalid(format!("failed parsing URL of the repository: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str) -> String {
        match Repository::parse(address) {
            Ok(repository) => format!(
                "{} {}",
                repository.origin.as_str().trim_end_matches('/'),
                repository.id
            ),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_for_clones_are_repositories_at_services() {
        for (address, expected) in [
            ("https://github.com/foo/bar", "https://github.com foo/bar"),
            ("https://github.com/foo/bar.git", "https://github.com foo/bar"),
            (" https://github.com/foo/bar/ ", "https://github.com foo/bar"),
            (
                "https://user:hunter2@example.com:8443/foo/bar?x=y",
                "https://example.com:8443 foo/bar",
            ),
            (
                "http://gitea.local:3000/foo/bar",
                "http://gitea.local:3000 foo/bar",
            ),
            ("git@gitlab.com:foo/bar.git", "https://gitlab.com foo/bar"),
            ("gitlab.com:foo/bar.git", "https://gitlab.com foo/bar"),
            ("ssh://git@github.com/foo/bar", "https://github.com foo/bar"),
            (
                "ssh://git@gitlab.local:2222/foo/bar.git",
                "https://gitlab.local foo/bar",
            ),
            ("https://gitlab.com/a/b/c.git", "https://gitlab.com a/b/c"),
            ("https://gitlab.com/1234", "https://gitlab.com 1234"),
            (
                "https://dev.azure.com/org/my%20project/_git/repo",
                "https://dev.azure.com org/my project/_git/repo",
            ),
        ] {
            assert_eq!(parsed(address), expected, "{address}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_quoting_secrets() {
        for address in [
            "",
            "foo/bar",
            "https://",
            "https://u:hunter2@github.com",
            "file:///hunter2/etc",
            "https://u:hunter2@github.com/..",
            "https://github.com/foo/%00",
            "u:hunter2@git hub.com:foo/bar",
            "ftp://u:hunter2@example.com/foo/bar",
        ] {
            let error = Repository::parse(address).expect_err(address).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(Repository::parse(&format!("https://h/{}", "a".repeat(3000))).is_err());
    }

    #[test]
    fn a_sub_group_is_neither_owner_nor_name() {
        for address in ["https://github.com/foo", "https://github.com/foo/bar/baz"] {
            let error = Repository::parse(address).unwrap().owner_and_name().unwrap_err();
            assert!(
                error.to_string().starts_with("invalid repository id 'foo"),
                "{error}"
            );
        }
    }
}
