//! Folders of the tools.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The repository's `hack` folder.
pub fn hack_directory() -> PathBuf {
    repository_root().join("hack")
}

/// The repository's root, as it was when testkit was compiled: testkit is never shipped.
pub fn repository_root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("crates/testkit lies two levels below the root")
        .to_owned()
}

pub(super) fn cache_directory() -> Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = variable("WINDLASS_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/windlass")));
    let base = base.context("nowhere to keep built tools: set HOME or WINDLASS_CACHE")?;
    Ok(std::path::absolute(base)?.join("tools"))
}
