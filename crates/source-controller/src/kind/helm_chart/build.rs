//! Finding the chart, comparing it with what is stored, and making its archive.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek as _};

use api::meta::reasons;
use api::source::{ChartSourceKind, HelmChart, ReconcileStrategy};
use artifact::store::{Record, Store};
use helm_package::{Built, Options, local, remote, version};
use tokio::runtime::Handle;

use super::content::Content;
use super::dependencies::Dependencies;
use super::references::{References, Source};
use super::repository::Repository;
use crate::error::{Error, HelmChartError};
use crate::fetch::helm_chart::tree::Tree;
use crate::kind::{Build, Failure, Fetch, Fetched, Seen};
use crate::reconcile::fetch::Fetcher;

/// How much of the digest of a source's revision goes into a version: versions become labels of 63 characters.
const SHORT_REVISION: usize = 12;

type Outcome = Result<Fetch<Content>, Box<Failure>>;

/// Fetches or builds the chart, unless the version is what is stored.
pub(super) async fn fetch(
    object: &HelmChart,
    references: &References,
    unless_revision: Option<String>,
    fetcher: &Fetcher,
) -> Outcome {
    let known = known(object, unless_revision);
    match &references.source {
        Source::Tree { store, record } => {
            let options = options(object, Some(record), fetcher);
            let dependencies =
                Dependencies::new(references.reader.clone(), fetcher.clone(), Handle::current());
            let work = Local {
                store: store.clone(),
                tree: record.tree,
                path: object.spec.chart.clone(),
                options,
                dependencies,
                known,
                directory: fetcher.directory.clone(),
            };
            let built = tokio::task::spawn_blocking(move || work.run()).await;
            built.unwrap_or_else(|_| Err(Error::Abandoned.into()))
        }
        Source::Repository(repository) => {
            let options = options(object, None, fetcher);
            from_repository(object, repository, options, known, fetcher).await
        }
    }
}

/// The name and version that are stored, if they are still what the spec asks for.
type Known = Option<(String, String)>;

fn known(object: &HelmChart, unless_revision: Option<String>) -> Known {
    let status = object.status.as_ref()?;
    Some((status.observed_chart_name.clone()?, unless_revision?))
}

/// Returns the build options of the chart. Every change becomes part of the version, so that users notice it.
fn options(object: &HelmChart, source: Option<&Record>, fetcher: &Fetcher) -> Options {
    let spec = &object.spec;
    let mut options = Options {
        version_metadata: String::new(),
        values_files: spec.values_files.clone(),
        ignore_missing_values_files: spec.ignore_missing_values_files,
        limits: fetcher.charts,
    };
    let mut parts = Vec::new();
    if let Some(source) = source.filter(|_| spec.reconcile_strategy == Some(ReconcileStrategy::Revision)) {
        parts.push(short_revision(&source.revision, spec.source_ref.kind));
    }
    if !options.values_files().is_empty() {
        parts.push(object.metadata.generation.unwrap_or_default().to_string());
    }
    options.version_metadata = parts.join(".");
    options
}

fn short_revision(revision: &str, kind: ChartSourceKind) -> String {
    let digest = revision.rsplit([':', '/', '@']).next().unwrap_or(revision);
    match kind {
        ChartSourceKind::HelmRepository => revision.to_owned(),
        ChartSourceKind::GitRepository | ChartSourceKind::Bucket => {
            digest.chars().take(SHORT_REVISION).collect()
        }
    }
}

/// A build from the artifact of another source. Blocks.
struct Local {
    store: Store,
    tree: artifact::digest::Digest,
    path: String,
    options: Options,
    dependencies: Dependencies,
    known: Known,
    directory: std::path::PathBuf,
}

impl Local {
    fn run(self) -> Outcome {
        let files = Tree::new(self.store, self.tree);
        let found = local::find(&files, &self.path, &self.options)
            .map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
        let (name, version) = (found.name.clone(), found.version.clone());
        if self.known == Some((name.clone(), version.clone())) {
            return Ok(Fetch::Unchanged { revision: version });
        }
        let seen = seen(&name, &version);
        let build = || {
            let mut archive = tempfile::tempfile_in(&self.directory).map_err(Error::MakeDirectory)?;
            let output = BufWriter::new(&mut archive);
            let built = found.build(&files, &self.options, &self.dependencies, output);
            let built = built.map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
            Ok((archive, built))
        };
        match build() {
            Ok((archive, built)) => Ok(fetched(seen, archive, built, None)),
            Err(error) => Err(Box::new(Failure {
                error,
                seen: Some(seen),
            })),
        }
    }
}

/// A chart of a repository: as it is, or packaged anew.
async fn from_repository(
    object: &HelmChart,
    repository: &Repository,
    options: Options,
    known: Known,
    fetcher: &Fetcher,
) -> Outcome {
    let chart = &object.spec.chart;
    remote::check_name(chart).map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
    let range = object.spec.version.as_deref().unwrap_or_default();
    let found = repository.find(chart, range, fetcher).await?;
    let version = version::with_metadata(&found.version, &options.version_metadata)
        .map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
    if known == Some((chart.clone(), version.clone())) {
        return Ok(Fetch::Unchanged { revision: version });
    }
    let seen = seen(chart, &version);
    let archive = match found.download(fetcher).await {
        Ok(archive) => archive,
        Err(error) => {
            return Err(Box::new(Failure {
                error,
                seen: Some(seen),
            }));
        }
    };
    let origin = found.origin();
    let (name, directory) = (chart.clone(), fetcher.directory.clone());
    let packaged =
        tokio::task::spawn_blocking(move || package(archive, name, version, &options, &directory)).await;
    match packaged.unwrap_or(Err(Error::Abandoned)) {
        Ok((archive, built)) => Ok(fetched(seen, archive, built, origin)),
        Err(error) => Err(Box::new(Failure {
            error,
            seen: Some(seen),
        })),
    }
}

/// Checks the archive, and packages it anew where that is wanted. Blocks.
fn package(
    mut archive: File,
    name: String,
    version: String,
    options: &Options,
    directory: &std::path::Path,
) -> Result<(File, Built), Error> {
    if !options.change_charts() {
        remote::check(BufReader::new(&mut archive), &options.limits)
            .map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
        let built = Built {
            name,
            version,
            values_files: Vec::new(),
            packaged: false,
            resolved_dependencies: 0,
        };
        return Ok((archive, built));
    }
    let mut output = tempfile::tempfile_in(directory).map_err(Error::MakeDirectory)?;
    archive.rewind().map_err(Error::MakeDirectory)?;
    let input = BufReader::new(&mut archive);
    let built = remote::package(input, &version, options, BufWriter::new(&mut output))
        .map_err(|error| Error::Chart(HelmChartError::Build(error)))?;
    Ok((output, Built { name, ..built }))
}

fn seen(name: &str, version: &str) -> Seen {
    Seen {
        revision: version.to_owned(),
        message: format!("new '{name}' chart with version '{version}'"),
    }
}

fn fetched(
    seen: Seen,
    archive: File,
    built: Built,
    origin: Option<(oci_client::registry::Repository, artifact::digest::Digest)>,
) -> Fetch<Content> {
    let summary = summary(&built);
    // A chart may lie in a folder of its repository, which is no part of a file name.
    let base = built.name.rsplit('/').next().unwrap_or_default();
    let filename = format!("{base}-{}.tgz", built.version);
    let reason = match built.packaged {
        true => reasons::CHART_PACKAGE_SUCCEEDED,
        false => reasons::CHART_PULL_SUCCEEDED,
    };
    let build = Build {
        reason,
        summary: summary.clone(),
        name: built.name,
        values_files: built.values_files,
        resolved_dependencies: built.resolved_dependencies,
    };
    Fetch::New(Fetched {
        seen,
        filename,
        metadata: Default::default(),
        headline: Some(summary),
        content: Content {
            archive,
            build,
            origin,
        },
    })
}

/// Summarizes the build, in Flux's words.
fn summary(built: &Built) -> String {
    let action = if built.packaged { "packaged" } else { "pulled" };
    let mut text = format!("{action} '{}' chart with version '{}'", built.name, built.version);
    if !built.values_files.is_empty() {
        text += &format!(" and merged values files [{}]", built.values_files.join(" "));
    }
    text
}

impl From<Error> for Box<Failure> {
    fn from(error: Error) -> Self {
        Self::new(error.into())
    }
}
