//! Content of a HelmChart's artifact.

use std::io::Seek as _;

use api::source::ChartSourceKind;
use artifact::archive::{self, EntryContent, Limits};
use artifact::digest::Digest;
use artifact::store::{self, Ingest};
use oci_client::registry::Repository;

use crate::error::{Error, HelmChartError};
use crate::kind::Build;

/// A packaged chart.
pub(crate) struct Content {
    pub(super) archive: std::fs::File,
    pub(super) build: Build,
    /// Where it was pulled from, for its signatures.
    pub(super) origin: Option<(Repository, Digest)>,
}

/// The kind of a source, as in manifests.
pub(super) fn kind_name(kind: ChartSourceKind) -> &'static str {
    match kind {
        ChartSourceKind::HelmRepository => "HelmRepository",
        ChartSourceKind::GitRepository => "GitRepository",
        ChartSourceKind::Bucket => "Bucket",
    }
}

/// Adds the files of the chart, in the chart's own folder. What no chart needs (links, devices, paths out of the folder)
/// and what no chart is as large as, is refused.
pub(super) fn unpack(archive: &std::fs::File, ingest: &mut Ingest) -> Result<(), Error> {
    let largest = helm_package::MAX_UNPACKED; // Helm's own limit
    let limits = Limits {
        max_total_bytes: largest,
        max_file_bytes: largest,
        ..Limits::default()
    };
    let mut file = archive;
    file.rewind().map_err(Error::MakeDirectory)?;
    let mut refused: Option<store::Error> = None;
    let result = archive::read(file, &limits, |entry| {
        let added = match entry.content {
            EntryContent::Directory => ingest.add_directory(entry.path),
            EntryContent::File {
                executable, reader, ..
            } => ingest.add_file(entry.path, executable, reader),
        };
        added.map_err(|error| {
            let text = error.to_string();
            refused = Some(error);
            text.into()
        })
    });
    match (result, refused) {
        (Ok(_), _) => Ok(()),
        (Err(error), Some(store::Error::ReadSource { .. } | store::Error::AddFile(_)) | None) => {
            Err(Error::Chart(HelmChartError::Unpack(error)))
        }
        (Err(_), Some(error)) => Err(Error::Store(error)),
    }
}
