//! The project's own cases, in tests/cases/cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::registry::tar_gz;

use super::{Case, Chart, Content, Overlay, folders, name_of, numbered};

/// Each chart goes through its life once for each way in which a failure is remedied.
const REMEDIES: usize = 5;

/// The overlays and charts of a folder: `overlays/NAME` and `charts/NAME`. No two of them make the same object outside of namespaces.
pub fn own(folder: &Path) -> Result<Vec<Case>> {
    let overlays = folders(&folder.join("overlays"))?;
    let overlays = overlays
        .iter()
        .map(|folder| overlay(folder))
        .collect::<Result<_>>()?;
    let mut charts = Vec::new();
    for folder in folders(&folder.join("charts"))? {
        let chart = chart(&folder)?;
        charts.extend((0..REMEDIES).map(|_| chart.clone()));
    }
    Ok([numbered(overlays, "overlay"), numbered(charts, "chart")].concat())
}

fn case(folder: &Path, content: Content) -> Result<Case> {
    Ok(Case {
        name: name_of(folder)?,
        id: String::new(),
        content,
        claims: BTreeSet::new(),
    })
}

fn overlay(folder: &Path) -> Result<Case> {
    let mut files = files(folder)?;
    // `Kind/name` of the object that a change deletes is no part of the case.
    let deleted = files
        .iter()
        .position(|(path, _)| path == "deleted.txt")
        .map(|at| files.remove(at).1);
    let deleted = deleted.map(String::from_utf8).transpose()?;
    let deleted = deleted.as_deref().and_then(|text| text.trim().split_once('/'));
    case(
        folder,
        Content::Overlay(Overlay {
            files,
            path: ".".to_owned(),
            deleted: deleted.map(|(kind, name)| (kind.to_owned(), name.to_owned())),
        }),
    )
}

fn chart(folder: &Path) -> Result<Case> {
    let name = name_of(folder)?;
    let files = files(folder)?;
    let texts: Vec<(String, String)> = files
        .into_iter()
        .map(|(path, content)| Ok((format!("{name}/{path}"), String::from_utf8(content)?)))
        .collect::<Result<_>>()?;
    let texts: Vec<(&str, &str)> = texts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let metadata = texts.iter().find(|(path, _)| path.ends_with("/Chart.yaml"));
    let metadata: Value = serde_saphyr::from_str(metadata.context("a chart without Chart.yaml")?.1)?;
    let version = metadata["version"]
        .as_str()
        .context("a chart without a version")?;
    case(
        folder,
        Content::Chart(Chart {
            archive: tar_gz(&texts)?,
            name: name.clone(),
            version: version.to_owned(),
            values: json!({}),
        }),
    )
}

/// All files below a folder, by their path in it.
fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                found.push((name, fs::read(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}
