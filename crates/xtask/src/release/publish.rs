//! What a release puts into a registry beside its images: the chart, signatures, and attestations, where cosign looks for them.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use artifact::Digest;
use bytes::Bytes;
use oci_client::credentials::{self, Credentials};
use oci_client::name::Name;
use oci_client::registry::{Memory, Repository};
use serde_json::{Value, json};
use signature::cosign::{SigningKey, simple_payload};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::chart::Oci;
use crate::images::Described;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Longest silence of a registry.
const SILENCE: Duration = Duration::from_secs(120);
/// Longest time for all.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Annotation of a layer with its signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// Pushes the chart, and with a key signatures and attestations of it and of the images. Returns a line for each.
pub(super) fn run(
    repository: &str,
    key: Option<&SigningKey>,
    images: &[Described],
    chart: &Oci,
    provenance: &Value,
) -> Result<Vec<String>> {
    let runtime = Runtime::new().context("failed to start a runtime")?;
    runtime.block_on(async {
        let mut lines = Vec::new();
        let place = format!("{repository}/charts/windlass");
        let charts = Target::new(&place)?;
        let digest = charts.chart(chart).await?;
        lines.push(format!("{place}:{}  {digest}", chart.version));
        let Some(key) = key else {
            return Ok(lines);
        };
        // The package's digest is the provenance's subject; a registry finds attestations by the manifest's.
        let about = about(provenance, &digest);
        charts.sign(key, &digest, &[about]).await?;
        for Described { image, statements } in images {
            let target = Target::new(&format!("{repository}/{}", image.name()))?;
            let mut digests = vec![&image.digest];
            digests.extend(image.platforms.iter().map(|(_, digest)| digest));
            digests.dedup();
            for digest in digests {
                let of_it: Vec<_> = statements
                    .iter()
                    .filter(|statement| is_about(statement, digest))
                    .cloned()
                    .collect();
                target.sign(key, digest, &of_it).await?;
            }
        }
        lines.push(format!("{repository}: signed, with attestations"));
        Ok(lines)
    })
}

/// The statement with another digest among its subjects.
fn about(statement: &Value, digest: &str) -> Value {
    let mut statement = statement.clone();
    if let Some(subjects) = statement["subject"].as_array_mut() {
        subjects.push(json!({"name": "chart", "digest": {"sha256": digest.trim_start_matches("sha256:")}}));
    }
    statement
}

fn is_about(statement: &Value, digest: &str) -> bool {
    let hex = digest.trim_start_matches("sha256:");
    let mut subjects = statement["subject"].as_array().into_iter().flatten();
    subjects.any(|subject| subject["digest"]["sha256"] == hex)
}

/// A repository that is pushed to.
struct Target {
    /// Host and path.
    place: String,
    repository: Repository,
}

impl Target {
    fn new(place: &str) -> Result<Self> {
        let name = Name::parse(&format!("oci://{place}"))?;
        // If another one is installed, it is the same: there is one TLS provider in the tree.
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = reqwest::Client::builder()
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("windlass-release");
        Ok(Self {
            place: place.to_owned(),
            repository: Repository {
                insecure: name.is_local(),
                credentials: credentials_for(&name)?,
                name,
                client: client.build()?.into(),
                memory: Memory::default(),
                deadline: Instant::now() + PATIENCE,
            },
        })
    }

    async fn chart(&self, chart: &Oci) -> Result<String> {
        for blob in [&chart.config, &chart.content] {
            self.blob(blob).await?;
        }
        self.manifest(&chart.version, &chart.manifest).await
    }

    /// Puts a signature and these statements beside a manifest.
    async fn sign(&self, key: &SigningKey, digest: &str, statements: &[Value]) -> Result<()> {
        let payload = simple_payload(&self.place, digest);
        let annotations = json!({SIGNATURE: key.sign(payload.as_bytes())?});
        let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
        self.beside(digest, "sig", vec![(kind, payload, annotations)])
            .await?;
        let mut layers = Vec::new();
        for statement in statements {
            let annotations = json!({SIGNATURE: "", "predicateType": statement["predicateType"]});
            let envelope = key.attest(statement)?;
            layers.push(("application/vnd.dsse.envelope.v1+json", envelope, annotations));
        }
        self.beside(digest, "att", layers).await
    }

    /// Pushes what cosign 1 and 2 put beside a manifest: one whose tag is made of the digest.
    async fn beside(&self, digest: &str, ending: &str, layers: Vec<(&str, String, Value)>) -> Result<()> {
        if layers.is_empty() {
            return Ok(());
        }
        let mut descriptors = Vec::new();
        let mut identities = Vec::new();
        for (kind, content, annotations) in layers {
            let content = content.into_bytes();
            let mut descriptor = descriptor(kind, &content);
            identities.push(descriptor["digest"].clone());
            descriptor["annotations"] = annotations;
            descriptors.push(descriptor);
            self.blob(&content).await?;
        }
        let config = json!({
            "architecture": "", "os": "", "config": {}, "created": "1970-01-01T00:00:00Z",
            "rootfs": {"type": "layers", "diff_ids": identities},
        });
        let config = config.to_string().into_bytes();
        self.blob(&config).await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": descriptors,
        });
        let tag = format!("{}.{ending}", digest.replace(':', "-"));
        self.manifest(&tag, manifest.to_string().as_bytes())
            .await
            .map(drop)
    }

    async fn blob(&self, content: &[u8]) -> Result<()> {
        let pushed = self.repository.push_blob(&Bytes::copy_from_slice(content)).await;
        pushed.with_context(|| format!("failed to push to {}", self.place))
    }

    async fn manifest(&self, tag: &str, content: &[u8]) -> Result<String> {
        let content = Bytes::copy_from_slice(content);
        let pushed = self.repository.push_manifest(tag, MANIFEST, &content).await;
        pushed.with_context(|| format!("failed to push {}:{tag}", self.place))?;
        Ok(Digest::from_content(&content).to_string())
    }
}

fn descriptor(kind: &str, content: &[u8]) -> Value {
    json!({
        "mediaType": kind,
        "digest": Digest::from_content(content).to_string(),
        "size": content.len(),
    })
}

/// Those that buildah finds too, in the first of its files that has some.
fn credentials_for(name: &Name) -> Result<Option<Credentials>> {
    let folder = |variable: &str, file: &str| Some(PathBuf::from(env::var_os(variable)?).join(file));
    let files = [
        env::var_os("REGISTRY_AUTH_FILE").map(PathBuf::from),
        folder("XDG_RUNTIME_DIR", "containers/auth.json"),
        folder("DOCKER_CONFIG", "config.json"),
        folder("HOME", ".docker/config.json"),
    ];
    for path in files.into_iter().flatten().filter(|path| path.exists()) {
        let text = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        let found = credentials::in_config_file(&text, name);
        if let Some(found) = found.with_context(|| format!("{}", path.display()))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
