//! The chart as a package, and as what registries store.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use helm_chart::Helm;
use serde_json::{Value, json};

use super::sha256;
use crate::images::commit::Commit;

/// A packaged chart.
pub(super) struct Package {
    /// Chart.yaml.
    metadata: Value,
    /// The .tgz.
    pub(super) content: Vec<u8>,
}

/// A chart in the form of a registry.
pub(super) struct Oci {
    /// With the tag.
    pub(super) version: String,
    pub(super) config: Vec<u8>,
    pub(super) content: Vec<u8>,
    pub(super) manifest: Vec<u8>,
}

/// Packages the chart of a checkout.
pub(super) fn package(root: &Path) -> Result<Package> {
    let folder = root.join("charts/windlass");
    let mut warnings = Vec::new();
    let chart = helm_chart::load_folder(&folder.to_string_lossy(), Helm::V4, &mut warnings)
        .with_context(|| format!("failed to read {}", folder.display()))?;
    let mut content = Vec::new();
    helm_package::archive::write(&chart, &mut content).context("failed to package the chart")?;
    let metadata = fs::read_to_string(folder.join("Chart.yaml")).context("failed to read Chart.yaml")?;
    let metadata = serde_saphyr::from_str(&metadata).context("Chart.yaml is not readable")?;
    Ok(Package { metadata, content })
}

impl Package {
    pub(super) fn version(&self) -> &str {
        self.metadata["version"].as_str().unwrap_or_default()
    }

    /// As `helm push` stores it, with the time of the commit.
    pub(super) fn oci(self, version: &str, commit: &Commit) -> Result<Oci> {
        let metadata = &self.metadata;
        let config = serde_json::to_vec(metadata)?;
        let descriptor = |kind: &str, content: &[u8]| -> Value {
            json!({
                "mediaType": format!("application/vnd.cncf.helm.{kind}"),
                "digest": format!("sha256:{}", sha256(content)),
                "size": content.len(),
            })
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("config.v1+json", &config),
            "layers": [descriptor("chart.content.v1.tar+gzip", &self.content)],
            "annotations": {
                "org.opencontainers.image.title": metadata["name"],
                "org.opencontainers.image.description": metadata["description"],
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.revision": commit.id,
                "org.opencontainers.image.created": commit.time.to_string(),
            },
        });
        Ok(Oci {
            version: version.to_owned(),
            config,
            manifest: serde_json::to_vec(&manifest)?,
            content: self.content,
        })
    }
}
