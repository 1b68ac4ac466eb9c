//! Lets a caller change what was rendered before it becomes manifests: kustomize patches, for one.
//!
//! Helm 4 hands the rendered files over as one stream of documents, each with its file's name in an annotation, and sorts the
//! answer back into files by it. Documents pass a YAML library on the way, so that their formatting is that library's; unlike
//! Helm's, ours keeps no comments.

mod stream;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::manifest::{self, Files, KindOrder};
use crate::{Error, ErrorKind};
use helm_chart::Helm;

/// Changes rendered manifests.
pub trait PostRender: fmt::Debug + Send + Sync {
    /// Gets a stream of YAML documents, and returns another. An error ends the rendering with that text.
    fn run(&self, documents: &str) -> Result<String, String>;
}

/// Input of a post-renderer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostRenderStrategy {
    /// Hooks and manifests as one stream: what Helm 4 does unless told otherwise.
    #[default]
    Combined,
    /// The hooks, then the manifests.
    Separate,
    /// Only the manifests, as in Helm 3.
    NoHooks,
}

/// Runs a post-renderer on rendered files, as Helm 4 does.
pub(crate) fn run(
    files: Files,
    post_render: &dyn PostRender,
    strategy: PostRenderStrategy,
) -> Result<Files, Error> {
    if strategy == PostRenderStrategy::Combined {
        return pass(&files, post_render, &Words::COMBINED);
    }
    let sorted = manifest::sort(&files, KindOrder::Install, Helm::V4)
        .map_err(|error| Error::new(ErrorKind::Manifest, error.to_string()).with_rendered(files))?;
    let hooks = joined(sorted.hooks.iter().map(|hook| (&hook.path, &hook.content)));
    let manifests = joined(
        sorted
            .manifests
            .iter()
            .map(|manifest| (&manifest.path, &manifest.content)),
    );
    let mut files = match strategy {
        PostRenderStrategy::NoHooks => hooks,
        _ if hooks.is_empty() => hooks,
        _ => pass(&hooks, post_render, &Words::HOOKS)?,
    };
    if !manifests.is_empty() {
        for (path, content) in pass(&manifests, post_render, &Words::MANIFESTS)? {
            add(&mut files, path, &content);
        }
    }
    Ok(files)
}

/// How errors about a group of files are worded.
struct Words {
    merging: &'static str,
    running: &'static str,
    parsing: &'static str,
    /// Prefix of the names of documents that the post-renderer created.
    prefix: &'static str,
}

impl Words {
    const COMBINED: Self = Self {
        merging: "error merging manifests",
        running: "error while running post render on files",
        parsing: "error while parsing post rendered output",
        prefix: "generated-by-postrender",
    };
    const HOOKS: Self = Self {
        merging: "error merging hooks",
        running: "error while running post render on hooks",
        parsing: "error while parsing post rendered output for hooks",
        prefix: "generated-by-postrender-hooks",
    };
    const MANIFESTS: Self = Self {
        merging: "error merging manifests",
        running: "error while running post render on manifests",
        parsing: "error while parsing post rendered output for manifests",
        prefix: "generated-by-postrender-manifests",
    };
}

fn pass(files: &Files, post_render: &dyn PostRender, words: &Words) -> Result<Files, Error> {
    let failed = |doing: &'static str| {
        move |problem: String| Error::new(ErrorKind::PostRender, format!("{doing}: {problem}"))
    };
    let documents = stream::merge(files).map_err(failed(words.merging))?;
    let documents = post_render.run(&documents).map_err(failed(words.running))?;
    stream::take_apart(&documents, words.prefix).map_err(failed(words.parsing))
}

fn joined<'a>(documents: impl Iterator<Item = (&'a Arc<str>, &'a String)>) -> Files {
    let mut files = BTreeMap::new();
    for (path, content) in documents {
        add(&mut files, path.clone(), content.as_bytes());
    }
    files
}

fn add(files: &mut Files, path: Arc<str>, content: &[u8]) {
    let file = files.entry(path).or_default();
    if !file.is_empty() {
        file.extend_from_slice(b"\n---\n");
    }
    file.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Rename;

    impl PostRender for Rename {
        fn run(&self, documents: &str) -> Result<String, String> {
            Ok(documents.replace("old", "new") + "---\nkind: Made\n")
        }
    }

    fn files() -> Files {
        [
            (
                "c/templates/a.yaml",
                "kind: A\nmetadata:\n  name: old\n---\nkind: B\n",
            ),
            (
                "c/templates/h.yaml",
                "metadata:\n  name: old\n  annotations:\n    helm.sh/hook: test\n",
            ),
        ]
        .into_iter()
        .map(|(path, text)| (path.into(), text.into()))
        .collect()
    }

    fn shown(strategy: PostRenderStrategy) -> Vec<(String, String)> {
        let files = run(files(), &Rename, strategy).expect("it can be rendered");
        let shown = files.iter();
        shown
            .map(|(path, content)| (path.to_string(), String::from_utf8_lossy(content).into_owned()))
            .collect()
    }

    #[test]
    fn documents_come_back_into_their_files() {
        let shown = shown(PostRenderStrategy::Combined);
        assert_eq!(shown[0].0, "c/templates/a.yaml");
        assert_eq!(shown[0].1, "kind: A\nmetadata:\n  name: new\n---\nkind: B\n");
        assert_eq!(
            shown[2],
            (
                "generated-by-postrender-3.yaml".to_owned(),
                "kind: Made\n".to_owned()
            )
        );
    }

    #[test]
    fn hooks_may_be_left_as_they_are() {
        let shown = shown(PostRenderStrategy::NoHooks);
        assert!(shown[1].1.contains("name: old") && shown[0].1.contains("name: new"));
    }
}
