//! The archive with the command: the same bytes for the same program.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

use crate::images::commit::Commit;

/// Returns a tar.gz of a program and the licence.
pub(super) fn of(program: &Path, licence: &Path, commit: &Commit) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::new(9));
    let mut tar = Builder::new(gzip);
    for (path, mode) in [(program, 0o755), (licence, 0o644)] {
        let content = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        let mut header = Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(commit.time.as_second().try_into().unwrap_or_default());
        header.set_uid(0);
        header.set_gid(0);
        let name = path.file_name().context("the file has no name")?;
        tar.append_data(&mut header, name, content.as_slice())
            .context("failed to write an archive")?;
    }
    let gzip = tar.into_inner().context("failed to write an archive")?;
    gzip.finish().context("failed to write an archive")
}
