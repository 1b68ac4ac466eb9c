//! The next status of an ImageUpdateAutomation. Pure.

use std::collections::BTreeMap;

use api::image::{ImageRef, ImageUpdateAutomation, ImageUpdateAutomationStatus};
use api::meta::reasons;
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Error, Run, target};
use crate::record::{Failed, succeeded};

/// Words for a repository that is as it should be.
const UP_TO_DATE: &str = "repository up-to-date";
/// Type of the condition that names markers without effect.
const MARKERS_IGNORED: &str = "MarkersIgnored";

/// The status after a run.
pub(crate) fn ran(
    object: &ImageUpdateAutomation,
    policies: BTreeMap<String, ImageRef>,
    run: &Run,
    now: Timestamp,
) -> ImageUpdateAutomationStatus {
    let mut status = succeeded(object, UP_TO_DATE, now);
    let generation = object.metadata.generation.unwrap_or_default();
    let time = Time(now.round(jiff::Unit::Second).unwrap_or(now));
    if let Some(notes) = &run.notes {
        match notes.as_slice() {
            [] => conditions::remove(&mut status.conditions, MARKERS_IGNORED),
            notes => {
                let fact = Fact::holds(MARKERS_IGNORED, MARKERS_IGNORED, notes.join("\n"));
                conditions::set(&mut status.conditions, fact, generation, now);
            }
        }
    }
    status.observed_policies = policies;
    status.observed_source_revision = Some(run.revision.clone());
    status.last_automation_run_time = Some(time.clone());
    if let Some(pushed) = &run.pushed {
        status.last_push_commit = Some(pushed.commit.to_string());
        status.last_push_time = Some(time);
    }
    status
}

/// The status after a failure. What was observed before stays, so that the next run looks at everything again.
pub(crate) fn failed(
    object: &ImageUpdateAutomation,
    error: &Error,
    now: Timestamp,
) -> Failed<ImageUpdateAutomationStatus> {
    Failed::new(object, error, verdict(error), now)
}

/// The reason of a failure, and whether only a change of the object helps.
fn verdict(error: &Error) -> (&'static str, bool) {
    use super::message::Error as Message;
    use remote_access::error::IdentityError::FeatureGateDisabled;
    use remote_access::git::Error as Reach;
    match error {
        Error::Selector(_) => ("InvalidPolicySelector", true),
        Error::Target(target::Error::Invalid(_)) => ("InvalidSourceConfiguration", true),
        Error::Target(target::Error::Blocked(_) | target::Error::Denied(_)) => (reasons::ACCESS_DENIED, true),
        Error::Target(target::Error::Reach(Reach::Identity(FeatureGateDisabled))) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Target(_) | Error::Signing(_) => ("SourceManagerFailed", false),
        Error::Message(Message::RemovedField { .. }) => ("RemovedTemplateField", true),
        Error::Checkout(_) | Error::Push(_) | Error::Races(_) | Error::Message(_) => {
            (reasons::GIT_OPERATION_FAILED, false)
        }
        Error::Update(_) | Error::Edit(_) | Error::Abandoned => ("UpdateFailed", false),
    }
}
