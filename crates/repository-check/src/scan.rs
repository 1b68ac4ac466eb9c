//! The manifests and kustomizations of a tree.

use std::collections::{BTreeMap, BTreeSet};

use flux_spec::build::path::{join, normalise};
use flux_spec::build::{KUSTOMIZATION_FILES, is_manifest};
use kustomize_build::{FileKind, FileSystem};
use manifest::yaml::read_documents;
use manifest::{Object, Origin};
use serde_json::Value;

use crate::report::{Level, Report};

/// Levels of folders that are looked into.
const MAX_DEPTH: usize = 30;
/// Larger files are no manifests. In bytes.
const MAX_FILE: usize = 4 << 20;

/// What is in a tree.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Manifests that are in files, by file.
    pub(crate) manifests: BTreeMap<String, Vec<Object>>,
    /// Folders with a kustomization that can be built by itself.
    pub(crate) kustomizations: BTreeSet<String>,
    /// Folders that other kustomizations use.
    pub(crate) used: BTreeSet<String>,
}

pub(crate) fn scan(tree: &dyn FileSystem, report: &mut Report) -> Scanned {
    let mut scanned = Scanned::default();
    folder(tree, "", 0, &mut scanned, report);
    scanned
}

fn folder(tree: &dyn FileSystem, path: &str, depth: usize, scanned: &mut Scanned, report: &mut Report) {
    let entries = tree.list(path).unwrap_or_default();
    let is_chart = entries.iter().any(|entry| entry.name == "Chart.yaml");
    for entry in entries {
        let at = join(path, &entry.name);
        match entry.kind {
            // Templates are no manifests, and charts in charts are no business of a repository.
            FileKind::Directory if is_chart || entry.name == ".git" || depth == MAX_DEPTH => {}
            FileKind::Directory => folder(tree, &at, depth + 1, scanned, report),
            FileKind::File if KUSTOMIZATION_FILES.contains(&entry.name.as_str()) => {
                kustomization(tree, path, &at, scanned, report);
            }
            FileKind::File if is_manifest(&entry.name) && !entry.name.starts_with('.') && !is_chart => {
                manifests(tree, &at, scanned, report);
            }
            FileKind::File => {}
        }
    }
}

fn documents(tree: &dyn FileSystem, path: &str, report: &mut Report) -> Option<Vec<(Value, u32)>> {
    let content = tree.read(path).ok().filter(|content| content.len() <= MAX_FILE)?;
    let text = String::from_utf8(content).ok()?;
    match read_documents(&text, path) {
        Ok(documents) => Some(documents.into_iter().map(|one| (one.value, one.line)).collect()),
        Err(error) => {
            report
                .add("yaml", Level::Warning, error_chain::chain(&error))
                .at(path, None);
            None
        }
    }
}

fn manifests(tree: &dyn FileSystem, path: &str, scanned: &mut Scanned, report: &mut Report) {
    for (value, line) in documents(tree, path, report).unwrap_or_default() {
        let is_object = value.get("kind").is_some() && value.get("apiVersion").is_some();
        if let (Value::Object(map), true) = (value, is_object) {
            let origin = Origin {
                file: path.into(),
                line,
            };
            let object = Object::new(map, Some(origin));
            scanned.manifests.entry(path.to_owned()).or_default().push(object);
        }
    }
}

fn kustomization(
    tree: &dyn FileSystem,
    folder: &str,
    path: &str,
    scanned: &mut Scanned,
    report: &mut Report,
) {
    let Some(documents) = documents(tree, path, report) else {
        return;
    };
    for (value, _) in documents {
        if value.get("kind").and_then(Value::as_str) != Some("Component") {
            scanned.kustomizations.insert(folder.to_owned());
        }
        for field in ["resources", "bases", "components"] {
            let names = value.get(field).and_then(Value::as_array).into_iter().flatten();
            for name in names.filter_map(Value::as_str) {
                let joined = join(folder, name);
                if let Some(used) = normalise(&joined) {
                    scanned.used.insert(used);
                }
            }
        }
    }
}
