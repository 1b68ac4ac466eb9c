//! Charts that a chart names and does not hold: found in the source, or fetched, and added to it.
//!
//! Chart.lock is respected where there is one. What charts/ holds stays as it is. Only the chart itself is treated, not
//! what is added to it, as in Helm and Flux.

use std::collections::HashSet;
use std::error::Error as StdError;

use go_semver::{Constraints, Version};
use helm_chart::{Chart, Dependency, MAX_CHART_SIZE};

use crate::error::{Error, Step, Words};
use crate::files::{self, Files, What, within};
use crate::{HELM, Limits, folder};

/// A chart of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The version that was chosen.
    pub version: String,
    /// The packaged chart.
    pub archive: Vec<u8>,
}

/// Gets charts from repositories.
pub trait Fetch {
    /// The newest version of a chart in a range. The repository is `https://…`, `http://…`, `oci://…`, or the name of one
    /// as `@name`.
    ///
    /// # Errors
    /// When there is no such chart, or it cannot be had.
    fn fetch(
        &self,
        repository: &str,
        name: &str,
        version: &str,
    ) -> Result<Fetched, Box<dyn StdError + Send + Sync>>;
}

/// Adds what is missing to the chart of a folder, and returns how many charts that were.
///
/// # Errors
/// When one of them cannot be had, or is not of the wanted version.
pub(crate) fn add_missing(
    chart: &mut Chart,
    source: &Source<'_>,
    fetch: &dyn Fetch,
    limits: &Limits,
) -> Result<usize, Error> {
    let missing = missing(chart);
    if missing.len() > limits.dependencies {
        let text = format!("more than {} dependencies are missing", limits.dependencies);
        return Err(Error::new(Step::Dependencies, Words(text)));
    }
    let mut added = HashSet::new();
    for dependency in &missing {
        let (place, found) = if is_local(dependency) {
            ("local", source.local(dependency, limits))
        } else {
            ("remote", remote(dependency, fetch, limits))
        };
        let failed = |error: String| {
            let text = format!(
                "failed to add {place} dependency '{}': {error}",
                shown_name(dependency)
            );
            Error::new(Step::Dependencies, Words(text))
        };
        add(chart, found.map_err(failed)?, dependency, &mut added);
        if size(chart) > MAX_CHART_SIZE {
            return Err(failed(format!(
                "chart exceeds maximum decompressed size of {MAX_CHART_SIZE} bytes"
            )));
        }
    }
    Ok(missing.len())
}

/// The source of the chart, and the chart's folder in it.
pub(crate) struct Source<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) folder: &'a str,
}

/// Returns the dependencies that are missing. Helm finds a chart by its name, whatever alias it gets later;
/// the version decides between charts of one name.
fn missing(chart: &Chart) -> Vec<Dependency> {
    let locked = chart.content.lock.as_ref().map(|lock| &lock.dependencies);
    let named = locked.or(chart.metadata.dependencies.as_ref());
    let named = named.map(Vec::as_slice).unwrap_or_default();
    let is_there = |wanted: &Dependency| {
        let is_alone = named.iter().filter(|other| other.name == wanted.name).count() == 1;
        chart.dependencies.iter().any(|held| {
            let has_alias = !wanted.alias.is_empty() && held.name() == wanted.alias;
            let has_name = held.name() == wanted.name;
            has_alias || has_name && (is_alone || fits(&wanted.version, &held.metadata.version))
        })
    };
    named.iter().filter(|wanted| !is_there(wanted)).cloned().collect()
}

fn fits(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}

/// Adds a chart under its own name, from which Helm makes its aliases. Two versions of one chart cannot stand under one
/// name in charts/; the second one gets its alias at once.
fn add(chart: &mut Chart, mut found: Chart, wanted: &Dependency, added: &mut HashSet<(String, String)>) {
    let key = (found.metadata.name.clone(), found.metadata.version.clone());
    if !added.insert(key) {
        return; // the same chart under another alias
    }
    let is_taken = chart.dependencies.iter().any(|held| held.name() == found.name());
    if is_taken && !wanted.alias.is_empty() {
        std::sync::Arc::make_mut(&mut found.metadata)
            .name
            .clone_from(&wanted.alias);
    }
    chart.dependencies.push(found);
}

impl Source<'_> {
    /// A chart of the same source.
    fn local(&self, dependency: &Dependency, limits: &Limits) -> Result<Chart, String> {
        let path = self.local_path(dependency);
        let reference = &dependency.repository;
        let what = self.files.what(&path).map_err(|error| error.to_string())?;
        let range = range(dependency)?;
        let failed =
            |error: String| format!("failed to load chart from '/{path}' (reference '{reference}'): {error}");
        let chart = match what {
            None => return Err(format!("no chart found at '/{path}' (reference '{reference}')")),
            Some(What::Folder) => {
                folder::load(self.files, &path, limits).map_err(|error| failed(error.to_string()))?
            }
            Some(What::File(_)) => {
                let data = files::read(self.files, &path, limits.archive);
                let data = data.map_err(|error| failed(error.to_string()))?;
                load(&data).map_err(failed)?
            }
        };
        check_version(&chart, &range, &dependency.version)?;
        Ok(chart)
    }

    /// Never outside of the source, whatever the reference says.
    fn local_path(&self, dependency: &Dependency) -> String {
        let reference = match dependency.repository.strip_prefix("file://") {
            Some(path) => path.split(['?', '#']).next().unwrap_or_default().to_owned(),
            None => format!("charts/{}", dependency.name),
        };
        within(self.folder, &reference)
    }
}

/// A chart of a repository.
fn remote(dependency: &Dependency, fetch: &dyn Fetch, limits: &Limits) -> Result<Chart, String> {
    let repository = repository(&dependency.repository)?;
    let Fetched { version, archive } = fetch
        .fetch(&repository, &dependency.name, &dependency.version)
        .map_err(|error| error_chain::chain(&*error))?;
    if archive.len() as u64 > limits.archive {
        return Err(format!(
            "size of chart '{}-{version}' exceeds '{}' bytes limit",
            dependency.name, limits.archive
        ));
    }
    let chart = load(&archive)
        .map_err(|error| format!("failed to load downloaded archive of version '{version}': {error}"))?;
    check_version(&chart, &range(dependency)?, &dependency.version)?;
    Ok(chart)
}

/// An address, or the name of a repository with `@` before it.
fn repository(text: &str) -> Result<String, String> {
    let is_address = ["https://", "http://", "oci://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    if is_address {
        return Ok(text.to_owned());
    }
    let name = text.strip_prefix('@').or_else(|| text.strip_prefix("alias:"));
    match name {
        Some(name) if !name.is_empty() => Ok(format!("@{name}")),
        _ => Err(format!("invalid dependency repository URL: {text}")),
    }
}

fn range(dependency: &Dependency) -> Result<Constraints, String> {
    let range = &dependency.version;
    Constraints::parse(range).map_err(|error| format!("invalid version/constraint format '{range}': {error}"))
}

fn check_version(chart: &Chart, range: &Constraints, wanted: &str) -> Result<(), String> {
    let version = Version::parse(&chart.metadata.version).map_err(|error| error.to_string())?;
    match range.check(&version) {
        true => Ok(()),
        false => Err(format!("can't get a valid version for constraint '{wanted}'")),
    }
}

fn load(archive: &[u8]) -> Result<Chart, String> {
    helm_chart::load_archive(archive, HELM, &mut Vec::new()).map_err(|error| error.to_string())
}

fn is_local(dependency: &Dependency) -> bool {
    dependency.repository.is_empty() || dependency.repository.starts_with("file://")
}

fn shown_name(dependency: &Dependency) -> &str {
    match dependency.alias.as_str() {
        "" => &dependency.name,
        alias => alias,
    }
}

/// Bytes of all files.
fn size(chart: &Chart) -> u64 {
    let content = &chart.content;
    let files = content
        .templates
        .iter()
        .chain(&content.files)
        .chain(&content.values);
    let own: u64 = files.map(|file| file.data.len() as u64).sum();
    let schema = content
        .schema
        .as_ref()
        .map_or(0, |schema| schema.file().data.len() as u64);
    own + schema + chart.dependencies.iter().map(size).sum::<u64>()
}
