//! The next status of an ImageRepository. Pure.

use api::image::{ImageRepository, ImageRepositoryStatus, ScanResult};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use remote_access::error::IdentityError;

use super::{Error, Scanned, canonical_name, registry};
use controller_kit::record::{Failed, begun, succeeded};

/// Reason for an invalid name of an image.
pub(crate) const IMAGE_URL_INVALID: &str = "ImageURLInvalid";
/// Tags that are shown.
const SHOWN: usize = 10;

/// Words for a scan.
pub(crate) fn message(scanned: &Scanned) -> String {
    let (count, revision) = (scanned.tags.len(), &scanned.revision);
    format!("successful scan: found {count} tags with checksum {revision}")
}

/// The status after a scan.
pub(crate) fn scanned(object: &ImageRepository, scanned: &Scanned, now: Timestamp) -> ImageRepositoryStatus {
    let mut status = succeeded(object, &message(scanned), now);
    status.canonical_image_name = Some(canonical_name(&scanned.name));
    status.observed_exclusion_list = object.exclusion_list();
    // Of all tags: single ones that were looked for in between do not put off the next scan.
    let before = status.last_scan_result.take().and_then(|last| last.scan_time);
    let scan_time = before.filter(|_| scanned.rest.is_some());
    let now = Time(now.round(jiff::Unit::Second).unwrap_or(now));
    status.last_scan_result = Some(ScanResult {
        revision: Some(scanned.revision.clone()),
        tag_count: scanned.tags.len() as u64,
        scan_time: Some(scan_time.unwrap_or(now)),
        latest_tags: scanned.tags.iter().rev().take(SHOWN).cloned().collect(),
    });
    status
}

/// The status while the registry is left alone. What was found before stays.
pub(crate) fn paused(
    object: &ImageRepository,
    error: &registry::Error,
    now: Timestamp,
) -> ImageRepositoryStatus {
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let fact = Fact::holds(
        condition_types::RECONCILING,
        reasons::PROGRESSING_WITH_RETRY,
        error.to_string(),
    );
    conditions::set(&mut status.conditions, fact, generation, now);
    status
}

/// The status when nothing was to be done.
pub(crate) fn unchanged(object: &ImageRepository, now: Timestamp) -> ImageRepositoryStatus {
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    if status.observed_generation != Some(generation) {
        let ready = conditions::get(&status.conditions, condition_types::READY).cloned();
        if let Some(ready) = ready {
            let fact = Fact::holds(condition_types::READY, &ready.reason, ready.message);
            conditions::set(&mut status.conditions, fact, generation, now);
        }
        status.observed_generation = Some(generation);
    }
    status
}

/// The status after a failure.
pub(crate) fn failed(
    object: &ImageRepository,
    error: &Error,
    now: Timestamp,
) -> Failed<ImageRepositoryStatus> {
    Failed::new(object, error, verdict(error), now)
}

/// The reason of a failure, and whether only a change of the object helps.
fn verdict(error: &Error) -> (&'static str, bool) {
    match error {
        Error::Image(_) => (IMAGE_URL_INVALID, true),
        Error::Access(registry::Error::Identity(IdentityError::FeatureGateDisabled)) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Access(_) => (reasons::AUTHENTICATION_FAILED, false),
        Error::Exclusion(..) | Error::Scan(_) | Error::Look { .. } | Error::Abandoned => {
            (reasons::READ_OPERATION_FAILED, false)
        }
    }
}
