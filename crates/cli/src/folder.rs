//! The files of a folder, for commands that work on whole repositories.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::Failure;

/// Folders may be nested this deep.
const MAX_DEPTH: usize = 64;

/// Returns all files below a folder, sorted. Symbolic links are not followed, since they may lead out of it, and `.git` is left out.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    collect(folder, 0, &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |problem: String| Failure::Usage(format!("{}: {problem}", folder.display()));
    if depth > MAX_DEPTH {
        return Err(failed(format!("it is nested deeper than {MAX_DEPTH} folders")));
    }
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = entries.map_err(|error| failed(error.to_string()))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(|error| failed(error.to_string()))?;
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() && entry.file_name() != ".git" {
            collect(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}
