//! Reasons, condition types and messages that only a HelmRelease has.

use api::helm::{ReleaseAction, Snapshot};

use super::history::{full_name, versioned_chart};

pub(super) const INSTALL_SUCCEEDED: &str = "InstallSucceeded";
pub(super) const INSTALL_FAILED: &str = "InstallFailed";
pub(super) const UPGRADE_SUCCEEDED: &str = "UpgradeSucceeded";
pub(super) const UPGRADE_FAILED: &str = "UpgradeFailed";
pub(super) const TEST_SUCCEEDED: &str = "TestSucceeded";
pub(super) const TEST_FAILED: &str = "TestFailed";
pub(super) const ROLLBACK_SUCCEEDED: &str = "RollbackSucceeded";
pub(super) const ROLLBACK_FAILED: &str = "RollbackFailed";
pub(super) const UNINSTALL_SUCCEEDED: &str = "UninstallSucceeded";
pub(super) const UNINSTALL_FAILED: &str = "UninstallFailed";
pub(super) const PENDING_RELEASE: &str = "PendingRelease";
pub(super) const AWAITING_TESTS: &str = "AwaitingTests";
pub(super) const FOREIGN_CHANGE: &str = "ForeignReleaseChange";
pub(super) const DRIFTED: &str = "Drifted";
pub(super) const DRIFT_DETECTED: &str = "DriftDetected";
pub(super) const NO_DRIFT_DETECTED: &str = "NoDriftDetected";
pub(super) const DRIFT_CORRECTED: &str = "DriftCorrected";
pub(super) const DRIFT_CORRECTION_FAILED: &str = "DriftCorrectionFailed";

/// Returns the message for a revision that was released.
pub(super) fn released_message(reason: &str, snapshot: &Snapshot) -> String {
    let action = match reason {
        INSTALL_SUCCEEDED => "install",
        _ => "upgrade",
    };
    format!(
        "Helm {action} succeeded for release {} with chart {}",
        full_name(snapshot),
        versioned_chart(snapshot)
    )
}

/// Returns the action as a verb.
pub(super) fn verb(action: ReleaseAction) -> &'static str {
    match action {
        ReleaseAction::Install => "install",
        ReleaseAction::Upgrade => "upgrade",
    }
}
