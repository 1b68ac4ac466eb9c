//! For which platforms an image was built.

use artifact::digest::Digest;
use serde::Deserialize;

use crate::manifest::{self, Manifest, Platform};
use crate::registry::{self, Repository};
use crate::{PullError, verified_manifest};

/// Larger configurations of images are not read, in bytes.
const MAX_CONFIG: u64 = 4 << 20;

/// Why the platforms of an image are not known.
#[derive(Debug, thiserror::Error)]
pub enum PlatformsError {
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

impl PlatformsError {
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
}

/// The platforms of an image: those that its index lists, or the one in its configuration. An index within an index counts
/// for nothing.
///
/// # Errors
/// When the registry cannot be asked, and when it is no image.
pub async fn platforms(repository: &Repository, digest: Digest) -> Result<Vec<Platform>, PlatformsError> {
    let manifest = Manifest::parse(&verified_manifest(repository, digest).await?)?;
    if manifest.is_index() {
        let manifests = manifest.into_manifests();
        return Ok(manifests.into_iter().filter_map(|one| one.platform).collect());
    }
    let config = manifest.config().ok_or(PlatformsError::NoImage)?;
    if config.size > MAX_CONFIG {
        return Err(PlatformsError::NoImage);
    }
    let config = repository.small_blob(config, MAX_CONFIG).await?;
    let config: Config = serde_json::from_slice(&config).map_err(|_| PlatformsError::NoImage)?;
    if config.platform.os.is_empty() || config.platform.architecture.is_empty() {
        return Err(PlatformsError::NoImage);
    }
    Ok(vec![config.platform])
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
    async fn seen(content: Content, digest: &str) -> Result<Vec<String>, PlatformsError> {
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
        let found = platforms(&repository, digest.parse().unwrap()).await?;
        let shown = |one: Platform| format!("{}/{}/{}", one.os, one.architecture, one.variant);
        Ok(found.into_iter().map(shown).collect())
    }

    async fn seen_in_config(config: &Value) -> Result<Vec<String>, PlatformsError> {
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
    async fn a_registry_that_fails_is_not_taken_for_an_image_without_platforms() {
        let nowhere = Digest::from_content(b"nowhere").to_string();
        let error = seen(Content::default(), &nowhere).await.unwrap_err();
        assert!(!error.is_about_content(), "{error}");
    }
}
