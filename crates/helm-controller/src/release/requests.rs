//! Requests by annotation: one forced release, or a reset of failures.
//!
//! A request counts if its annotation has the same value as `reconcile.fluxcd.io/requestedAt`, and counts once: the value is
//! recorded in the status whether or not it was followed.

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::{FORCE_REQUEST_ANNOTATION, RECONCILE_REQUEST_ANNOTATION, RESET_REQUEST_ANNOTATION};
use kube::ResourceExt as _;

/// Returns whether one release is requested, no matter what the state is.
pub(super) fn asks_for_force(object: &HelmRelease, status: &HelmReleaseStatus) -> bool {
    is_new(
        object,
        FORCE_REQUEST_ANNOTATION,
        status.last_handled_force_at.as_deref(),
        status,
    )
}

/// Records that a request for a release was seen.
pub(super) fn record_force(object: &HelmRelease, status: &mut HelmReleaseStatus) {
    if let Some(request) = object.annotations().get(FORCE_REQUEST_ANNOTATION) {
        status.last_handled_force_at = Some(request.clone());
    }
}

/// Returns whether the failures so far are to be forgotten.
pub(super) fn asks_for_reset(object: &HelmRelease, status: &HelmReleaseStatus) -> bool {
    is_new(
        object,
        RESET_REQUEST_ANNOTATION,
        status.last_handled_reset_at.as_deref(),
        status,
    )
}

/// Records that a request to forget failures was seen.
pub(super) fn record_reset(object: &HelmRelease, status: &mut HelmReleaseStatus) {
    if let Some(request) = object.annotations().get(RESET_REQUEST_ANNOTATION) {
        status.last_handled_reset_at = Some(request.clone());
    }
}

fn is_new(object: &HelmRelease, annotation: &str, seen: Option<&str>, status: &HelmReleaseStatus) -> bool {
    let annotations = object.annotations();
    let Some(request) = annotations.get(annotation) else {
        return false;
    };
    let reconciled = status.last_handled_reconcile_at.as_deref();
    annotations.get(RECONCILE_REQUEST_ANNOTATION) == Some(request)
        && reconciled.unwrap_or_default() != request
        && seen.unwrap_or_default() != request
}

#[cfg(test)]
mod tests {
    use super::super::testing::object;
    use super::*;

    fn takes_force(object: &HelmRelease, status: &mut HelmReleaseStatus) -> bool {
        let asks = asks_for_force(object, status);
        record_force(object, status);
        asks
    }

    #[test]
    fn a_request_counts_once_and_only_with_the_same_token() {
        let mut release = object(&serde_json::json!({}));
        let mut status = HelmReleaseStatus::default();
        assert!(!takes_force(&release, &mut status));
        let annotations = release.annotations_mut();
        annotations.insert(FORCE_REQUEST_ANNOTATION.to_owned(), "1".to_owned());
        assert!(
            !takes_force(&release, &mut status),
            "nothing was asked for at this time"
        );
        assert_eq!(status.last_handled_force_at.as_deref(), Some("1"));
        let annotations = release.annotations_mut();
        annotations.insert(FORCE_REQUEST_ANNOTATION.to_owned(), "2".to_owned());
        annotations.insert(RECONCILE_REQUEST_ANNOTATION.to_owned(), "2".to_owned());
        assert!(takes_force(&release, &mut status));
        assert!(!takes_force(&release, &mut status));
        assert!(!asks_for_reset(&release, &status));
        status.last_handled_force_at = None;
        status.last_handled_reconcile_at = Some("2".to_owned());
        assert!(
            !takes_force(&release, &mut status),
            "it was handled by an earlier run"
        );
    }
}
