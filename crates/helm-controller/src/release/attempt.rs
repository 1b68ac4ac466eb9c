//! The beginning of an attempt: what is tried goes into the status, and failures of something else are forgotten.

use api::helm::{HelmRelease, HelmReleaseStatus};

use super::desired::Desired;
use super::{requests, target};

/// Records what will be tried, and forgets earlier failures if it is not the same that failed: a new spec, chart or value
/// always starts afresh. Says why they were forgotten.
pub fn begin(
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
    desired: &Desired,
) -> Option<&'static str> {
    status.storage_namespace = Some(target::storage_namespace(object));
    let afresh = starts_afresh(object, status, desired);
    if afresh.is_some() {
        clear_failures(status);
    }
    status.last_attempted_generation = object.metadata.generation.unwrap_or_default();
    status.last_attempted_revision = Some(desired.chart_version.clone());
    status.last_attempted_revision_digest = desired.oci_digest.clone();
    status.last_attempted_config_digest = Some(desired.values_digest.clone());
    status.last_attempted_values_checksum = None;
    status.last_release_revision = 0;
    afresh
}

/// Why this is not the attempt that failed before, if it is not.
fn starts_afresh(
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
    desired: &Desired,
) -> Option<&'static str> {
    // First, so that a request is taken as handled whatever else has changed.
    let reset = requests::asks_for_reset(object, status);
    requests::record_reset(object, status);
    if status.last_attempted_generation != object.metadata.generation.unwrap_or_default() {
        Some("generation differs from last attempt")
    } else if status.last_attempted_revision.as_deref().unwrap_or_default() != desired.chart_version {
        Some("chart version differs from last attempt")
    } else if values_differ(status, desired) {
        Some("values differ from last attempt")
    } else {
        reset.then_some("reset requested through annotation")
    }
}

/// A checksum of old, SHA-1, is not compared: that forgets failures once.
fn values_differ(status: &HelmReleaseStatus, desired: &Desired) -> bool {
    match &status.last_attempted_config_digest {
        Some(digest) => *digest != desired.values_digest,
        None => status.last_attempted_values_checksum.is_some(),
    }
}

/// Forgets how often it failed.
pub(super) fn clear_failures(status: &mut HelmReleaseStatus) {
    status.failures = 0;
    status.install_failures = 0;
    status.upgrade_failures = 0;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{desired, object};
    use super::*;

    #[test]
    fn failures_are_forgotten_when_anything_that_is_released_changes() {
        let failed = || {
            let mut status = HelmReleaseStatus::default();
            begin(&object(&json!({})), &mut status, &desired(&json!({"a": 1})));
            status.failures = 2;
            status.upgrade_failures = 1;
            status.install_failures = 1;
            status
        };
        let mut newer = object(&json!({}));
        newer.metadata.generation = Some(2);
        let mut chart = desired(&json!({"a": 1}));
        chart.chart_version = "2.0.0".to_owned();
        for (object, desired, afresh) in [
            (object(&json!({})), desired(&json!({"a": 1})), None),
            (
                newer,
                desired(&json!({"a": 1})),
                Some("generation differs from last attempt"),
            ),
            (
                object(&json!({})),
                chart,
                Some("chart version differs from last attempt"),
            ),
            (
                object(&json!({})),
                desired(&json!({"a": 2})),
                Some("values differ from last attempt"),
            ),
        ] {
            let mut status = failed();
            assert_eq!(begin(&object, &mut status, &desired), afresh);
            let left = if afresh.is_some() { (0, 0, 0) } else { (2, 1, 1) };
            assert_eq!(
                (status.failures, status.install_failures, status.upgrade_failures),
                left
            );
        }
    }
}
