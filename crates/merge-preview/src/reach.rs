//! Whether a Kustomization or HelmRelease is built from files that change, found out without a build.
//!
//! A build reads what is below its folder, and what files of kustomizations lead to with `..`. So all texts of these files with a `..`
//! are taken for paths: too many at worst, and an object is then compared in vain.

use std::collections::BTreeSet;

use delivery_graph::object::{list, text};
use flux_spec::build::KUSTOMIZATION_FILES;
use flux_spec::build::path::{clamp, join};
use kustomize_build::FileSystem as _;
use serde_json::Value;

use crate::files::Files;
use crate::snapshot::{below, start_of};
use crate::tree::Tree;

/// Folders outside of an object's own that are looked into. If there are more, it counts as reached.
const MAX_PLACES: usize = 1000;
/// A longer text is no path.
const MAX_PATH: usize = 1024;
/// A larger kustomization of a commit is not read. In bytes.
const MAX_KUSTOMIZATION: u64 = 1 << 20;

/// Returns whether an object may be built from files that change.
pub(crate) fn reaches(files: &Files, object: &Value) -> bool {
    match text(object, "/kind") {
        "HelmRelease" => {
            let chart = clamp(text(object, "/spec/chart/spec/chart"));
            let mut values = list(object, "/spec/chart/spec/valuesFiles")
                .iter()
                .filter_map(Value::as_str);
            // Charts that are linked to from there by file:// are outside.
            let definition = files.read(&join(&chart, "Chart.yaml")).unwrap_or_default();
            let links = String::from_utf8_lossy(&definition).contains("file:");
            links && !files.changed().is_empty()
                || files.changes_below(&chart)
                || values.any(|path| files.changes_below(&clamp(path)))
        }
        _ => {
            let folder = clamp(text(object, "/spec/path"));
            let components = list(object, "/spec/components").iter().filter_map(Value::as_str);
            let outside = components.map(|path| clamp(&join(&folder, path)));
            let places = places(files, [folder.clone()].into_iter().chain(outside).collect());
            places.is_none_or(|reach| reach.places.iter().any(|place| files.changes_below(place)))
        }
    }
}

/// Files by path.
pub(crate) trait Names {
    /// The paths of all files below a folder.
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str>;
    /// The content of a small file; empty if it cannot be read.
    fn content(&self, path: &str) -> Vec<u8>;
}

impl Names for Files {
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        Files::below(self, folder)
    }

    fn content(&self, path: &str) -> Vec<u8> {
        self.read(path).unwrap_or_default()
    }
}

impl Names for Tree {
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        let from = self.files.range(start_of(folder)..);
        below(from.map(|(path, _)| path.as_str()), folder)
    }

    fn content(&self, path: &str) -> Vec<u8> {
        let mut content = Vec::new();
        if let Some(id) = self.files.get(path) {
            _ = self.pack.read_blob(*id, MAX_KUSTOMIZATION, &mut content);
        }
        content
    }
}

/// What builds read.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Folders and files.
    pub(crate) places: BTreeSet<String>,
    /// Paths that kustomizations there name, and other texts in them that could be one.
    pub(crate) named: BTreeSet<String>,
}

/// What builds of these folders read, as far as kustomizations in them say; None if they cannot be read, or there are too many.
pub(crate) fn places(files: &impl Names, mut waiting: Vec<String>) -> Option<Reach> {
    let (mut seen, mut named) = (BTreeSet::new(), BTreeSet::new());
    while let Some(place) = waiting.pop() {
        if seen.len() >= MAX_PLACES {
            return None;
        }
        if !seen.insert(place.clone()) {
            continue;
        }
        for path in files.below(&place) {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if !KUSTOMIZATION_FILES.contains(&name) {
                continue;
            }
            for found in texts(&files.content(path), path)? {
                let at = clamp(&join(folder, &found));
                let is_within = at == place || at.starts_with(&format!("{place}/"));
                if found.contains("..") && !is_within && !seen.contains(&at) {
                    waiting.push(at.clone());
                }
                named.insert(at);
            }
        }
    }
    Some(Reach { places: seen, named })
}

/// The texts of a kustomization that may be paths; None if it cannot be read.
fn texts(content: &[u8], path: &str) -> Option<Vec<String>> {
    let text = std::str::from_utf8(content).ok()?;
    let documents = manifest::yaml::read_documents(text, path).ok()?;
    let mut found = Vec::new();
    for document in &documents {
        collect(&document.value, &mut found);
    }
    Some(found)
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        // Of `key=path`, and of a remote base, what matters is the path.
        Value::String(text) if text.len() <= MAX_PATH => {
            let path = text.rsplit_once('=').map_or(text.as_str(), |(_, path)| path);
            found.push(path.to_owned());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_kustomizations() {
        let text = "resources: [../base, \"\\x2e./other one\"]\nconfigMapGenerator:\n- files: ['key=../x.conf']\n# ../comment\n";
        let found = texts(text.as_bytes(), "kustomization.yaml").unwrap();
        assert_eq!(found.len(), 3);
        for path in ["../base", "../other one", "../x.conf"] {
            assert!(found.iter().any(|one| one == path), "{found:?}");
        }
        assert!(texts(b"a: [", "kustomization.yaml").is_none());
    }
}
