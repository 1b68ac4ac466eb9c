//! A chart of a repository: its name, and the archive that was downloaded, packaged anew where the spec changes it.

use std::io::{Read, Write};
use std::sync::Arc;

use helm_chart::Metadata;

use crate::error::{Error, Step, Words};
use crate::{Built, HELM, Limits, Options, archive, metadata, values};

/// Checks the name of a chart in a repository.
///
/// # Errors
/// When no chart can be called like that.
pub fn check_name(name: &str) -> Result<(), Error> {
    let problem = match name {
        "" => Some("no name set for remote chart reference".to_owned()),
        name if is_name(name) => None,
        name => Some(format!(
            "invalid chart name '{name}': a valid name must be lower case letters and numbers and MAY be separated with \
             dashes (-), slashes (/) or periods (.)"
        )),
    };
    problem.map_or(Ok(()), |text| Err(Error::new(Step::Reference, Words(text))))
}

/// Flux's `^([-a-z0-9]+/?\.?)+$`: words with at most a slash and then a period between them.
fn is_name(name: &str) -> bool {
    let is_word = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let allowed = name
        .bytes()
        .all(|byte| is_word(byte) || matches!(byte, b'/' | b'.'));
    let starts = name.bytes().next().is_some_and(is_word);
    allowed && starts && !["//", "..", "./"].iter().any(|pair| name.contains(pair))
}

/// Checks that an archive is a chart, as a stream.
///
/// # Errors
/// When it is none, or its Chart.yaml is too large.
pub fn check(archive: impl Read, limits: &Limits) -> Result<Metadata, Error> {
    let found = metadata::of_archive(archive, limits);
    found.map_err(|error| {
        let text = format!("failed to load chart metadata from written chart: {error}");
        Error::new(Step::Pull, Words(text))
    })
}

/// Packages an archive anew, with this version and the values files of the options.
///
/// # Errors
/// When the archive is no chart, values cannot be merged, or the output fails.
pub fn package(
    archive: impl Read,
    version: &str,
    options: &Options,
    output: impl Write,
) -> Result<Built, Error> {
    let mut chart = helm_chart::load_archive(archive, HELM, &mut Vec::new()).map_err(|error| {
        Error::new(
            Step::Package,
            Words(format!("failed to load downloaded chart: {error}")),
        )
    })?;
    Arc::make_mut(&mut chart.metadata).version = version.to_owned();
    let mut values_files = Vec::new();
    if !options.values_files.is_empty() {
        let merged = values::of_chart(&chart, options).map_err(|error| {
            let text = format!("failed to merge chart values: {}", error.source);
            Error::new(Step::Values, Words(text))
        })?;
        if values::overwrite(&mut chart, merged.values)? {
            values_files = merged.files;
        }
    }
    archive::write(&chart, output)?;
    Ok(Built {
        name: chart.metadata.name.clone(),
        version: version.to_owned(),
        values_files,
        packaged: true,
        resolved_dependencies: 0,
    })
}
