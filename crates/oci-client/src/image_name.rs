//! Names of images as Pods have them: `nginx`, `ghcr.io/org/app:v1`, `app@sha256:…`.

use artifact::digest::Digest;

use crate::is_tag;
use crate::name::{self, Name};

/// Hosts by which Docker Hub is known.
const DOCKER_HUB: [&str; 3] = [
    "index.docker.io",
    "registry-1.docker.io",
    "registry.hub.docker.com",
];
const DOCKER: &str = "docker.io";
/// Tag of an image that is named without any.
const LATEST: &str = "latest";

/// A text that names no image.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not the name of a repository.
    #[error(transparent)]
    Name(#[from] name::Error),
    /// Not a tag.
    #[error("'{0}' is not a tag")]
    Tag(String),
    /// Not a digest of SHA-256.
    #[error("'{0}' is not a digest of SHA-256")]
    Digest(String),
}

/// An image as a Pod names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// Where it is.
    pub name: Name,
    /// Its tag, if it has one.
    pub tag: Option<String>,
    /// Its digest, if it has one; then the tag does not count.
    pub digest: Option<Digest>,
}

impl ImageName {
    /// Reads the name of an image.
    ///
    /// # Errors
    /// When it is none that a registry could have.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (tagged, digest) = match text.split_once('@') {
            Some((tagged, digest)) => {
                let digest = digest.parse().map_err(|_| Error::Digest(digest.to_owned()))?;
                (tagged, Some(digest))
            }
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let (repository, tag) = match tagged.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
            _ => (tagged, None),
        };
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(Error::Tag(tag.to_owned()));
        }
        Ok(Self {
            name: Name::parse(&format!("oci://{repository}"))?,
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// The tag that counts where there is no digest.
    pub fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or(LATEST)
    }

    /// Registry and path in one spelling, for rules: one registry has several names, and who writes the name may choose among them.
    pub fn repository(&self) -> String {
        let registry = &self.name.registry;
        let host = self.name.host();
        let port = registry.strip_prefix(host).unwrap_or_default();
        let host = host.trim_end_matches('.');
        let host = if DOCKER_HUB.contains(&host) { DOCKER } else { host };
        let port = if port == ":443" { "" } else { port };
        format!("{host}{port}/{}", self.name.repository)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn images_are_read_as_pods_name_them() {
        for (text, repository, tag) in [
            ("nginx", "docker.io/library/nginx", "latest"),
            ("nginx:1.27", "docker.io/library/nginx", "1.27"),
            ("org/app", "docker.io/org/app", "latest"),
            ("ghcr.io/org/app:v1", "ghcr.io/org/app", "v1"),
            ("localhost:5000/app", "localhost:5000/app", "latest"),
            ("localhost:5000/app:v1", "localhost:5000/app", "v1"),
        ] {
            for ending in [String::new(), format!("@{DIGEST}")] {
                let image = ImageName::parse(&format!("{text}{ending}")).unwrap();
                assert_eq!((&*image.repository(), image.tag()), (repository, tag), "{text}");
                assert_eq!(image.digest.is_some(), !ending.is_empty());
            }
        }
    }

    #[test]
    fn a_registry_has_one_spelling() {
        for text in [
            "docker.io/library/nginx",
            "index.docker.io/nginx",
            "registry-1.docker.io/library/nginx",
            "index.docker.io:443/library/nginx",
            "registry.hub.docker.com./library/nginx",
        ] {
            let image = ImageName::parse(text).unwrap();
            assert_eq!(image.repository(), "docker.io/library/nginx", "{text}");
        }
        for text in ["ghcr.io:443/org/app", "ghcr.io./org/app", "ghcr.io.:443/org/app"] {
            let image = ImageName::parse(text).unwrap();
            assert_eq!(image.repository(), "ghcr.io/org/app", "{text}");
        }
        // Another port may be another server.
        let other = ImageName::parse("ghcr.io.:80/org/app").unwrap();
        assert_eq!(other.repository(), "ghcr.io:80/org/app");
    }

    #[test]
    fn what_names_no_image_is_refused() {
        for text in [
            "",
            "GHCR.io/org/app",
            "ghcr.io/Org/app",
            "Org/app",
            "app:",
            "app:a b",
            "app@sha256:00",
            "app@sha512:00",
            "app@",
            "oci://ghcr.io/app",
            "ghcr.io/../app",
            "user@ghcr.io/app",
            " nginx",
        ] {
            assert!(ImageName::parse(text).is_err(), "{text}");
        }
    }
}
