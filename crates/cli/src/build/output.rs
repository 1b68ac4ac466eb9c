//! Where the result goes: standard output, one file, or a folder with a file for each object.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use kustomize_build::Built;

use super::Failure;

/// Writes the result.
pub(super) fn write(built: &Built, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => print(&built.to_yaml()).map_err(Failure::Print),
        Some(folder) if folder.is_dir() => built
            .to_files()
            .iter()
            .try_for_each(|(name, text)| write_file(&folder.join(name), text)),
        Some(file) => write_file(file, &built.to_yaml()),
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::path("open", path, &error))
}
