//! A chart of a source: found, compared with what there is, and then built.

use std::io::{self, Write};
use std::sync::Arc;

use helm_chart::Chart;

use crate::dependencies::{self, Fetch, Source};
use crate::error::{Error, Step, Words, during};
use crate::files::{self, Files, What, clean};
use crate::{Built, HELM, Options, archive, folder, metadata, values, version};

/// A chart that was found, and what its package would be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The chart's name.
    pub name: String,
    /// Its version, with the metadata of the options.
    pub version: String,
    path: String,
    is_folder: bool,
}

/// Finds the chart at a path, which is a folder or an archive.
///
/// # Errors
/// When there is no chart, or its version cannot have the metadata.
pub fn find(files: &dyn Files, path: &str, options: &Options) -> Result<Local, Error> {
    let refused = |text: String| Error::new(Step::Reference, Words(text));
    if path.is_empty() {
        return Err(refused("no path set for local chart reference".to_owned()));
    }
    if path.starts_with('/') {
        return Err(refused(
            "local chart reference path is expected to be relative".to_owned(),
        ));
    }
    let inside = clean(path);
    let what = files.what(&inside).map_err(during(Step::Reference))?;
    let metadata = match what {
        None => return Err(refused(format!("stat {inside}: no such file or directory"))),
        Some(What::Folder) => metadata::of_folder(files, &inside, &options.limits),
        Some(What::File(size)) => {
            check_size(&inside, size, options).map_err(during(Step::Reference))?;
            let file = files.open(&inside).map_err(during(Step::Reference))?;
            metadata::of_archive(file, &options.limits)
        }
    };
    let metadata = metadata.map_err(during(Step::Reference))?;
    Ok(Local {
        version: version::with_metadata(&metadata.version, &options.version_metadata)?,
        name: metadata.name,
        path: inside,
        is_folder: what == Some(What::Folder),
    })
}

impl Local {
    /// Returns whether the chart has to be packaged; otherwise its archive is copied.
    pub fn is_packaged(&self, options: &Options) -> bool {
        self.is_folder || options.change_charts()
    }

    /// Builds the chart.
    ///
    /// # Errors
    /// When the chart is broken, values cannot be merged, a dependency cannot be had, or the output fails.
    pub fn build(
        self,
        files: &dyn Files,
        options: &Options,
        fetch: &dyn Fetch,
        mut output: impl Write,
    ) -> Result<Built, Error> {
        if !self.is_packaged(options) {
            let mut file = files.open(&self.path).map_err(during(Step::Pull))?;
            io::copy(&mut file, &mut output).map_err(during(Step::Pull))?;
            return Ok(self.built(Vec::new(), 0, false));
        }
        let merged = match options.values_files() {
            [] => None,
            _ => Some(values::of_source(files, options)?),
        };
        let mut chart = self.load(files, options).map_err(during(Step::Package))?;
        Arc::make_mut(&mut chart.metadata)
            .version
            .clone_from(&self.version);
        let mut values_files = Vec::new();
        if let Some(merged) = merged
            && values::overwrite(&mut chart, merged.values)?
        {
            values_files = merged.files;
        }
        let mut resolved = 0;
        if self.is_folder {
            let folder = &self.path;
            resolved =
                dependencies::add_missing(&mut chart, &Source { files, folder }, fetch, &options.limits)?;
        }
        archive::write(&chart, output)?;
        Ok(self.built(values_files, resolved, true))
    }

    fn load(&self, files: &dyn Files, options: &Options) -> Result<Chart, Words> {
        if self.is_folder {
            return folder::load(files, &self.path, &options.limits);
        }
        let failed = |error: &dyn std::fmt::Display| Words(error.to_string());
        let data = files::read(files, &self.path, options.limits.archive).map_err(|error| failed(&error))?;
        helm_chart::load_archive(data.as_slice(), HELM, &mut Vec::new()).map_err(|error| failed(&error))
    }

    fn built(self, values_files: Vec<String>, resolved_dependencies: usize, packaged: bool) -> Built {
        Built {
            name: self.name,
            version: self.version,
            values_files,
            packaged,
            resolved_dependencies,
        }
    }
}

fn check_size(path: &str, size: u64, options: &Options) -> Result<(), Words> {
    let limit = options.limits.archive;
    if size <= limit {
        return Ok(());
    }
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    Err(Words(format!(
        "size of chart '{name}' exceeds '{limit}' bytes limit"
    )))
}
