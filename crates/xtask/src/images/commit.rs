//! The commit that is built.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use jiff::Timestamp;

use super::commands::read;

/// The commit that is built.
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) time: Timestamp,
    /// True if the tree is the commit's.
    pub(crate) clean: bool,
}

impl Commit {
    /// The commit that is checked out in a folder.
    pub(crate) fn of(root: &Path) -> Result<Self> {
        let git = |arguments: &[&str]| read(Command::new("git").arg("-C").arg(root).args(arguments));
        let seconds = git(&["log", "-1", "--format=%ct"])?;
        let seconds = seconds.trim().parse().context("git gave no time")?;
        Ok(Self {
            id: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            time: Timestamp::from_second(seconds).context("the commit's time is out of range")?,
            clean: git(&["status", "--porcelain"])?.trim().is_empty(),
        })
    }
}
