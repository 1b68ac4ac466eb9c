//! In which state a release is: Helm's newest record, compared with the status, the spec, the chart and the values.

use api::helm::{DriftDetectionMode, HelmRelease, HelmReleaseStatus};
use helm_release::{Release, Status};

use super::desired::Desired;
use super::drift::Drift;
use super::policy::{self, Remediation};
use super::{digests, history, unlock, verify};

/// The state of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none, or it was uninstalled.
    Absent(&'static str),
    /// Someone else made it, or changed it.
    Unmanaged(String),
    /// It is not of the desired chart, values or metadata.
    OutOfSync(&'static str),
    /// Objects in the cluster differ from it.
    Drifted(Vec<Drift>),
    /// An action was under way when the newest record was written.
    Locked(Status),
    /// A record of ours was left behind by a crash and has been unlocked. What was under way?
    BrokenOff(Status),
    /// An uninstall was not ended.
    Uninstalling,
    /// Its tests have not been run.
    Untested,
    /// An action or a test failed.
    Failed(&'static str),
    /// It is as desired.
    InSync,
}

/// Says in which state the release is, as far as Helm's records tell: whether objects have drifted is not among it.
pub fn state(
    object: &HelmRelease,
    status: &HelmReleaseStatus,
    last: Option<&Release>,
    desired: &Desired,
) -> State {
    let Some(last) = last else {
        return State::Absent("no release in storage for object");
    };
    let found = &last.info.status;
    if found.is_pending() {
        return State::Locked(found.clone());
    }
    if *found == Status::Uninstalling {
        return State::Uninstalling;
    }
    let Some(current) = history::latest(&status.history) else {
        return if *found == Status::Uninstalled {
            State::Absent("found uninstalled release in storage")
        } else {
            State::Unmanaged("found existing release in storage".to_owned())
        };
    };
    if let Err(stranger) = verify::is_ours(current, last) {
        let follows = last.version >= current.version && last.name == current.name;
        return match unlock::broken_off(last) {
            Some(pending) if follows => State::BrokenOff(pending),
            _ => State::Unmanaged(stranger.as_str().to_owned()),
        };
    }
    match found {
        Status::Failed => State::Failed(""),
        Status::Uninstalled => State::Absent("found uninstalled release in storage"),
        Status::Deployed => deployed(object, status, last, desired),
        other => State::Unmanaged(format!("found release with status '{other}' in storage")),
    }
}

/// The state of a release that an action of ours left deployed.
fn deployed(object: &HelmRelease, status: &HelmReleaseStatus, last: &Release, desired: &Desired) -> State {
    let Some(current) = history::latest(&status.history) else {
        return State::Unmanaged("found existing release in storage".to_owned());
    };
    if let Some(difference) = verify::differs(current, last, desired) {
        return State::OutOfSync(difference);
    }
    if let Some(difference) = rendered_otherwise(object, status) {
        return State::OutOfSync(difference);
    }
    if policy::tests(object) {
        if !history::has_been_tested(current) {
            return State::Untested;
        }
        let remediation = Remediation::active(object, status);
        let counts = remediation.is_some_and(|remediation| !remediation.ignores_test_failures(object));
        if counts && history::has_failed_test(current) {
            return State::Failed("release has test in failed phase");
        }
    }
    State::InSync
}

/// Returns whether the manifest was rendered with other post-renderers or metadata than the spec has.
///
/// Asked for a new generation only, since older controllers did not record the digests; and after a failure, since what was
/// rolled back to is not what the spec says.
fn rendered_otherwise(object: &HelmRelease, status: &HelmReleaseStatus) -> Option<&'static str> {
    let generation = object.metadata.generation.unwrap_or_default();
    let failed = status.failures > 0 || status.install_failures > 0 || status.upgrade_failures > 0;
    if status.observed_generation.unwrap_or_default() == generation && !failed {
        return None;
    }
    let renderers = digests::of_post_renderers(&object.spec.post_renderers);
    let metadata = digests::of_common_metadata(object.spec.common_metadata.as_ref());
    if renderers != status.observed_post_renderers_digest {
        Some("postrenderers digest has changed")
    } else if metadata != status.observed_common_metadata_digest {
        Some("common metadata digest has changed")
    } else {
        None
    }
}

/// Returns the drift mode.
pub(super) fn drift_mode(object: &HelmRelease) -> DriftDetectionMode {
    let detection = object.spec.drift_detection.as_ref();
    detection.map(api::helm::DriftDetection::mode).unwrap_or_default()
}

#[cfg(test)]
mod tests;
