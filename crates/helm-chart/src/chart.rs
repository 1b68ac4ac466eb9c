//! A loaded chart.

use std::sync::Arc;

use go_text::Str;
use serde_json::{Map, Value};

use crate::metadata::{Lock, Metadata};
use crate::schema::Schema;

/// Major version of Helm to follow where Helm 3 and Helm 4 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Helm {
    /// Helm 3.22.
    V3,
    /// Helm 4.3, the line that Flux 2.9 embeds.
    #[default]
    V4,
}

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the chart's folder, slash-separated.
    pub name: String,
    /// The bytes, without a leading byte order mark; templates get them without a copy.
    pub data: Str,
}

/// One chart, with the charts that it holds.
///
/// Cloning copies a few pointers for each chart of the tree, and no contents.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Chart.yaml, and requirements.yaml of charts of the first version.
    pub metadata: Arc<Metadata>,
    /// The files, by their purpose.
    pub content: Arc<Content>,
    /// Default values: values.yaml as read, or what `helm_render::dependencies` made of it. Numbers are floats, as Go's
    /// decoder leaves them.
    pub values: Arc<Map<String, Value>>,
    /// Where templates of this chart stand: Helm's `ChartFullPath`, `parent/charts/child`. Names are those of Chart.yaml
    /// or aliases, never those of folders.
    pub path: Arc<str>,
    /// True if no other chart holds this one.
    pub is_root: bool,
    /// The charts of charts/. Those that Chart.yaml names come last and in its order once the dependencies are processed;
    /// all others are sorted by the name of their folder or archive (Helm leaves their order to chance).
    pub dependencies: Vec<Chart>,
}

/// The files of one chart, without those of its dependencies.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Everything below templates/, in the order of the folder or archive.
    pub templates: Vec<Arc<File>>,
    /// Everything without a purpose of its own: `.Files`, and crds/.
    pub files: Vec<Arc<File>>,
    /// values.yaml as it was written.
    pub values: Option<Arc<File>>,
    /// values.schema.json.
    pub schema: Option<Schema>,
    /// Chart.lock, or requirements.lock.
    pub lock: Option<Lock>,
}

/// A file of crds/ that may hold custom resource definitions.
#[derive(Clone, Debug)]
pub struct CrdFile<'a> {
    /// Path below the folder of the root chart, as Helm shows it: the chart's full path and the file's name.
    pub path: String,
    /// The file.
    pub file: &'a Arc<File>,
}

impl Chart {
    /// Returns the chart's name, which is its alias when it has one.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns whether the chart only holds definitions for others; as the engine asks, upper and lower case alike.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// Returns the CRD files of this chart, then those of its dependencies (Helm's `CRDObjects`).
    pub fn crd_files(&self) -> Vec<CrdFile<'_>> {
        let mut found = Vec::new();
        self.add_crd_files(&mut found);
        found
    }

    fn add_crd_files<'a>(&'a self, found: &mut Vec<CrdFile<'a>>) {
        let crds = self.content.files.iter().filter(|file| is_crd_file(&file.name));
        found.extend(crds.map(|file| CrdFile {
            path: format!("{}/{}", self.path, file.name),
            file,
        }));
        for dependency in &self.dependencies {
            dependency.add_crd_files(found);
        }
    }

    /// Writes the full paths of this chart and of all below it.
    pub(super) fn settle(&mut self, parent: Option<&str>) {
        self.is_root = parent.is_none();
        self.path = match parent {
            None => self.metadata.name.as_str().into(),
            Some(parent) => format!("{parent}/charts/{}", self.metadata.name).into(),
        };
        for dependency in &mut self.dependencies {
            dependency.settle(Some(&self.path));
        }
    }
}

pub(super) fn is_crd_file(name: &str) -> bool {
    let is_manifest = |extension: &str| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    };
    name.starts_with("crds/")
        && name
            .rsplit_once('.')
            .is_some_and(|(_, extension)| is_manifest(extension))
}
