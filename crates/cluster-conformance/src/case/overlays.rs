//! Recorded builds of kustomize.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{Case, Content, answer, claims, name_of};

/// A folder that a Kustomization builds.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// The files of its tree.
    pub files: Vec<(String, Vec<u8>)>,
    /// The folder to build, below the root of its tree.
    pub path: String,
    /// Kind and name of an object that a change deletes.
    pub deleted: Option<(String, String)>,
}

/// The case in `folder`, if a Kustomization can have it.
pub fn read(folder: &Path) -> Result<Option<Case>> {
    let expected = folder.join("expected.yaml.gz");
    // Flags are the command's, and refusals are compared by the sets of the engine.
    let flags = fs::read_to_string(folder.join("flags.txt")).unwrap_or_default();
    if !expected.exists() || !flags.trim().is_empty() {
        return Ok(None);
    }
    let objects = answer(&expected)?;
    let Some(claims) = claims(&objects).filter(|_| !objects.is_empty()) else {
        return Ok(None);
    };
    let path = fs::read_to_string(folder.join("path.txt"))?;
    Ok(Some(Case {
        name: name_of(folder)?,
        id: String::new(),
        content: Content::Overlay(Overlay {
            files: files(&folder.join("input.tgz"))?,
            path: path.trim().trim_start_matches("./").to_owned(),
            deleted: deleted(&objects),
        }),
        claims,
    }))
}

/// The first object, if there are others. A namespace that holds what is still applied is not pruned.
fn deleted(objects: &[Value]) -> Option<(String, String)> {
    let first = objects.iter().find(|object| object["kind"] != "Namespace");
    let first = first.filter(|_| objects.len() > 1)?;
    let text = |pointer: &str| first.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    text("/kind").zip(text("/metadata/name"))
}

fn files(archive: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let archive = fs::File::open(archive).with_context(|| format!("failed to open {}", archive.display()))?;
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    let mut files = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.to_string_lossy().into_owned();
            let mut content = Vec::new();
            std::io::copy(&mut entry, &mut content)?;
            files.push((path.trim_start_matches("./").to_owned(), content));
        }
    }
    Ok(files)
}
