//! Names of OCI repositories: `spec.url` goes in, registry and repository come out.
//!
//! The rules are those of the library behind Flux (google/go-containerregistry): a first part with a dot, a colon or
//! the word localhost is a registry; without one it is Docker Hub.

use std::net::IpAddr;

const PREFIX: &str = "oci://";
const DOCKER_HUB: &str = "index.docker.io";

/// A URL that names no repository.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not an `oci://` URL.
    #[error("URL must be in format 'oci://<domain>/<org>/<repo>'")]
    Format,
    /// A tag in the URL, which `spec.ref` should hold.
    #[error("URL must not contain a tag; remove ':{0}'")]
    Tag(String),
    /// A digest in the URL.
    #[error("URL must not contain a digest; remove '@{0}'")]
    Digest(String),
    /// A registry that is none.
    #[error("'{0}' is not a registry")]
    Registry(String),
    /// Characters or a length that no repository has.
    #[error("'{0}' is not a repository: 2 to 255 of the characters a-z 0-9 _ - . / are allowed")]
    Repository(String),
}

/// A repository in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// Host, with port if one was given.
    pub registry: String,
    /// Path below the registry.
    pub repository: String,
}

impl Name {
    /// Reads an `oci://` URL.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let name = url.strip_prefix(PREFIX).ok_or(Error::Format)?;
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
            _ => (DOCKER_HUB, name),
        };
        if let Some((_, digest)) = repository.split_once('@') {
            return Err(Error::Digest(digest.to_owned()));
        }
        if let Some((_, tag)) = repository.split_once(':') {
            return Err(Error::Tag(tag.to_owned()));
        }
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c);
        let dots = |part: &str| matches!(part, "" | "." | "..");
        let length = (2..=255).contains(&repository.len());
        if !(length && repository.chars().all(allowed)) || repository.split('/').any(dots) {
            return Err(Error::Repository(repository.to_owned()));
        }
        let registry = if registry == "docker.io" {
            DOCKER_HUB
        } else {
            registry
        };
        check_registry(registry)?;
        let implicit = registry == DOCKER_HUB && !repository.contains('/');
        let repository = if implicit {
            format!("library/{repository}")
        } else {
            repository.to_owned()
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
        })
    }

    /// The registry without its port.
    pub fn host(&self) -> &str {
        match self.registry.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.registry,
        }
    }

    /// Returns whether plain http may be tried: registries on this machine and in private networks, as Flux's library does.
    pub fn is_local(&self) -> bool {
        let host = self.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse();
        match address {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
            Ok(IpAddr::V6(address)) => address.is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".local") || host.ends_with(".localhost"),
        }
    }

    /// The name with a tag, as people write it.
    pub fn tagged(&self, tag: &str) -> String {
        format!("{}/{}:{tag}", self.registry, self.repository)
    }

    /// The name with a digest, as people write it.
    pub fn pinned(&self, digest: &str) -> String {
        format!("{}/{}@{digest}", self.registry, self.repository)
    }
}

/// Checks that the part before a URL's path parses as just the host and the port.
fn check_registry(registry: &str) -> Result<(), Error> {
    let read_back = url::Url::parse(&format!("https://{registry}/"))
        .ok()
        .filter(|url| {
            let host = url.host_str().unwrap_or_default();
            let plain = url.username().is_empty() && url.password().is_none() && url.path() == "/";
            let port = registry.strip_prefix(host).unwrap_or("x");
            plain && (port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok()))
        });
    read_back
        .map(|_| ())
        .ok_or_else(|| Error::Registry(registry.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_go_containerregistry_reads_them() {
        let cases = [
            ("oci://ghcr.io/org/app", "ghcr.io", "org/app"),
            ("oci://localhost:5000/app", "localhost:5000", "app"),
            ("oci://localhost/app", "localhost", "app"),
            ("oci://127.0.0.1:5000/a/b/c", "127.0.0.1:5000", "a/b/c"),
            ("oci://org/app", "index.docker.io", "org/app"),
            ("oci://app", "index.docker.io", "library/app"),
            ("oci://docker.io/app", "index.docker.io", "library/app"),
            ("oci://[::1]:5000/app", "[::1]:5000", "app"),
        ];
        for (url, registry, repository) in cases {
            let name = Name::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(
                (name.registry.as_str(), name.repository.as_str()),
                (registry, repository),
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_no_repository_is_refused() {
        let cases = [
            ("https://ghcr.io/org/app", Error::Format),
            ("oci://ghcr.io/org/app:v1", Error::Tag("v1".to_owned())),
            (
                "oci://ghcr.io/org/app@sha256:0",
                Error::Digest("sha256:0".to_owned()),
            ),
            ("oci://ghcr.io/Org/app", Error::Repository("Org/app".to_owned())),
            ("oci://ghcr.io/", Error::Repository(String::new())),
            ("oci://ghcr.io/a/../b", Error::Repository("a/../b".to_owned())),
            ("oci://ghcr.io/a//b", Error::Repository("a//b".to_owned())),
            ("oci://u:p.x/app", Error::Registry("u:p.x".to_owned())),
            ("oci://a.b?c/app", Error::Registry("a.b?c".to_owned())),
        ];
        for (url, error) in cases {
            assert_eq!(Name::parse(url), Err(error), "{url}");
        }
    }

    #[test]
    fn plain_http_is_for_local_registries_only() {
        let local = |url: &str| Name::parse(url).unwrap().is_local();
        for url in [
            "oci://localhost:5000/app",
            "oci://127.0.0.1:5000/app",
            "oci://10.0.0.1/app",
            "oci://r.local/app",
            "oci://[::1]:5000/app",
        ] {
            assert!(local(url), "{url}");
        }
        for url in [
            "oci://ghcr.io/app",
            "oci://8.8.8.8/app",
            "oci://localhost.example.com/app",
            "oci://app",
        ] {
            assert!(!local(url), "{url}");
        }
    }
}
