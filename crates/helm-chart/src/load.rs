//! From files to a chart (loader/load.go): what each file of a folder or archive is for.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use go_text::quote::quoted;
use serde_json::Map;

use super::archive::{self, Budget};
use super::decode::{self, Draft};
use super::error::{Error, ErrorKind, go_io};
use super::folder::{absolute, read_folder, read_whole};
use super::metadata::{Lock, Metadata};
use super::paths::extension;
use super::validate::validate;
use crate::chart::{Chart, Content, File, Helm};
use crate::schema::Schema;
use crate::{Warning, values};

/// How deep charts may be nested, far from the end of a thread's stack: whatever walks a chart recurses. Helm has no bound.
const MAX_DEPTH: usize = 64;

/// Finds a chart on the disk by what was typed: its absolute path, which errors of [`load`] show.
///
/// None when there is no such path but the name may be one of a repository (Helm's `LocateChart`).
pub fn locate(name: &str) -> Result<Option<String>, Error> {
    let name = name.trim();
    if std::fs::metadata(name).is_ok() {
        return absolute(name).map(Some);
    }
    if name.starts_with(['/', '.']) {
        let text = format!("path {} not found", quoted(name));
        return Err(Error::new(ErrorKind::Read, text));
    }
    Ok(None)
}

/// Loads a chart from a folder or an archive, as `helm template` does with a path.
pub fn load(path: &str, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    let info = std::fs::metadata(path).map_err(|error| go_io("stat", path, &error))?;
    if info.is_dir() {
        load_folder(path, helm, warnings)
    } else {
        load_archive_file(path, helm, warnings)
    }
}

/// Loads a chart from a folder.
pub fn load_folder(path: &str, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    let mut loader = Loader::new(helm, warnings);
    if helm == Helm::V4 {
        let file = format!("{}/Chart.yaml", absolute(path)?);
        let text =
            read_whole(&file).map_err(|error| error.within(format!("unable to detect chart at {file}")))?;
        loader.choose_package(&text)?;
    }
    let files = read_folder(path, helm, loader.warnings)?;
    loader.root(files)
}

/// Loads a chart from an archive in a file; the file is looked at first, so that a text file is rejected by name.
pub fn load_archive_file(path: &str, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    let mut loader = Loader::new(helm, warnings);
    let files = archive::read_file(path, helm, &mut loader.budget)?;
    loader.archived_root(files)
}

/// Loads a chart from a stream that holds an archive, as Flux does.
pub fn load_archive(stream: impl Read, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    let mut loader = Loader::new(helm, warnings);
    let files = archive::read_stream(stream, helm, &mut loader.budget)?;
    loader.archived_root(files)
}

/// Unpacks an archive: the files of the chart in it, with names below the chart's folder.
pub fn unpack(stream: impl Read, helm: Helm) -> Result<Vec<File>, Error> {
    archive::read_stream(stream, helm, &mut Budget::default())
}

/// Loads a chart from files that are in memory, with names below the chart's folder.
pub fn load_files(files: Vec<File>, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    Loader::new(helm, warnings).root(files)
}

/// Reads nothing but what a chart says of itself: Chart.yaml, and requirements.yaml over it where there is one.
pub fn read_metadata(chart_yaml: &[u8], requirements: Option<&[u8]>) -> Result<Metadata, Error> {
    let mut draft = Draft::default();
    decode::read_metadata(chart_yaml, &mut draft, "v2")
        .map_err(|text| named_format_error("Chart.yaml", text))?;
    if draft.metadata.api_version.is_empty() {
        draft.metadata.api_version = "v1".to_owned();
    }
    if let Some(requirements) = requirements.filter(|text| !text.is_empty()) {
        decode::read_metadata(requirements, &mut draft, "v2")
            .map_err(|text| named_format_error("requirements.yaml", text))?;
    }
    validate(draft)
}

/// Reads what an archive says of itself, as a stream of which nothing else is kept. Chart.yaml and requirements.yaml may
/// have no more than `largest` bytes, which matters where that is less than Helm's own limit.
pub fn read_archive_metadata(stream: impl Read, helm: Helm, largest: u64) -> Result<Metadata, Error> {
    let files = archive::read_metadata_files(stream, helm, largest)?;
    let chart_yaml = files
        .chart_yaml
        .ok_or_else(|| Error::new(ErrorKind::Format, "no 'Chart.yaml' found"))?;
    read_metadata(&chart_yaml, files.requirements.as_deref())
}

/// As Flux words it, which reads these two files by itself.
fn named_format_error(file: &str, text: String) -> Error {
    Error::new(ErrorKind::Format, text).within(format!("cannot load '{file}'"))
}

struct Loader<'a> {
    helm: Helm,
    /// Go's name of the package that the structs belong to, for messages.
    package: &'static str,
    /// Budget of all archives of the chart together.
    budget: Budget,
    /// How many charts hold the one that is read.
    depth: usize,
    warnings: &'a mut Vec<Warning>,
}

impl<'a> Loader<'a> {
    fn new(helm: Helm, warnings: &'a mut Vec<Warning>) -> Self {
        let package = match helm {
            Helm::V3 => "chart",
            Helm::V4 => "v2",
        };
        Self {
            helm,
            package,
            budget: Budget::default(),
            depth: 0,
            warnings,
        }
    }

    /// Helm 4 chooses among loaders by the version of Chart.yaml before it reads anything else.
    fn choose_package(&mut self, chart_yaml: &[u8]) -> Result<(), Error> {
        let version =
            decode::read_api_version(chart_yaml).map_err(|text| format_error("Chart.yaml", text))?;
        self.package = match version.as_str() {
            "" | "v1" | "v2" => "v2",
            "v3" => "v3",
            _ => return Err(Error::new(ErrorKind::Format, "unsupported chart version")),
        };
        Ok(())
    }

    fn archived_root(mut self, files: Vec<File>) -> Result<Chart, Error> {
        if self.helm == Helm::V4 {
            let chart_yaml = files.iter().find(|file| file.name == "Chart.yaml");
            let chart_yaml = chart_yaml.ok_or_else(|| {
                Error::new(
                    ErrorKind::Format,
                    "unable to detect chart version, no Chart.yaml found",
                )
            })?;
            self.choose_package(&chart_yaml.data)?;
        }
        self.root(files)
    }

    fn root(mut self, files: Vec<File>) -> Result<Chart, Error> {
        let mut chart = self.chart(files)?;
        chart.settle(None);
        Ok(chart)
    }

    fn chart(&mut self, files: Vec<File>) -> Result<Chart, Error> {
        if self.depth == MAX_DEPTH {
            let text = format!("failed to load the chart: charts are nested deeper than {MAX_DEPTH}");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let mut parts = Parts::default();
        for file in files.iter().filter(|file| file.name == "Chart.yaml") {
            self.chart_yaml(file, &mut parts)?;
        }
        for file in files {
            self.sort_in(file, &mut parts)?;
        }
        let draft = parts
            .draft
            .ok_or_else(|| Error::new(ErrorKind::Format, "Chart.yaml file is missing"))?;
        let metadata = validate(draft)?;
        self.depth += 1;
        let dependencies = self.dependencies(parts.charts, &metadata)?;
        self.depth -= 1;
        Ok(Chart {
            path: metadata.name.as_str().into(),
            metadata: Arc::new(metadata),
            content: Arc::new(parts.content),
            values: Arc::new(parts.values),
            is_root: true,
            dependencies,
        })
    }

    fn chart_yaml(&self, file: &File, parts: &mut Parts) -> Result<(), Error> {
        let draft = parts.draft.get_or_insert_default();
        decode::read_metadata(&file.data, draft, self.package)
            .map_err(|text| format_error(&file.name, text))?;
        if draft.metadata.api_version.is_empty() {
            // Helm 2 had charts without a version.
            draft.metadata.api_version = if self.package == "v3" { "v3" } else { "v1" }.to_owned();
        }
        Ok(())
    }

    fn sort_in(&mut self, file: File, parts: &mut Parts) -> Result<(), Error> {
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => parts.content.lock = self.lock(&file)?,
            "values.yaml" => {
                parts.values =
                    values::read(&file.data, self.helm).map_err(|text| format_error(&file.name, text))?;
                parts.content.values = Some(Arc::new(file));
            }
            "values.schema.json" => parts.content.schema = Some(Schema::new(file)),
            "requirements.yaml" if self.package != "v3" => self.requirements(file, parts)?,
            "requirements.lock" if self.package != "v3" => {
                parts.content.lock = self.lock(&file)?;
                let advice = "Warning: Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.";
                self.keep_with_version_1(file, advice, parts);
            }
            name if name.starts_with("templates/") => parts.content.templates.push(Arc::new(file)),
            name if name.starts_with("charts/") && extension(name) != ".prov" => parts.add_to_chart(file),
            _ => parts.content.files.push(Arc::new(file)),
        }
        Ok(())
    }

    fn lock(&self, file: &File) -> Result<Option<Lock>, Error> {
        decode::read_lock(&file.data, self.package).map_err(|text| format_error(&file.name, text))
    }

    fn requirements(&mut self, file: File, parts: &mut Parts) -> Result<(), Error> {
        let draft = parts.draft.get_or_insert_default();
        let is_version_1 = draft.metadata.api_version == "v1";
        if !is_version_1 {
            let advice = "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.";
            self.warnings.push(Warning::new(advice));
        }
        decode::read_metadata(&file.data, draft, self.package)
            .map_err(|text| format_error(&file.name, text))?;
        if draft.metadata.api_version == "v1" {
            parts.content.files.push(Arc::new(file));
        }
        Ok(())
    }

    fn keep_with_version_1(&mut self, file: File, advice: &str, parts: &mut Parts) {
        let draft = parts.draft.get_or_insert_default();
        if draft.metadata.api_version == "v1" {
            parts.content.files.push(Arc::new(file));
        } else {
            self.warnings.push(Warning::new(advice));
        }
    }

    fn dependencies(
        &mut self,
        charts: BTreeMap<String, Vec<File>>,
        parent: &Metadata,
    ) -> Result<Vec<Chart>, Error> {
        let mut dependencies = Vec::new();
        for (name, files) in charts {
            if name.starts_with(['_', '.']) {
                continue;
            }
            let chart = if extension(&name) == ".tgz" {
                self.archived_dependency(&name, files, parent)?
            } else {
                self.chart(below_folder(files))
            };
            let chart = chart.map_err(|error| {
                error.within(format!("error unpacking subchart {name} in {}", parent.name))
            })?;
            dependencies.push(chart);
        }
        Ok(dependencies)
    }

    /// Reads a packed dependency. The outer error is one of its place, the inner one of its contents.
    fn archived_dependency(
        &mut self,
        name: &str,
        files: Vec<File>,
        parent: &Metadata,
    ) -> Result<Result<Chart, Error>, Error> {
        let Some(file) = files.into_iter().next() else {
            return Ok(self.chart(Vec::new()));
        };
        if file.name != name {
            let text = format!(
                "error unpacking subchart tar in {}: expected {name}, got {}",
                parent.name, file.name
            );
            return Err(Error::new(ErrorKind::Format, text));
        }
        let files = archive::read_dependency(&file.data, self.helm, &mut self.budget);
        drop(file);
        Ok(files.and_then(|files| self.chart(files)))
    }
}

/// The files of one chart while they are sorted.
#[derive(Default)]
struct Parts {
    draft: Option<Draft>,
    content: Content,
    values: Map<String, serde_json::Value>,
    /// Files below charts/, by the folder or archive that they belong to.
    charts: BTreeMap<String, Vec<File>>,
}

impl Parts {
    fn add_to_chart(&mut self, file: File) {
        let name = file.name["charts/".len()..].to_owned();
        let chart = name.split('/').next().unwrap_or_default().to_owned();
        self.charts.entry(chart).or_default().push(File {
            name,
            data: file.data,
        });
    }
}

/// Takes the folder off each name; a file that stands in no folder is no part of a chart.
fn below_folder(files: Vec<File>) -> Vec<File> {
    let files = files.into_iter().filter_map(|file| {
        let (_, name) = file.name.split_once('/')?;
        Some(File {
            name: name.to_owned(),
            data: file.data,
        })
    });
    files.collect()
}

fn format_error(file: &str, text: String) -> Error {
    Error::new(ErrorKind::Format, text).within(format!("cannot load {file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "{apiVersion: v2, name: top, version: 1.0.0}";

    fn load(files: &[(&str, &str)], helm: Helm) -> Result<Chart, Error> {
        let files = files.iter().map(|(name, text)| File {
            name: (*name).to_owned(),
            data: (*text).into(),
        });
        load_files(files.collect(), helm, &mut Vec::new())
    }

    #[test]
    fn files_are_sorted_by_what_they_are_for() {
        let chart = load(
            &[
                ("Chart.yaml", "{name: top, version: 1.0, appVersion: 1234e5}"),
                ("README.md", ""),
                ("charts/_ignored/a", ""),
                ("charts/sub/Chart.yaml", GOOD),
                ("charts/sub.tgz.prov", ""),
                ("crds/a.YAML", ""),
                ("crds/notes.txt", ""),
                ("requirements.yaml", "dependencies: [{name: top, version: 1}]"),
                ("templates/a.yaml", ""),
                ("values.schema.json", "{}"),
                ("values.yaml", "a: 1"),
            ],
            Helm::V4,
        )
        .expect("the chart is valid");
        let names = |files: &[Arc<File>]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&chart.content.templates), ["templates/a.yaml"]);
        let files = [
            "README.md",
            "charts/sub.tgz.prov",
            "crds/a.YAML",
            "crds/notes.txt",
            "requirements.yaml",
        ];
        assert_eq!(names(&chart.content.files), files);
        assert_eq!(
            (&*chart.metadata.version, &*chart.metadata.app_version),
            ("1", "1.234e+08")
        );
        assert_eq!(chart.metadata.api_version, "v1");
        assert_eq!(chart.metadata.dependencies.as_ref().map(Vec::len), Some(1));
        assert_eq!(&*chart.dependencies[0].path, "top/charts/top");
        assert_eq!(chart.crd_files()[0].path, "top/crds/a.YAML");
        assert_eq!(chart.crd_files().len(), 1);
    }

    #[test]
    fn broken_charts_are_refused_in_the_words_of_helm() {
        let go = "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";
        for (files, expected) in [
            (&[("a", "")][..], "Chart.yaml file is missing".to_owned()),
            (
                &[("Chart.yaml", "")],
                "validation: chart.metadata.name is required".to_owned(),
            ),
            (
                &[("Chart.yaml", "{name: a/b, version: 1}")],
                "validation: chart.metadata.name \"a/b\" is invalid".to_owned(),
            ),
            (
                &[("Chart.yaml", "{name: a, version: x}")],
                "validation: chart.metadata.version \"x\" is invalid".to_owned(),
            ),
            (
                &[("Chart.yaml", "{name: a, version: 1, maintainers: [{name: [x]}]}")],
                format!(
                    "cannot load Chart.yaml: {go} array into Go struct field Maintainer.maintainers.name of type string"
                ),
            ),
            (
                &[("Chart.yaml", "{name: a, version: 1, keywords: x}")],
                format!(
                    "cannot load Chart.yaml: {go} string into Go struct field Metadata.keywords of type []string"
                ),
            ),
            (
                &[("Chart.yaml", GOOD), ("Chart.lock", "generated: 2020-01-01T25:00:00Z")],
                "cannot load Chart.lock: error unmarshaling JSON: while decoding JSON: parsing time \"2020-01-01T25:00:00Z\": hour out of range".to_owned(),
            ),
            (
                &[("Chart.yaml", GOOD), ("charts/README.md", "")],
                "error unpacking subchart README.md in top: Chart.yaml file is missing".to_owned(),
            ),
            (
                &[("Chart.yaml", GOOD), ("charts/x.tgz", "no archive")],
                "error unpacking subchart x.tgz in top: gzip: invalid header".to_owned(),
            ),
            (
                &[("Chart.yaml", GOOD), ("charts/x.tgz/a", "")],
                "error unpacking subchart tar in top: expected x.tgz, got x.tgz/a".to_owned(),
            ),
            (
                &[(
                    "Chart.yaml",
                    "{name: a, version: 1, dependencies: [{name: x}, {name: y, alias: x}]}",
                )],
                "validation: more than one dependency with name or alias \"x\"".to_owned(),
            ),
        ] {
            let error = load(files, Helm::V4).expect_err("the chart is broken");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn charts_are_not_nested_endlessly() {
        let names: Vec<String> = (0..MAX_DEPTH + 5)
            .map(|depth| format!("{}Chart.yaml", "charts/x/".repeat(depth)))
            .collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), GOOD)).collect();
        let error = load(&files, Helm::V4).expect_err("too deep");
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
