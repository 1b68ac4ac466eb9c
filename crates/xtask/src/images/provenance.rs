//! Provenance of an image: an in-toto statement with SLSA's predicate, unsigned.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::tools::repository_root;

use super::Image;
use super::commands::read;
use super::commit::Commit;

/// The statement about an image. Builds that were not of a commit say so.
pub(super) fn statement_of(image: &Image, repository: Option<&str>, commit: &Commit) -> Result<Value> {
    let lock = std::fs::read(repository_root().join("Cargo.lock")).context("failed to read Cargo.lock")?;
    let rustc = read(Command::new("rustc").arg("--version"))?;
    let buildah = read(Command::new("buildah").arg("--version"))?;
    let name = repository.map_or_else(
        || image.name().to_owned(),
        |repository| format!("{repository}/{}", image.name()),
    );
    let digests = image.platforms.iter().map(|(_, digest)| digest);
    let index = (image.platforms.len() > 1).then_some(&image.digest);
    let subjects = index
        .into_iter()
        .chain(digests)
        .map(|digest| subject(&name, digest));
    let subjects: Vec<_> = subjects.collect();
    let platforms: Vec<_> = image
        .platforms
        .iter()
        .map(|(platform, _)| platform.to_string())
        .collect();
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://windlass.dev/build/make-images/v1",
                "externalParameters": {"program": image.program, "platforms": platforms},
                "internalParameters": {
                    "clean": commit.clean,
                    "rustc": rustc.trim(),
                    "buildah": buildah.trim(),
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit.id}},
                    {"name": "Cargo.lock", "digest": {"sha256": hex::encode(Sha256::digest(lock))}},
                ],
            },
            "runDetails": {
                "builder": {"id": "https://windlass.dev/build/make-images"},
                "metadata": {"invocationId": format!("{}/{}", image.program, commit.id)},
            },
        },
    }))
}

/// The statement about what is in the image of one platform: its inventory is the predicate.
pub(super) fn inventory_of(name: &str, digest: &str, document: &Value) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [subject(name, digest)],
        "predicateType": "https://spdx.dev/Document",
        "predicate": document,
    })
}

fn subject(name: &str, digest: &str) -> Value {
    json!({"name": name, "digest": {"sha256": digest.trim_start_matches("sha256:")}})
}
