//! Manifests: which layer of an artifact holds its content. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The platform whose manifest stands for an index, as Flux's library chooses by default.
const PLATFORM: (&str, &str) = ("linux", "amd64");

/// A manifest without the layer that is asked for, or no manifest at all.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not JSON of the right form.
    #[error("failed to parse artifact manifest: {0}")]
    Parse(String),
    /// There is nothing in it.
    #[error("no layers found in artifact")]
    NoLayers,
    /// No layer is of the type that `spec.layerSelector` asks for.
    #[error("failed to find layer with media type '{0}' in artifact")]
    NoSuchLayer(String),
    /// An index without a manifest for this platform.
    #[error("failed to find a manifest for linux/amd64 in the index")]
    NoSuchPlatform,
}

/// Content elsewhere in the registry.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its media type; may be empty.
    #[serde(default)]
    pub media_type: String,
    /// Its digest, with the algorithm.
    pub digest: String,
    /// In bytes.
    pub size: u64,
    #[serde(default)]
    pub(crate) platform: Option<Platform>,
    /// Of a manifest in an index: what it is, where it says so.
    #[serde(default)]
    pub artifact_type: Option<String>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Descriptor {
    /// The text of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// What an image runs on.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct Platform {
    /// Such as `linux`.
    #[serde(default)]
    pub os: String,
    /// Such as `arm64`.
    #[serde(default)]
    pub architecture: String,
    /// Such as `v7`; mostly empty.
    #[serde(default)]
    pub variant: String,
}

/// An image manifest or an index of such.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(json).map_err(|error| Error::Parse(error.to_string()))
    }

    /// For an index: the manifest to take instead.
    pub fn manifest_for_platform(&self) -> Result<Option<&Descriptor>, Error> {
        let Some(manifests) = self.manifests.as_ref().filter(|_| self.is_index()) else {
            return Ok(None);
        };
        let matches = |descriptor: &&Descriptor| {
            let platform = descriptor.platform.as_ref();
            platform.is_none_or(|p| (p.os.as_str(), p.architecture.as_str()) == PLATFORM)
        };
        manifests
            .iter()
            .find(matches)
            .map(Some)
            .ok_or(Error::NoSuchPlatform)
    }

    /// The first layer, or the first of the given media type.
    pub fn layer(&self, media_type: Option<&str>) -> Result<&Descriptor, Error> {
        let layers = self.layers.as_deref().unwrap_or_default();
        let first = layers.first().ok_or(Error::NoLayers)?;
        let Some(wanted) = media_type else {
            return Ok(first);
        };
        let found = layers.iter().find(|layer| layer.media_type == wanted);
        found.ok_or_else(|| Error::NoSuchLayer(wanted.to_owned()))
    }

    /// All layers, of which there may be none.
    pub fn layers(&self) -> &[Descriptor] {
        self.layers.as_deref().unwrap_or_default()
    }

    /// Returns whether it is an index of manifests.
    pub fn is_index(&self) -> bool {
        self.manifests.is_some() && self.layers.is_none()
    }

    /// The configuration of an image.
    pub fn config(&self) -> Option<&Descriptor> {
        self.config.as_ref()
    }

    /// The manifests of an index; none of anything else.
    pub fn into_manifests(self) -> Vec<Descriptor> {
        self.manifests.unwrap_or_default()
    }

    /// Type of the artifact: its own field, or the type of its configuration.
    pub fn artifact_type(&self) -> &str {
        let config = || self.config.as_ref().map(|config| config.media_type.as_str());
        let own = self.artifact_type.as_deref().filter(|own| !own.is_empty());
        own.or_else(config).unwrap_or_default()
    }

    /// The annotations, which become the artifact's metadata.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.annotations.clone().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layer(json: &str, media_type: Option<&str>) -> Result<String, Error> {
        Manifest::parse(json.as_bytes())?
            .layer(media_type)
            .map(|layer| layer.digest.clone())
    }

    #[test]
    fn the_layer_is_chosen_by_media_type_or_is_the_first() {
        let two = r#"{"layers": [
            {"mediaType": "a", "digest": "sha256:1", "size": 1},
            {"mediaType": "b", "digest": "sha256:2", "size": 2},
            {"mediaType": "b", "digest": "sha256:3", "size": 3}]}"#;
        assert_eq!(layer(two, None), Ok("sha256:1".to_owned()));
        assert_eq!(layer(two, Some("b")), Ok("sha256:2".to_owned()));
        assert_eq!(layer(two, Some("c")), Err(Error::NoSuchLayer("c".to_owned())));
        assert_eq!(layer(r#"{"layers": []}"#, None), Err(Error::NoLayers));
        assert_eq!(layer("{}", None), Err(Error::NoLayers));
        assert!(matches!(layer("<html>", None), Err(Error::Parse(_))));
        assert!(matches!(
            layer(r#"{"layers": [{"digest": "x", "size": -1}]}"#, None),
            Err(Error::Parse(_))
        ));
    }

    #[test]
    fn an_index_leads_to_the_manifest_of_linux_on_amd64() {
        let index = r#"{"manifests": [
            {"digest": "sha256:1", "size": 1, "platform": {"os": "linux", "architecture": "arm64"}},
            {"digest": "sha256:2", "size": 1, "platform": {"os": "linux", "architecture": "amd64"}}]}"#;
        let index = Manifest::parse(index.as_bytes()).unwrap();
        assert_eq!(index.manifest_for_platform().unwrap().unwrap().digest, "sha256:2");
        let empty = Manifest::parse(br#"{"manifests": []}"#).unwrap();
        assert_eq!(empty.manifest_for_platform(), Err(Error::NoSuchPlatform));
        let plain = Manifest::parse(br#"{"layers": []}"#).unwrap();
        assert_eq!(plain.manifest_for_platform(), Ok(None));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            ask(&bytes);
        }

        /// Made of the pieces of real manifests, so that the deeper parts are reached.
        #[test]
        fn no_manifest_makes_it_panic(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "null", "-1", "18446744073709551616", "\"sha256:1\"", "\"layers\":[",
                    "\"manifests\":[", "\"config\":", "\"mediaType\":\"a\"", "\"digest\":", "\"size\":1",
                    "\"platform\":{\"os\":\"linux\"}", "\"annotations\":{\"a\":\"b\"}", "\"artifactType\":",
                ]),
                0..40,
            ),
        ) {
            ask(format!("{{{}", pieces.concat()).as_bytes());
        }
    }

    fn ask(bytes: &[u8]) {
        if let Ok(manifest) = Manifest::parse(bytes) {
            let _ = manifest.manifest_for_platform();
            let _ = manifest.layer(None);
            let _ = manifest.layer(Some("a"));
            let _ = (
                manifest.artifact_type(),
                manifest.annotations(),
                manifest.layers(),
            );
            manifest.into_manifests();
        }
    }
}
