//! The manifest and config around a layer: what makes it an artifact of Flux. Pure.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use artifact::Digest;
use artifact::digest::Hasher;
use serde_json::{Value, json};

use crate::cluster::Failure;

pub(super) const CREATED: &str = "org.opencontainers.image.created";
pub(super) const SOURCE: &str = "org.opencontainers.image.source";
pub(super) const REVISION: &str = "org.opencontainers.image.revision";

/// Media type of the manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// An artifact, ready to be pushed.
pub(super) struct Image {
    pub(super) layer: Vec<u8>,
    pub(super) config: Vec<u8>,
    pub(super) manifest: Vec<u8>,
    /// Of the manifest.
    pub(super) digest: String,
}

impl Image {
    pub(super) fn new(
        layer: Vec<u8>,
        annotations: BTreeMap<String, String>,
        created: String,
    ) -> Result<Self, Failure> {
        let unpacked = unpacked(&layer).map_err(|error| Failure::Write(error.to_string()))?;
        // The fields that Flux's own command writes: some registries look into a config.
        let config = json!({
            "architecture": "", "config": {}, "created": created, "os": "",
            "history": [{"created": "0001-01-01T00:00:00Z"}],
            "rootfs": {"type": "layers", "diff_ids": [unpacked.to_string()]},
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(CONFIG, &config),
            "layers": [descriptor(CONTENT, &layer)], "annotations": annotations,
        });
        let manifest = manifest.to_string().into_bytes();
        Ok(Self {
            digest: Digest::from_content(&manifest).to_string(),
            layer,
            config,
            manifest,
        })
    }
}

fn descriptor(media_type: &str, data: &[u8]) -> Value {
    json!({"mediaType": media_type, "size": data.len(), "digest": Digest::from_content(data).to_string()})
}

fn unpacked(layer: &[u8]) -> io::Result<Digest> {
    let mut reader = flate2::read::GzDecoder::new(layer);
    let (mut hasher, mut piece) = (Hasher::new(), [0; 64 << 10]);
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&piece[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_artifact_has_fluxs_media_types_and_one_digest() {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(b"content").unwrap();
        let layer = writer.finish().unwrap();
        let annotations = BTreeMap::from([(REVISION.to_owned(), "main@sha1:aa".to_owned())]);
        let time = "1970-01-01T00:00:00Z".to_owned();
        let one = Image::new(layer.clone(), annotations.clone(), time.clone()).unwrap();
        let other = Image::new(layer, annotations, time).unwrap();
        assert_eq!(one.digest, other.digest);
        let manifest: Value = serde_json::from_slice(&one.manifest).unwrap();
        assert_eq!(manifest["config"]["mediaType"], CONFIG);
        assert_eq!(manifest["layers"][0]["mediaType"], CONTENT);
        assert_eq!(manifest["annotations"][REVISION], "main@sha1:aa");
        let config: Value = serde_json::from_slice(&one.config).unwrap();
        let unpacked = Digest::from_content(b"content").to_string();
        assert_eq!(config["rootfs"]["diff_ids"][0], unpacked);
    }
}
