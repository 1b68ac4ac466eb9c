//! The next status of an ImagePolicy. Pure.

use api::image::{ImagePolicy, ImagePolicyStatus};
use api::meta::reasons;
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use remote_access::error::IdentityError;

use super::{Choice, Error, access};
use crate::record::{Failed, begun, succeeded};
use crate::repository::registry;

/// Reason of rules that cannot be read.
const INVALID_POLICY: &str = "InvalidPolicy";
/// Type of the condition that counts the tags that were passed over.
const TAGS_SKIPPED: &str = "TagsSkipped";

/// Held tags that are named.
const MAX_HELD: usize = 10;
/// Type of the condition that names a tag to which the policy does not go back.
const DOWNGRADE_HELD: &str = "DowngradeHeld";
/// Type of the condition that names the tags which people hold back.
const TAGS_HELD: &str = "TagsHeld";

/// Returns whether an image was chosen before.
pub(crate) fn has_chosen(object: &ImagePolicy) -> bool {
    let status = object.status.as_ref();
    let is_current = status.is_some_and(|status| status.observed_generation == object.metadata.generation);
    is_current && status.is_some_and(|status| status.latest_ref.is_some())
}

/// The status with a chosen image, and the words for it.
pub(crate) fn chosen(object: &ImagePolicy, choice: &Choice, now: Timestamp) -> (ImagePolicyStatus, String) {
    let image = &choice.image;
    let mut status = begun(object);
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
    let generation = object.metadata.generation.unwrap_or_default();
    let (latest, previous) = (status.latest_ref, status.observed_previous_ref);
    let mut status = ImagePolicyStatus {
        latest_ref: latest,
        observed_previous_ref: previous,
        ..succeeded(object, &message, now)
    };
    if choice.is_held {
        let text = format!(
            "the policy would go back from {} to {}, which the annotation {} forbids; a change of the spec allows it",
            image.tag,
            choice.chosen.tag,
            super::DOWNGRADES
        );
        let fact = Fact::holds(DOWNGRADE_HELD, DOWNGRADE_HELD, text);
        conditions::set(&mut status.conditions, fact, generation, now);
    } else {
        conditions::remove(&mut status.conditions, DOWNGRADE_HELD);
    }
    if choice.holds.is_empty() {
        conditions::remove(&mut status.conditions, TAGS_HELD);
    } else {
        let mut lines: Vec<_> = choice
            .holds
            .iter()
            .take(MAX_HELD)
            .map(|hold| format!("{} is {hold}", hold.tag))
            .collect();
        let more = choice.holds.iter().count().saturating_sub(MAX_HELD);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        let fact = Fact::holds(TAGS_HELD, TAGS_HELD, lines.join("\n"));
        conditions::set(&mut status.conditions, fact, generation, now);
    }
    if choice.chosen.tally.skipped == 0 {
        conditions::remove(&mut status.conditions, TAGS_SKIPPED);
    } else {
        let tally = &choice.chosen.tally;
        let (skipped, considered) = (tally.skipped, tally.considered);
        let names = tally.skipped_tags.join(", ");
        let text = format!(
            "the order of the policy does not apply to {skipped} of {considered} tags, such as {names}"
        );
        let fact = Fact::holds(TAGS_SKIPPED, TAGS_SKIPPED, text);
        conditions::set(&mut status.conditions, fact, generation, now);
    }
    (status, message)
}

/// The status after a failure. What was chosen before stays.
pub(crate) fn failed(object: &ImagePolicy, error: &Error, now: Timestamp) -> Failed<ImagePolicyStatus> {
    Failed::new(object, error, verdict(error), now)
}

/// The reason of a failure, and whether only a change of the object helps.
fn verdict(error: &Error) -> (&'static str, bool) {
    match error {
        Error::Invalid(_) => (INVALID_POLICY, true),
        Error::Access(access::Denied::ReadNamespace { .. }) => (reasons::FAILED, false),
        Error::Access(_) => (reasons::ACCESS_DENIED, false),
        Error::NoRepository(_) | Error::NoTags(_) => (reasons::DEPENDENCY_NOT_READY, false),
        Error::Image(_) => (crate::repository::IMAGE_URL_INVALID, false),
        Error::Registry(registry::Error::Identity(IdentityError::FeatureGateDisabled)) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Choose(_) | Error::Abandoned | Error::Registry(_) | Error::Digest { .. } => (FAILURE, false),
    }
}

/// Reason for all other failures.
const FAILURE: &str = "Failure";
