//! The next status of an ImageRepository. Pure.

use api::image::{ImageRepository, ImageRepositoryStatus, ScanResult};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use controller_kit::runtime::requested_at;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use remote_access::error::IdentityError;

use super::{Error, Scanned, canonical_name, registry};

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
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let ready = Fact::holds(condition_types::READY, reasons::SUCCEEDED, message(scanned));
    conditions::set(&mut status.conditions, ready, generation, now);
    conditions::remove(&mut status.conditions, condition_types::RECONCILING);
    conditions::remove(&mut status.conditions, condition_types::STALLED);
    status.observed_generation = Some(generation);
    status.canonical_image_name = Some(canonical_name(&scanned.name));
    status.observed_exclusion_list = object.exclusion_list();
    status.last_scan_result = Some(ScanResult {
        revision: Some(scanned.revision.clone()),
        tag_count: scanned.tags.len() as u64,
        scan_time: Some(Time(now.round(jiff::Unit::Second).unwrap_or(now))),
        latest_tags: scanned.tags.iter().rev().take(SHOWN).cloned().collect(),
    });
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

/// The status after a failure, its reason and message, and whether only a change of the object helps.
pub(crate) fn failed(
    object: &ImageRepository,
    error: &Error,
    now: Timestamp,
) -> (ImageRepositoryStatus, &'static str, String, bool) {
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let message = error_chain::chain(error);
    let (reason, is_final) = match error {
        Error::Image(_) => (IMAGE_URL_INVALID, true),
        Error::Access(registry::Error::Identity(IdentityError::FeatureGateDisabled)) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Access(_) => (reasons::AUTHENTICATION_FAILED, false),
        Error::Exclusion(..) | Error::Scan(_) | Error::Abandoned => (reasons::READ_OPERATION_FAILED, false),
    };
    let ready = Fact::does_not_hold(condition_types::READY, reason, &*message);
    conditions::set(&mut status.conditions, ready, generation, now);
    if is_final {
        let stalled = Fact::holds(condition_types::STALLED, reason, &*message);
        conditions::set(&mut status.conditions, stalled, generation, now);
        conditions::remove(&mut status.conditions, condition_types::RECONCILING);
        status.observed_generation = Some(generation);
    } else {
        let again = Fact::holds(
            condition_types::RECONCILING,
            reasons::PROGRESSING_WITH_RETRY,
            &*message,
        );
        conditions::set(&mut status.conditions, again, generation, now);
        conditions::remove(&mut status.conditions, condition_types::STALLED);
    }
    (status, reason, message, is_final)
}

/// The status so far, with the request that is being handled.
fn begun(object: &ImageRepository) -> ImageRepositoryStatus {
    let mut status = object.status.clone().unwrap_or_default();
    if let Some(requested) = requested_at(object) {
        status.last_handled_reconcile_at = Some(requested.to_owned());
    }
    status
}
