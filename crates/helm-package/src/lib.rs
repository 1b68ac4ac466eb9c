//! Charts put together and packaged, as Flux and `helm package` do it.
//!
//! Between a source and its artifact: a folder or archive of a source ([`local`]) or an archive of a repository ([`remote`])
//! goes in; the archive that is installed comes out, written to whatever the caller gives. On the way the version gets its
//! metadata ([`version`]), values files become the chart's defaults ([`values`]), and charts that Chart.yaml names and charts/
//! lacks are added ([`dependencies`]). The same input gives the same bytes for ever ([`archive`]).
//!
//! Nothing here opens a connection or knows a cluster: files come through [`Files`], charts of repositories through
//! [`dependencies::Fetch`]. Both are hostile, and everything that is read is bounded by [`Limits`]. How a chart is read is
//! helm-render's.

pub mod archive;
mod chart_yaml;
pub mod dependencies;
mod error;
mod files;
mod folder;
pub mod local;
mod metadata;
pub mod remote;
pub mod values;
pub mod version;

pub use error::{Error, Step};
pub use files::{Entry, Files, What, within};

/// How much of a chart is read. Exceeding a limit is an error, never a truncated chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a packaged chart; Flux's `--helm-chart-max-size`.
    pub archive: u64,
    /// Bytes of one file of a chart's folder; Flux's `--helm-chart-file-max-size`.
    pub file: u64,
    /// Files of a chart's folder.
    pub files: usize,
    /// Charts that are added to one chart.
    pub dependencies: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive: 10 << 20,
            file: 5 << 20,
            files: 20_000,
            dependencies: 200,
        }
    }
}

/// Options of building a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Metadata of the version (`+…`), which is set anew; empty to leave it alone.
    pub version_metadata: String,
    /// Files with values, in the order in which they are laid over each other; none to leave the defaults alone.
    pub values_files: Vec<String>,
    /// True if it is fine if some of them are not there.
    pub ignore_missing_values_files: bool,
    /// How much is read.
    pub limits: Limits,
}

impl Options {
    /// The files with values, unless it is just values.yaml.
    pub fn values_files(&self) -> &[String] {
        match self.values_files.as_slice() {
            [only] if files::clean(only) == VALUES => &[],
            files => files,
        }
    }

    /// Returns whether even a chart that is packaged already has to be packaged anew.
    pub fn change_charts(&self) -> bool {
        !self.version_metadata.is_empty() || !self.values_files().is_empty()
    }
}

/// Built chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The chart's name.
    pub name: String,
    /// Its version, with metadata.
    pub version: String,
    /// The files with values that became its defaults.
    pub values_files: Vec<String>,
    /// True if it was packaged, rather than copied.
    pub packaged: bool,
    /// How many charts were added to it.
    pub resolved_dependencies: usize,
}

/// Version of Helm whose charts these are: the line that Flux embeds.
const HELM: helm_chart::Helm = helm_chart::Helm::V4;
const VALUES: &str = "values.yaml";

/// How many bytes the files of one chart may have: Helm's 100 MiB.
pub const MAX_UNPACKED: u64 = helm_chart::MAX_CHART_SIZE;
