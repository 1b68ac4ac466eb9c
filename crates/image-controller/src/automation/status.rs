//! The next status of an ImageUpdateAutomation. Pure.

use std::collections::BTreeMap;

use api::image::{ImageRef, ImageUpdateAutomation, ImageUpdateAutomationStatus};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::error::Error;
use super::run::{Proposed, Run};
use super::{chosen, target, way, way_back};
use controller_kit::record::{Failed, succeeded};

/// Words for a repository that is as it should be.
const UP_TO_DATE: &str = "repository up-to-date";
/// Type of the condition that names markers without effect.
const MARKERS_IGNORED: &str = "MarkersIgnored";
/// Type of the condition that names pull requests.
const PROPOSED: &str = "Proposed";
/// Groups of changes that are shown.
const MAX_LINES: usize = 10;

/// The status after a run.
pub(crate) fn ran(
    object: &ImageUpdateAutomation,
    policies: BTreeMap<String, ImageRef>,
    run: &Run,
    now: Timestamp,
) -> ImageUpdateAutomationStatus {
    let lines: Vec<_> = run
        .proposed
        .iter()
        .filter(|proposed| !proposed.line.is_empty())
        .collect();
    let mut status = succeeded(object, &standing(&lines), now);
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
    match lines.first() {
        Some(first) => {
            let fact = Fact::holds(PROPOSED, first.reason, standing(&lines));
            conditions::set(&mut status.conditions, fact, generation, now);
        }
        None => conditions::remove(&mut status.conditions, PROPOSED),
    }
    status.observed_policies = policies;
    // What was proposed is not in the branch: the next run must look, also if it commits to it.
    let is_there = run.proposed.is_empty();
    status.observed_source_revision = Some(run.revision.clone()).filter(|_| is_there);
    status.last_automation_run_time = Some(time.clone());
    if let Some(pushed) = &run.pushed {
        status.last_push_commit = Some(pushed.commit.to_string());
        status.last_push_time = Some(time);
    }
    status
}

/// The status while no window is open.
pub(crate) fn waits(
    object: &ImageUpdateAutomation,
    until: Timestamp,
    now: Timestamp,
) -> ImageUpdateAutomationStatus {
    let message = format!("changes wait for the window that opens at {until}");
    let mut status = succeeded(object, &message, now);
    status.observed_source_revision = None; // the branch was not looked at
    status
}

/// The message of the Ready condition.
pub(crate) fn message(status: &ImageUpdateAutomationStatus) -> &str {
    let mut conditions = status.conditions.iter();
    let ready = conditions.find(|condition| condition.type_ == condition_types::READY);
    ready.map_or(UP_TO_DATE, |ready| ready.message.as_str())
}

/// Where the groups of changes stand.
fn standing(lines: &[&Proposed]) -> String {
    if lines.is_empty() {
        return UP_TO_DATE.to_owned();
    }
    let mut text: Vec<&str> = lines
        .iter()
        .take(MAX_LINES)
        .map(|proposed| proposed.line.as_str())
        .collect();
    let more = format!("and {} more", lines.len().saturating_sub(MAX_LINES));
    if lines.len() > MAX_LINES {
        text.push(&more);
    }
    text.join("\n")
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
        Error::Namespaces(chosen::Namespaces::Blocked(_))
        | Error::Target(target::Error::Blocked(_) | target::Error::Denied(_)) => {
            (reasons::ACCESS_DENIED, true)
        }
        Error::Target(target::Error::Reach(Reach::Identity(FeatureGateDisabled))) => {
            (reasons::FEATURE_GATE_DISABLED, true)
        }
        Error::Way(way::Error::Invalid { .. }) => ("InvalidChangePolicy", false),
        Error::Way(way::Error::Read(_)) => ("ChangePolicyNotFound", false),
        Error::Namespaces(chosen::Namespaces::Invalid)
        | Error::Scope(_)
        | Error::Report(_)
        | Error::WayBack(way_back::Error::Invalid(_)) => ("InvalidAnnotation", true),
        Error::WayBack(_) | Error::NotRecorded(_) => (reasons::FAILED, false),
        Error::SignIn(_) | Error::Forge(_) => ("ForgeOperationFailed", false),
        Error::Target(_) | Error::Signing(_) => ("SourceManagerFailed", false),
        Error::Message(Message::RemovedField { .. }) => ("RemovedTemplateField", true),
        Error::Checkout(_) | Error::Push(_) | Error::Races(_) | Error::Message(_) => {
            (reasons::GIT_OPERATION_FAILED, false)
        }
        Error::Update(_) | Error::Edit(_) | Error::Abandoned => ("UpdateFailed", false),
    }
}
