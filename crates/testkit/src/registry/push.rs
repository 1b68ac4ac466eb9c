//! Pushes by hand what the distribution specification says: blobs, then a manifest per tag.

use anyhow::{Context as _, Result, bail};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Artifact;

const MANIFEST_MEDIA_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Pushes blobs and manifest; returns the manifest's digest.
pub(super) async fn push(
    http: &Client,
    registry: &str,
    repository: &str,
    tags: &[&str],
    artifact: &Artifact,
) -> Result<String> {
    let base = format!("http://{registry}/v2/{repository}");
    let config = push_blob(
        http,
        &base,
        artifact.config.as_bytes(),
        &artifact.config_media_type,
    )
    .await?;
    let mut layers = Vec::new();
    for layer in &artifact.layers {
        layers.push(push_blob(http, &base, &layer.data, &layer.media_type).await?);
    }
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_MEDIA_TYPE,
        "config": config,
        "layers": layers,
        "annotations": artifact.annotations,
    }))?;
    let digest = digest_of(&manifest);
    // Without a tag it can still be had by its digest.
    let references = if tags.is_empty() {
        vec![digest.as_str()]
    } else {
        tags.to_vec()
    };
    for reference in references {
        let request = http
            .put(format!("{base}/manifests/{reference}"))
            .header(CONTENT_TYPE, MANIFEST_MEDIA_TYPE)
            .body(manifest.clone());
        check(request.send().await?)
            .await
            .with_context(|| format!("failed to push the manifest {reference}"))?;
    }
    Ok(digest)
}

/// What cosign 1 and 2 put beside an artifact: an image with one layer.
pub(super) struct Beside<'a> {
    /// Of its tag: `sig` or `att`.
    pub(super) ending: &'a str,
    pub(super) media_type: &'a str,
    pub(super) content: &'a [u8],
    pub(super) annotations: Value,
}

/// Pushes what is to be beside the manifest with this digest.
pub(super) async fn push_beside(
    http: &Client,
    registry: &str,
    repository: &str,
    digest: &str,
    beside: Beside<'_>,
) -> Result<()> {
    let base = format!("http://{registry}/v2/{repository}");
    let config = push_blob(http, &base, b"{}", "application/vnd.oci.image.config.v1+json").await?;
    let mut layer = push_blob(http, &base, beside.content, beside.media_type).await?;
    layer["annotations"] = beside.annotations;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2, "mediaType": MANIFEST_MEDIA_TYPE, "config": config, "layers": [layer],
    }))?;
    let tag = format!("{}.{}", digest.replace(':', "-"), beside.ending);
    let request = http
        .put(format!("{base}/manifests/{tag}"))
        .header(CONTENT_TYPE, MANIFEST_MEDIA_TYPE)
        .body(manifest);
    check(request.send().await?).await.map(drop)
}

/// Deletes a manifest by digest.
pub(super) async fn delete(http: &Client, registry: &str, repository: &str, digest: &str) -> Result<()> {
    let url = format!("http://{registry}/v2/{repository}/manifests/{digest}");
    let deleted = check(http.delete(url).send().await?).await;
    deleted
        .map(drop)
        .with_context(|| format!("failed to delete {repository}@{digest}"))
}

async fn push_blob(http: &Client, base: &str, data: &[u8], media_type: &str) -> Result<Value> {
    let digest = digest_of(data);
    let failed = || format!("failed to push the blob {digest}");
    let started = check(http.post(format!("{base}/blobs/uploads/")).send().await?)
        .await
        .with_context(failed)?;
    let location = started
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok());
    let mut upload = reqwest::Url::parse(base)?.join(location.context("an upload has no location")?)?;
    upload.query_pairs_mut().append_pair("digest", &digest);
    check(http.put(upload).body(data.to_vec()).send().await?)
        .await
        .with_context(failed)?;
    Ok(json!({"mediaType": media_type, "digest": digest, "size": data.len()}))
}

async fn check(response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.unwrap_or_default();
    bail!("the registry answered {status}: {}", text.trim())
}

fn digest_of(data: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(data)))
}
