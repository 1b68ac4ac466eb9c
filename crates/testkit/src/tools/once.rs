//! Builds a program once, however many processes want it.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Puts a program in place unless it is there: `build` writes it to the path that it gets.
pub(super) fn put(path: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if path.is_file() {
        return Ok(());
    }
    let folder = path.parent().context("the program's path has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let lock = File::create(folder.join(".lock"))
        .with_context(|| format!("failed to open the lock of {}", folder.display()))?;
    lock.lock()
        .with_context(|| format!("failed to lock {}", folder.display()))?;
    if path.is_file() {
        return Ok(()); // another process was faster
    }
    let unfinished = folder.join(".unfinished");
    build(&unfinished)?;
    fs::rename(&unfinished, path).with_context(|| format!("failed to put {} in place", path.display()))
}
