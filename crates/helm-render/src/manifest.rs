//! From rendered files to what is installed: manifests in the order of their kinds, and hooks.
//!
//! The last stage of a rendering. Texts of files in, [`Sorted`] out. Nothing here talks to a cluster or runs a hook; what a
//! manifest says beyond its head (kind, name, annotations) is not looked at.

mod head;
mod hook;
mod kind_order;
mod split;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use hook::{Hook, HookEvent};
pub use kind_order::KindOrder;
pub use split::split;

use head::Head;
use helm_chart::{Helm, Warning};

/// One object of a release, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The template that it came from: `chart/templates/file.yaml`.
    pub path: Arc<str>,
    /// The document, as rendered.
    pub content: String,
    /// Its `apiVersion`, if it has one.
    pub api_version: String,
    /// Its `kind`, if it has one.
    pub kind: String,
    /// Its `metadata.name`, if it has one.
    pub name: String,
}

/// Contents of rendered files.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// Objects that are no hooks, in install order.
    pub manifests: Vec<Manifest>,
    /// The hooks, sorted by kind; who runs them sorts them by weight.
    pub hooks: Vec<Hook>,
    /// Warnings that Helm logs: hooks of unknown events, which are left out.
    pub warnings: Vec<Warning>,
    /// Number of YAML values in all documents, with aliases expanded.
    pub values: usize,
}

/// A document that is no YAML, or whose head is none of an object; displayed in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("YAML parse error on {path}: {problem}")]
pub struct ReadError {
    /// The file that the document stands in.
    pub path: Arc<str>,
    /// The problem.
    pub problem: String,
}

/// Rendered files by their paths, as the engine leaves them.
pub type Files = BTreeMap<Arc<str>, Vec<u8>>;

/// Splits files into documents and sorts these by `order`: Helm's `SortManifests`.
///
/// Partials (`_helpers.tpl`) and blank files are left out.
pub fn sort(files: &Files, order: KindOrder, helm: Helm) -> Result<Sorted, ReadError> {
    sort_within(files, order, helm, usize::MAX)
}

/// Like [`sort`], and fails if the documents have more than `values` YAML values in total.
pub(crate) fn sort_within(
    files: &Files,
    order: KindOrder,
    helm: Helm,
    values: usize,
) -> Result<Sorted, ReadError> {
    let mut sorted = Sorted::default();
    for (path, content) in files {
        if base(path).starts_with('_') {
            continue;
        }
        for document in split(content, helm) {
            let left = values.saturating_sub(sorted.values);
            add(&mut sorted, path, document, helm, left)?;
        }
    }
    sorted.manifests.sort_by(|a, b| order.compare(&a.kind, &b.kind));
    sorted.hooks.sort_by(|a, b| order.compare(&a.kind, &b.kind));
    Ok(sorted)
}

fn add(
    sorted: &mut Sorted,
    path: &Arc<str>,
    document: &[u8],
    helm: Helm,
    values: usize,
) -> Result<(), ReadError> {
    let head = Head::read(document, helm, values).map_err(|problem| ReadError {
        path: path.clone(),
        problem,
    })?;
    sorted.values += head.values;
    let content = String::from_utf8_lossy(document).into_owned();
    if !head.annotations.contains_key(hook::EVENTS) {
        sorted.manifests.push(Manifest {
            path: path.clone(),
            content,
            api_version: head.api_version,
            kind: head.kind,
            name: head.name,
        });
        return Ok(());
    }
    match Hook::new(head, path, content) {
        Ok(hook) => sorted.hooks.push(hook),
        Err(events) => sorted.warnings.push(hook::unknown(&events, helm)),
    }
    Ok(())
}

/// Returns the last element of a path.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(files: &[(&str, &str)]) -> Sorted {
        let files = files
            .iter()
            .map(|(path, text)| (Arc::from(*path), text.as_bytes().to_vec()))
            .collect();
        sort(&files, KindOrder::Install, Helm::V4).expect("the files are manifests")
    }

    #[test]
    fn manifests_stand_in_the_order_of_their_kinds_then_of_their_paths() {
        let found = sorted(&[
            (
                "c/templates/b.yaml",
                "kind: Service\n---\nkind: Zebra\n---\nkind: Ape",
            ),
            (
                "c/templates/a.yaml",
                "kind: Deployment\n---\nkind: Service\nmetadata: {name: a}",
            ),
            ("c/templates/_x.tpl", "nonsense: ["),
            ("c/templates/blank.yaml", " \n\n"),
        ]);
        let shown: Vec<_> = found
            .manifests
            .iter()
            .map(|manifest| format!("{} {} {}", manifest.path, manifest.kind, manifest.name))
            .collect();
        assert_eq!(
            shown,
            [
                "c/templates/a.yaml Service a",
                "c/templates/b.yaml Service ",
                "c/templates/a.yaml Deployment ",
                "c/templates/b.yaml Ape ",
                "c/templates/b.yaml Zebra ",
            ]
        );
    }

    #[test]
    fn hooks_are_taken_out_and_unknown_ones_are_told() {
        let found = sorted(&[(
            "a",
            "metadata: {annotations: {helm.sh/hook: 'pre-install, TEST-success', helm.sh/hook-weight: -5}}\n\
             ---\nmetadata: {annotations: {helm.sh/hook: 'pre-install,crd-install'}}\n",
        )]);
        assert!(found.manifests.is_empty());
        assert_eq!(found.hooks[0].events, [HookEvent::PreInstall, HookEvent::Test]);
        assert_eq!((found.hooks.len(), found.hooks[0].weight), (1, -5));
        assert_eq!(found.warnings.len(), 1);
    }
}
