//! What an image says of itself: the platforms that it was built for, and its labels.

use std::collections::BTreeMap;

use artifact::digest::Digest;
use serde::Deserialize;

use crate::manifest::{self, Manifest, Platform};
use crate::registry::{self, Repository};
use crate::{PullError, verified_manifest};

/// Larger configurations of images are not read, in bytes.
const MAX_CONFIG: u64 = 4 << 20;

/// Why nothing is known of an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The manifest could not be fetched.
    #[error("failed to fetch the manifest")]
    Manifest(#[from] PullError),
    /// The configuration could not be fetched.
    #[error("failed to fetch the configuration of the image")]
    Config(#[from] registry::Error),
    /// It is no manifest.
    #[error(transparent)]
    ParseManifest(#[from] manifest::Error),
    /// It is a manifest, and not one of an image.
    #[error("it is not an image: it has no configuration that names a platform")]
    NoImage,
}

impl ImageError {
    /// Returns whether the content is to blame, which another try would find the same.
    pub fn is_about_content(&self) -> bool {
        matches!(self, Self::ParseManifest(_) | Self::NoImage)
    }
}

/// What is read of an image's configuration.
#[derive(Deserialize)]
struct Config {
    #[serde(flatten)]
    platform: Platform,
    #[serde(default)]
    config: Run,
}

/// How a container of the image is run.
#[derive(Default, Deserialize)]
struct Run {
    #[serde(default, rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// The platforms of an image: those that its index lists, or the one in its configuration. An index within an index counts
/// for nothing.
///
/// # Errors
/// When the registry cannot be asked, and when it is no image.
pub async fn platforms(repository: &Repository, digest: Digest) -> Result<Vec<Platform>, ImageError> {
    let manifest = Manifest::parse(&verified_manifest(repository, digest).await?)?;
    if manifest.is_index() {
        let manifests = manifest.into_manifests();
        return Ok(manifests.into_iter().filter_map(|one| one.platform).collect());
    }
    let config = config(repository, &manifest).await?;
    if config.platform.os.is_empty() || config.platform.architecture.is_empty() {
        return Err(ImageError::NoImage);
    }
    Ok(vec![config.platform])
}

/// The labels of an image: annotations of its index, of the manifest for linux/amd64 or the first one, and labels in the
/// configuration, in this order if several have a key. They are the words of whoever built the image.
///
/// # Errors
/// When the registry cannot be asked, and when it is no image.
pub async fn labels(repository: &Repository, digest: Digest) -> Result<BTreeMap<String, String>, ImageError> {
    let mut manifest = Manifest::parse(&verified_manifest(repository, digest).await?)?;
    let mut labels = manifest.annotations();
    if manifest.is_index() {
        let own = manifest.manifest_for_platform().ok().flatten().cloned();
        let one = own.or_else(|| manifest.into_manifests().into_iter().next());
        let digest = one.and_then(|one| one.digest.parse().ok());
        let digest = digest.ok_or(ImageError::NoImage)?;
        manifest = Manifest::parse(&verified_manifest(repository, digest).await?)?;
        add(&mut labels, manifest.annotations());
    }
    let config = config(repository, &manifest).await?;
    add(&mut labels, config.config.labels.unwrap_or_default());
    Ok(labels)
}

fn add(labels: &mut BTreeMap<String, String>, more: BTreeMap<String, String>) {
    for (key, value) in more {
        labels.entry(key).or_insert(value);
    }
}

async fn config(repository: &Repository, manifest: &Manifest) -> Result<Config, ImageError> {
    let config = manifest.config().ok_or(ImageError::NoImage)?;
    if config.size > MAX_CONFIG {
        return Err(ImageError::NoImage);
    }
    let config = repository.small_blob(config, MAX_CONFIG).await?;
    serde_json::from_slice(&config).map_err(|_| ImageError::NoImage)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use testkit::scripted_registry::{Content, ScriptedRegistry};
    use tokio::time::Instant;
    use transport::http::{Clients, Settings};

    use super::*;
    use crate::name::Name;
    use crate::registry::Memory;

    /// The platforms of the one image in a registry.
    async fn seen(content: Content, digest: &str) -> Result<Vec<String>, ImageError> {
        let (_registry, repository) = repository(content).await;
        let found = platforms(&repository, digest.parse().unwrap()).await?;
        let shown = |one: Platform| format!("{}/{}/{}", one.os, one.architecture, one.variant);
        Ok(found.into_iter().map(shown).collect())
    }

    async fn repository(content: Content) -> (ScriptedRegistry, Repository) {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let registry = ScriptedRegistry::start(content).await.unwrap();
        let settings = Settings::default().towards("127.0.0.1");
        let repository = Repository {
            name: Name::parse(&registry.url()).unwrap(),
            insecure: true,
            credentials: None,
            client: Clients::default().get(&settings).unwrap(),
            memory: Memory::default(),
            deadline: Instant::now() + Duration::from_secs(30),
        };
        (registry, repository)
    }

    async fn seen_in_config(config: &Value) -> Result<Vec<String>, ImageError> {
        let mut content = Content::default();
        let config = content.blob(
            "application/vnd.oci.image.config.v1+json",
            config.to_string().as_bytes(),
        );
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": []});
        let digest = content.manifest(manifest.to_string().as_bytes());
        seen(content, &digest).await
    }

    #[tokio::test]
    async fn an_index_lists_its_platforms() {
        let one = |platform: Value| json!({"mediaType": "m", "digest": "sha256:1", "size": 1, "platform": platform});
        let index = json!({"schemaVersion": 2, "manifests": [
            one(json!({"os": "linux", "architecture": "amd64"})),
            one(json!({"os": "linux", "architecture": "arm", "variant": "v7"})),
            one(json!({"os": "unknown", "architecture": "unknown"})),
            one(Value::Null),
        ]});
        let mut content = Content::default();
        let digest = content.manifest(index.to_string().as_bytes());
        let found = seen(content, &digest).await.unwrap();
        assert_eq!(found, ["linux/amd64/", "linux/arm/v7", "unknown/unknown/"]);
    }

    #[tokio::test]
    async fn a_single_image_says_it_in_its_configuration() {
        let found =
            seen_in_config(&json!({"os": "linux", "architecture": "arm64", "variant": "v8", "rootfs": {}}))
                .await;
        assert_eq!(found.unwrap(), ["linux/arm64/v8"]);
        for no_image in [
            json!({}),
            json!([]),
            json!({"os": "linux"}),
            json!({"os": 1, "architecture": "arm64"}),
        ] {
            let error = seen_in_config(&no_image).await.unwrap_err();
            assert!(error.is_about_content(), "{no_image}: {error}");
        }
    }

    #[tokio::test]
    async fn labels_of_the_index_go_before_those_of_its_image() {
        let mut content = Content::default();
        let config = json!({"os": "linux", "architecture": "amd64",
            "config": {"Labels": {"a": "config", "b": "config", "c": "config"}}});
        let config = content.blob(
            "application/vnd.oci.image.config.v1+json",
            config.to_string().as_bytes(),
        );
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [],
            "annotations": {"a": "manifest", "b": "manifest"}});
        let digest = content.manifest(manifest.to_string().as_bytes());
        let index = json!({"schemaVersion": 2, "annotations": {"a": "index"}, "manifests": [
            {"mediaType": "m", "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": "arm64"}}]});
        let index = content.manifest(index.to_string().as_bytes());
        let (_registry, repository) = repository(content).await;
        let found = |digest: String| labels(&repository, digest.parse().unwrap());
        let all = |found: BTreeMap<String, String>| found.into_values().collect::<Vec<_>>().join(" ");
        assert_eq!(all(found(index).await.unwrap()), "index manifest config");
        assert_eq!(all(found(digest).await.unwrap()), "manifest manifest config");
    }

    #[tokio::test]
    async fn a_registry_that_fails_is_not_taken_for_an_image_without_platforms() {
        let nowhere = Digest::from_content(b"nowhere").to_string();
        let error = seen(Content::default(), &nowhere).await.unwrap_err();
        assert!(!error.is_about_content(), "{error}");
    }
}
