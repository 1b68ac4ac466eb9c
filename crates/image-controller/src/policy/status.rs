//! The next status of an ImagePolicy. Pure.

use api::image::{ImagePolicy, ImagePolicyStatus};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use controller_kit::runtime::requested_at;
use jiff::Timestamp;
use remote_access::error::IdentityError;

use super::{Choice, Error, access};
use crate::repository::registry;

/// Reason of rules that cannot be read.
const INVALID_POLICY: &str = "InvalidPolicy";
/// Type of the condition that counts the tags that were passed over.
const TAGS_SKIPPED: &str = "TagsSkipped";

/// A failure as it is written.
pub(crate) struct Failed {
    pub(crate) status: ImagePolicyStatus,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Only a change of the object helps.
    pub(crate) is_final: bool,
}

/// Returns whether an image was chosen before.
pub(crate) fn has_chosen(object: &ImagePolicy) -> bool {
    let status = object.status.as_ref();
    let is_current = status.is_some_and(|status| status.observed_generation == object.metadata.generation);
    is_current && status.is_some_and(|status| status.latest_ref.is_some())
}

/// The status with a chosen image, and the words for it.
pub(crate) fn chosen(object: &ImagePolicy, choice: &Choice, now: Timestamp) -> (ImagePolicyStatus, String) {
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let image = &choice.image;
    if status.latest_ref.as_ref() != Some(image) {
        status.observed_previous_ref = status.latest_ref.take();
        status.latest_ref = Some(image.clone());
    }
    let mut message = format!("Latest image tag for {} resolved to {}", image.name, image.tag);
    if let Some(digest) = &image.digest {
        message = format!("{message} with digest {digest}");
    }
    if let Some(previous) = &status.observed_previous_ref {
        message = format!("{message} (previously {previous})");
    }
    let ready = Fact::holds(condition_types::READY, reasons::SUCCEEDED, &*message);
    conditions::set(&mut status.conditions, ready, generation, now);
    conditions::remove(&mut status.conditions, condition_types::RECONCILING);
    conditions::remove(&mut status.conditions, condition_types::STALLED);
    if choice.chosen.skipped == 0 {
        conditions::remove(&mut status.conditions, TAGS_SKIPPED);
    } else {
        let (skipped, considered) = (choice.chosen.skipped, choice.chosen.considered);
        let names = choice.chosen.skipped_tags.join(", ");
        let text = format!(
            "the order of the policy does not apply to {skipped} of {considered} tags, such as {names}"
        );
        let fact = Fact::holds(TAGS_SKIPPED, TAGS_SKIPPED, text);
        conditions::set(&mut status.conditions, fact, generation, now);
    }
    status.observed_generation = Some(generation);
    (status, message)
}

/// The status after a failure. What was chosen before stays.
pub(crate) fn failed(object: &ImagePolicy, error: &Error, now: Timestamp) -> Failed {
    let mut status = begun(object);
    let generation = object.metadata.generation.unwrap_or_default();
    let message = error_chain::chain(error);
    let (reason, is_final) = match error {
        Error::Invalid(_) => (INVALID_POLICY, true),
        Error::Access(access::Denied::ReadNamespace { .. }) => (reasons::FAILED, false),
        Error::Access(_) => (reasons::ACCESS_DENIED, false),
        Error::NoRepository(_) | Error::NoTags(_) => (reasons::DEPENDENCY_NOT_READY, false),
        Error::Image(_) => (crate::repository::IMAGE_URL_INVALID, false),
        Error::Registry(registry::Error::Identity(IdentityError::FeatureGateDisabled)) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Choose(_) | Error::Abandoned | Error::Registry(_) | Error::Digest { .. } => (FAILURE, false),
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
    Failed {
        status,
        reason,
        message,
        is_final,
    }
}

/// Reason for all other failures.
const FAILURE: &str = "Failure";

fn begun(object: &ImagePolicy) -> ImagePolicyStatus {
    let mut status = object.status.clone().unwrap_or_default();
    if let Some(requested) = requested_at(object) {
        status.last_handled_reconcile_at = Some(requested.to_owned());
    }
    status
}
