//! OCI artifacts as `flux push artifact` makes them, and others for tests of layer selection.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The media type of the configuration of Flux's artifacts.
pub const CONFIG_MEDIA_TYPE: &str = "application/vnd.cncf.flux.config.v1+json";
/// The media type of the layer with the files.
pub const CONTENT_MEDIA_TYPE: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// The media type of the configuration of an image.
const IMAGE_CONFIG_MEDIA_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of a layer of an image.
const IMAGE_LAYER_MEDIA_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The media type of the configuration of a chart.
const CHART_CONFIG_MEDIA_TYPE: &str = "application/vnd.cncf.helm.config.v1+json";
/// The media type of the layer with a chart's archive.
pub const CHART_MEDIA_TYPE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Parts of a manifest.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// The media type of the configuration.
    pub config_media_type: String,
    /// The configuration, JSON.
    pub config: String,
    /// The layers, in order.
    pub layers: Vec<Layer>,
    /// The manifest's annotations.
    pub annotations: BTreeMap<String, String>,
}

/// One blob of an artifact.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Its media type.
    pub media_type: String,
    /// Its content.
    pub data: Vec<u8>,
}

impl Artifact {
    /// One layer with `files` (path, contents), annotated with `revision` (such as `main@sha1:…`) and a source.
    pub fn from_files(revision: &str, files: &[(&str, &str)]) -> Result<Self> {
        let annotation =
            |name: &str, value: &str| (format!("org.opencontainers.image.{name}"), value.to_owned());
        Ok(Self {
            config_media_type: CONFIG_MEDIA_TYPE.to_owned(),
            config: "{}".to_owned(),
            layers: vec![Layer {
                media_type: CONTENT_MEDIA_TYPE.to_owned(),
                data: tar_gz(files)?,
            }],
            annotations: BTreeMap::from([
                annotation("created", "2026-01-01T00:00:00Z"),
                annotation("source", "https://example.com/org/repository"),
                annotation("revision", revision),
            ]),
        })
    }

    /// An image for one platform, with one file.
    pub fn image(os: &str, architecture: &str, content: &str) -> Result<Self> {
        Ok(Self {
            config_media_type: IMAGE_CONFIG_MEDIA_TYPE.to_owned(),
            config: format!(r#"{{"os": "{os}", "architecture": "{architecture}"}}"#),
            layers: vec![Layer {
                media_type: IMAGE_LAYER_MEDIA_TYPE.to_owned(),
                data: tar_gz(&[("content", content)])?,
            }],
            annotations: BTreeMap::new(),
        })
    }

    /// The archive of a chart, as `helm push` stores it.
    pub fn from_chart(archive: Vec<u8>) -> Self {
        Self {
            config_media_type: CHART_CONFIG_MEDIA_TYPE.to_owned(),
            config: "{}".to_owned(),
            layers: vec![Layer {
                media_type: CHART_MEDIA_TYPE.to_owned(),
                data: archive,
            }],
            annotations: BTreeMap::new(),
        }
    }
}

/// A tar.gz of `files` (path, contents) that is the same for the same files.
pub fn tar_gz(files: &[(&str, &str)]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, path, contents.as_bytes());
        added.with_context(|| format!("failed to put {path} into an archive"))?;
    }
    let finished = archive.into_inner().and_then(GzEncoder::finish);
    finished.context("failed to finish an archive")
}
