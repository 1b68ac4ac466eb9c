//! Images, pulled from a registry and unpacked.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image that lies unpacked in a folder.
#[derive(Debug, Clone)]
pub(super) struct Image {
    /// Its root file system. No one writes to it.
    pub root: PathBuf,
    pub entrypoint: Vec<String>,
    /// `NAME=value`.
    pub environment: Vec<String>,
}

/// Pulls `host:port/repository:tag` from a registry without TLS to a folder below `images`.
pub(super) async fn pull(http: &reqwest::Client, reference: &str, images: &Path) -> Result<Image> {
    let fetched = fetch(http, reference).await;
    let (config, layers) = fetched.with_context(|| format!("failed to pull {reference}"))?;
    let root = images.join(reference.replace(['/', ':'], "_"));
    let texts = |field: &str| {
        let list = config["config"][field].as_array();
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    };
    let image = Image {
        root: root.clone(),
        entrypoint: texts("Entrypoint"),
        environment: texts("Env"),
    };
    tokio::task::spawn_blocking(move || layers.iter().try_for_each(|layer| unpack(layer, &root))).await??;
    Ok(image)
}

/// The configuration, and the layers from the lowest up.
async fn fetch(http: &reqwest::Client, reference: &str) -> Result<(Value, Vec<Vec<u8>>)> {
    let (host, rest) = reference.split_once('/').context("it names no registry")?;
    let (repository, tag) = rest.rsplit_once(':').context("it has no tag")?;
    let base = format!("http://{host}/v2/{repository}");
    let manifest = get(http, &format!("{base}/manifests/{tag}")).await?;
    let manifest: Value = serde_json::from_slice(&manifest).context("the manifest is no JSON")?;
    let config = blob(http, &base, &manifest["config"]).await?;
    let mut layers = Vec::new();
    for layer in manifest["layers"].as_array().context("it has no layers")? {
        layers.push(blob(http, &base, layer).await?);
    }
    let config = serde_json::from_slice(&config).context("the configuration is no JSON")?;
    Ok((config, layers))
}

async fn blob(http: &reqwest::Client, base: &str, descriptor: &Value) -> Result<Vec<u8>> {
    let digest = descriptor["digest"].as_str().context("a blob has no digest")?;
    let bytes = get(http, &format!("{base}/blobs/{digest}")).await?;
    let found = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
    ensure!(found == digest, "{digest} has the digest {found}");
    Ok(bytes)
}

async fn get(http: &reqwest::Client, url: &str) -> Result<Vec<u8>> {
    let response = http.get(url).header("Accept", MANIFEST).send().await?;
    Ok(response.error_for_status()?.bytes().await?.to_vec())
}

fn unpack(layer: &[u8], root: &Path) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("failed to make {}", root.display()))?;
    let is_gzip = layer.starts_with(&[0x1f, 0x8b]);
    let content: Box<dyn Read> = if is_gzip {
        Box::new(GzDecoder::new(layer))
    } else {
        Box::new(layer)
    };
    let mut archive = tar::Archive::new(content);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ensure!(
            !name.starts_with(".wh."),
            "layers that remove files are not supported: {}",
            path.display()
        );
        entry
            .unpack_in(root)
            .with_context(|| format!("failed to unpack {}", path.display()))?;
    }
    Ok(())
}
