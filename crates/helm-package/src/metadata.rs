//! Metadata of a chart, read before anything else to know whether there is work to do.

use std::io::Read;

use helm_chart::Metadata;

use crate::error::Words;
use crate::files::{self, Files, What};
use crate::{HELM, Limits};

/// Chart.yaml of a folder, with requirements.yaml over it.
pub(crate) fn of_folder(files: &dyn Files, folder: &str, limits: &Limits) -> Result<Metadata, Words> {
    let chart_yaml = file(files, folder, "Chart.yaml", limits)?;
    let path = files::within(folder, "Chart.yaml");
    let chart_yaml = chart_yaml.ok_or_else(|| Words(format!("open {path}: no such file or directory")))?;
    let requirements = file(files, folder, "requirements.yaml", limits)?;
    helm_chart::read_metadata(&chart_yaml, requirements.as_deref()).map_err(|error| Words(error.to_string()))
}

/// The same of an archive, as a stream of which nothing else is kept.
pub(crate) fn of_archive(archive: impl Read, limits: &Limits) -> Result<Metadata, Words> {
    helm_chart::read_archive_metadata(archive, HELM, limits.file).map_err(|error| Words(error.to_string()))
}

fn file(files: &dyn Files, folder: &str, name: &str, limits: &Limits) -> Result<Option<Vec<u8>>, Words> {
    let path = files::within(folder, name);
    let failed = |error: std::io::Error| Words(error.to_string());
    match files.what(&path).map_err(failed)? {
        None => Ok(None),
        Some(What::Folder) => Err(Words(format!("'{name}' is a directory"))),
        Some(What::File(size)) if size > limits.file => Err(Words(format!(
            "size of '{name}' exceeds '{}' bytes limit",
            limits.file
        ))),
        Some(What::File(_)) => files::read(files, &path, limits.file).map(Some).map_err(failed),
    }
}
