//! `info.description`: what Helm writes there for people, by what became of an action.

use crate::release::{Release, Status};

/// An install has begun.
pub const INSTALL_UNDERWAY: &str = "Initial install underway";
/// An install is done.
pub const INSTALL_COMPLETE: &str = "Install complete";
/// An upgrade has begun.
pub const PREPARING_UPGRADE: &str = "Preparing upgrade";
/// An upgrade is done.
pub const UPGRADE_COMPLETE: &str = "Upgrade complete";
/// An install took the name of this release.
pub const SUPERSEDED: &str = "superseded by new release";
/// An uninstall has begun.
pub const DELETION_IN_PROGRESS: &str = "Deletion in progress (or silently failed)";
/// An uninstall is done.
pub const UNINSTALLATION_COMPLETE: &str = "Uninstallation complete";

/// A rollback, from its beginning to its end.
#[must_use]
pub fn rollback_to(version: i64) -> String {
    format!("Rollback to {version}")
}

/// An install failed, or a rollback.
#[must_use]
pub fn release_failed(name: &str, error: &str) -> String {
    format!("Release {name:?} failed: {error}")
}

/// An upgrade failed.
#[must_use]
pub fn upgrade_failed(name: &str, error: &str) -> String {
    format!("Upgrade {name:?} failed: {error}")
}

impl Release {
    /// Writes down what became of it.
    pub fn set_status(&mut self, status: Status, description: impl Into<String>) {
        self.info.status = status;
        self.info.description = description.into();
    }
}
