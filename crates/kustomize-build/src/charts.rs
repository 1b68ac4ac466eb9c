//! Helm charts of a kustomization (`helmCharts`, `HelmChartInflationGenerator`): what kustomize has the `helm` program do.
//!
//! This crate renders no charts and starts no program. It finds the chart in the tree, or asks for it, merges the values as
//! kustomize does, and has [`Charts`] render what comes of it.

use manifest::yaml::{self, Dialect};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{FetchError, without_credentials};
use crate::fs::{FileKind, FileSystem, FsError};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::patch;
use crate::resource::{self, Resource};

/// Renders Helm charts for a build, and pulls those that are not in its tree.
pub trait Charts {
    /// Pulls a chart. The tree that comes back has the chart's files in a folder of the chart's name.
    fn pull(&self, chart: &ChartReference) -> Result<Box<dyn FileSystem>, FetchError>;

    /// Renders a chart: prints what `helm template` prints. An error is in Helm's words.
    fn template(&self, release: &ChartRelease) -> Result<String, String>;
}

/// A chart of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartReference {
    /// Address of the repository: `https://…` or `oci://…`.
    pub repository: String,
    /// Name of the chart.
    pub name: String,
    /// Version, or range of versions; empty for the newest.
    pub version: String,
    /// Pre-releases count too where no version is named.
    pub with_prereleases: bool,
}

/// Files with their paths.
pub type Files = Vec<(String, Vec<u8>)>;

/// A chart to render, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartRelease {
    /// Files of the chart, by paths below its folder.
    pub files: Files,
    /// Name of the release; empty if it was not given one.
    pub name: String,
    /// Template of the name.
    pub name_template: String,
    /// Namespace; empty for Helm's default.
    pub namespace: String,
    /// Values files; the later ones count more.
    pub values: Vec<Vec<u8>>,
    /// `.Capabilities.APIVersions` besides those that Helm knows.
    pub api_versions: Vec<String>,
    /// `.Capabilities.KubeVersion`; empty for Helm's.
    pub kube_version: String,
    /// The files of crds/ are part of the output.
    pub with_crds: bool,
    /// Hooks are not part of the output.
    pub skip_hooks: bool,
    /// Tests are not part of the output.
    pub skip_tests: bool,
}

/// What the command line says of all charts; it counts more than what a chart says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartSettings {
    /// `.Capabilities.APIVersions` besides those that Helm knows.
    pub api_versions: Vec<String>,
    /// `.Capabilities.KubeVersion`.
    pub kube_version: String,
}

/// Where charts are, if the kustomization does not say.
const CHART_HOME: &str = "charts";

/// How `valuesInline` goes with the values file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuesMerge {
    /// The file fills what is not set inline.
    Merge,
    /// What is set inline counts more.
    Override,
    /// The file does not count.
    Replace,
}

/// Where the chart's own values are.
enum OwnValues<'a> {
    None,
    Pulled(&'a [u8]),
    /// They are read again, as a file that a kustomization names and may not be allowed to.
    InTree(String),
}

/// A configured chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    fields: Map<String, Value>,
    merge: ValuesMerge,
}

impl Chart {
    /// Reads a configuration: the fields of a chart, with those that all charts share.
    pub(crate) fn read(loader: &Loader<'_>, fields: Map<String, Value>) -> Result<Self> {
        if loader.charts().is_none() {
            return Err(Error::unsupported("must specify --enable-helm"));
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            return Err(Error::invalid("chart name cannot be empty"));
        }
        for (field, what) in [("releaseName", "releaseName"), ("name", "chart name")] {
            let value = text(field);
            if value.starts_with('-') {
                return Err(Error::invalid(format!(
                    "{what} must not start with '-', got {value:?}"
                )));
            }
        }
        for file in texts(&fields, "additionalValuesFiles") {
            loader
                .load(&file)
                .map_err(|error| error.context("could not load additionalValuesFile"))?;
        }
        let merge = match text("valuesMerge") {
            "" | "override" => ValuesMerge::Override,
            "merge" => ValuesMerge::Merge,
            "replace" => ValuesMerge::Replace,
            _ => {
                return Err(Error::invalid(
                    "valuesMerge must be one of [merge override replace]",
                ));
            }
        };
        Ok(Self { fields, merge })
    }

    fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_set(&self, name: &str) -> bool {
        self.fields.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the folder in which the chart's own folder is.
    fn home(&self) -> String {
        let home = match self.text("chartHome") {
            "" => CHART_HOME,
            home => home,
        };
        match (self.text("version"), self.text("repo")) {
            ("", _) | (_, "") => home.to_owned(),
            (version, _) => format!("{home}/{}-{version}", self.text("name")),
        }
    }

    /// Renders the chart, and reads what comes out.
    pub(crate) fn generate(&self, nodes: &mut Nodes, loader: &Loader<'_>) -> Result<Vec<Resource>> {
        let Some(charts) = loader.charts() else {
            return Err(Error::unsupported("must specify --enable-helm"));
        };
        let name = self.text("name");
        let folder = format!("{}/{name}", self.home());
        let (files, pulled) = match loader.chart_files(&folder)? {
            Some(files) => (files, false),
            None => (self.pull(loader, charts, &folder)?, true),
        };
        let own = files.iter().find(|(path, _)| path == "values.yaml");
        let own = match own {
            // kustomize fails where a chart has no values, which Helm does not ask for.
            None => OwnValues::None,
            Some((_, content)) if pulled => OwnValues::Pulled(content),
            Some(_) => OwnValues::InTree(format!("{folder}/values.yaml")),
        };
        let mut values = vec![self.values(nodes, loader, &own)?];
        for file in texts(&self.fields, "additionalValuesFiles") {
            values.push(loader.load(&file)?);
        }
        let settings = loader.chart_settings();
        let release = ChartRelease {
            files,
            name: self.text("releaseName").to_owned(),
            name_template: self.text("nameTemplate").to_owned(),
            namespace: self.text("namespace").to_owned(),
            values,
            api_versions: match settings.api_versions.as_slice() {
                [] => texts(&self.fields, "apiVersions"),
                given => given.to_vec(),
            },
            kube_version: match settings.kube_version.as_str() {
                "" => self.text("kubeVersion").to_owned(),
                given => given.to_owned(),
            },
            with_crds: self.is_set("includeCRDs"),
            skip_hooks: self.is_set("skipHooks"),
            skip_tests: self.is_set("skipTests"),
        };
        let rendered = charts.template(&release).map_err(|problem| {
            Error::invalid(format!("failed to render the Helm chart {name:?}: {problem}"))
        })?;
        let mut resources = resource::parse_resources(nodes, &rendered, "")
            .map_err(|error| error.context(format!("reading what the Helm chart {name:?} renders")))?;
        for resource in &mut resources {
            resource.history.is_from_chart = true;
        }
        Ok(resources)
    }

    fn pull(&self, loader: &Loader<'_>, charts: &dyn Charts, folder: &str) -> Result<Files> {
        let reference = ChartReference {
            repository: self.text("repo").to_owned(),
            name: self.text("name").to_owned(),
            version: self.text("version").to_owned(),
            with_prereleases: self.is_set("devel"),
        };
        if reference.repository.is_empty() {
            let message = format!(
                "no repo specified for pull, no chart found at '{}'",
                loader.shown_place(folder)
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let failed = |why: &str| {
            let ChartReference { repository, name, .. } = &reference;
            let from = without_credentials(repository);
            format!("failed to pull the Helm chart {name:?} from {from}: {why}")
        };
        loader.note_chart(&reference.repository);
        let tree = charts.pull(&reference).map_err(|error| match error {
            FetchError::Refused(why) => Error::unsupported(why),
            FetchError::Failed(why) => Error::new(ErrorKind::Fetch, failed(&why)),
            FetchError::Status { code, reason } => {
                Error::new(ErrorKind::Fetch, failed(&format!("{code} {reason}")))
            }
        })?;
        files_below(&*tree, &reference.name)
            .map_err(|error| Error::new(ErrorKind::Fetch, failed(&error.to_string())))?
            .ok_or_else(|| Error::new(ErrorKind::Fetch, failed("the archive has no such chart")))
    }

    /// Returns the values that are set by the values file and inline.
    fn values(&self, nodes: &mut Nodes, loader: &Loader<'_>, own: &OwnValues<'_>) -> Result<Vec<u8>> {
        let inline = match self.fields.get("valuesInline") {
            Some(Value::Object(inline)) if !inline.is_empty() => Some(inline),
            _ => None,
        };
        let file = || match (self.text("valuesFile"), own) {
            ("", OwnValues::None) => Ok(Vec::new()),
            ("", OwnValues::Pulled(content)) => Ok(content.to_vec()),
            ("", OwnValues::InTree(path)) => loader.load(path),
            (file, _) => loader.load(file),
        };
        let Some(inline) = inline else {
            return file();
        };
        let written = yaml::write(&Value::Object(inline.clone()))
            .map_err(|error| Error::invalid(format!("could not write valuesInline: {error}")))?;
        if self.merge == ValuesMerge::Replace {
            return Ok(written.into_bytes());
        }
        let file = file()?;
        let mut read = |text: &str, what: &str| {
            yaml::compose_first(text, nodes, Dialect::Kyaml)
                .map_err(|problem| Error::invalid(format!("could not parse {what} into rnode: {problem}")))
        };
        let of_file = read(&String::from_utf8_lossy(&file), "values file")?;
        let of_inline = read(&written, "inline values")?;
        let (Some(of_file), Some(of_inline)) = (of_file, of_inline) else {
            return Ok(written.into_bytes());
        };
        let (over, below) = match self.merge {
            ValuesMerge::Override => (of_inline, of_file),
            _ => (of_file, of_inline),
        };
        if !patch::merge(nodes, below, over)? {
            return Ok(b"{}\n".to_vec());
        }
        let merged = yaml::json::decode_kyaml(nodes, below)
            .map_err(|problem| Error::invalid(format!("could not read the merged values: {problem}")))?;
        let text = yaml::write(&merged)
            .map_err(|error| Error::invalid(format!("could not write the merged values: {error}")))?;
        Ok(text.into_bytes())
    }
}

fn texts(fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let texts = fields.get(name).and_then(Value::as_array);
    let texts = texts.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// How much a chart's folder may hold; Helm has no limit for folders.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: usize = 100 << 20;

/// Reads all files below a folder, by their paths below it; None if there is no such folder.
pub(crate) fn files_below(
    tree: &dyn FileSystem,
    folder: &str,
) -> std::result::Result<Option<Files>, FsError> {
    if tree
        .locate(folder)?
        .is_none_or(|(_, kind)| kind != FileKind::Directory)
    {
        return Ok(None);
    }
    let (mut files, mut open, mut bytes) = (Vec::new(), vec![String::new()], 0);
    while let Some(below) = open.pop() {
        let at = |path: &str| match path {
            "" => folder.to_owned(),
            path => format!("{folder}/{path}"),
        };
        let Some((found, FileKind::Directory)) = tree.locate(&at(&below))? else {
            continue;
        };
        for entry in tree.list(&found)? {
            let path = match below.as_str() {
                "" => entry.name,
                below => format!("{below}/{}", entry.name),
            };
            match tree.locate(&at(&path))? {
                Some((_, FileKind::Directory)) => open.push(path),
                Some((found, FileKind::File)) => {
                    let content = tree.read(&found)?;
                    bytes += content.len();
                    files.push((path, content));
                }
                None => {}
            }
            if files.len() + open.len() > MAX_FILES || bytes > MAX_BYTES {
                return Err(FsError::Io(format!(
                    "it has more than {MAX_FILES} files or {MAX_BYTES} bytes"
                )));
            }
        }
    }
    // As Helm walks a folder.
    files.sort_by(|(one, _), (other, _)| one.split('/').cmp(other.split('/')));
    Ok(Some(files))
}
