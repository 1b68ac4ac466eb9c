//! Temporary directories that are removed even when the process that made them was killed.
//!
//! A control plane shared by all tests of a binary lives in a `static`, which is never dropped, and a killed test
//! drops nothing at all. So each directory's name carries its process id, and whoever makes a new one first removes
//! those of processes that are gone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

const PREFIX: &str = "windlass-testkit-";

/// Makes an empty directory that is removed on drop, or by the next caller after this process is gone.
pub fn directory(purpose: &str) -> Result<TempDir> {
    let parent = std::env::temp_dir();
    remove_leftovers(&parent);
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-{purpose}-", std::process::id()))
        .tempdir_in(&parent)
        .with_context(|| format!("failed to make a temporary directory in {}", parent.display()))
}

fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for path in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_left_over(path))
    {
        // Another process may be removing the same one: either of them wins.
        let _ = fs::remove_dir_all(path);
    }
}

fn is_left_over(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    match owner.and_then(|pid| pid.parse::<u32>().ok()) {
        Some(pid) => !PathBuf::from(format!("/proc/{pid}")).exists(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_left_over() {
        let own = format!("/tmp/{PREFIX}{}-x-abc", std::process::id());
        assert!(!is_left_over(Path::new(&own)));
        // The kernel's highest possible pid is 2^22.
        assert!(is_left_over(Path::new(&format!("/tmp/{PREFIX}4194999-x-abc"))));
        assert!(!is_left_over(Path::new("/tmp/something-else")));
        assert!(!is_left_over(Path::new(&format!("/tmp/{PREFIX}x-abc"))));
    }
}
