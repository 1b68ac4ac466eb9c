//! The next status of an ImagePolicy. Pure.

use api::image::{ImagePolicy, ImagePolicyStatus};
use api::meta::reasons;
use controller_kit::conditions::{self, Fact};
use image_policy::Tally;
use image_policy::hold::Holds;
use jiff::Timestamp;
use remote_access::error::IdentityError;

use super::rules::DOWNGRADES;
use super::{Choice, Error, access};
use crate::repository::registry;
use controller_kit::record::{Failed, begun, succeeded};

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
/// Type of the condition that names the tags which stand before the chosen one and do not meet the demands yet.
const TAGS_INELIGIBLE: &str = "TagsIneligible";
/// Reason when no tag meets them.
const NO_ELIGIBLE_TAG: &str = "NoEligibleTag";

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
    let conditions = &mut status.conditions;
    let mut note = |kind: &'static str, text: Option<String>| match text {
        Some(text) => conditions::set(conditions, Fact::holds(kind, kind, text), generation, now),
        None => conditions::remove(conditions, kind),
    };
    note(DOWNGRADE_HELD, downgrade(choice));
    note(TAGS_HELD, held(&choice.rules.holds));
    let passed_over = &choice.passed_over;
    note(
        TAGS_INELIGIBLE,
        (!passed_over.is_empty()).then(|| passed_over.to_string()),
    );
    note(TAGS_SKIPPED, skipped(&choice.tally));
    (status, message)
}

fn downgrade(choice: &Choice) -> Option<String> {
    Some(format!(
        "the policy would go back from {} to {}, which the annotation {DOWNGRADES} forbids; a change of the spec allows it",
        choice.image.tag,
        choice.downgrade.as_deref()?,
    ))
}

fn held(holds: &Holds) -> Option<String> {
    let named = holds.iter().take(MAX_HELD);
    let mut lines: Vec<_> = named.map(|hold| format!("{} is {hold}", hold.tag)).collect();
    let more = holds.iter().count().saturating_sub(MAX_HELD);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    (!holds.is_empty()).then(|| lines.join("\n"))
}

fn skipped(tally: &Tally) -> Option<String> {
    let (skipped, considered) = (tally.skipped, tally.considered);
    let names = tally.skipped_tags.join(", ");
    (skipped > 0).then(|| {
        format!("the order of the policy does not apply to {skipped} of {considered} tags, such as {names}")
    })
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
        Error::NoneEligible(_) => (NO_ELIGIBLE_TAG, false),
        Error::Verify { source, .. } => (reasons::VERIFICATION_ERROR, source.is_about_the_spec()),
        Error::Material(_) => (reasons::VERIFICATION_ERROR, false),
        Error::Choose(_)
        | Error::Abandoned
        | Error::Registry(_)
        | Error::Digest { .. }
        | Error::Platforms { .. } => (FAILURE, false),
    }
}

/// Reason for all other failures.
const FAILURE: &str = "Failure";
