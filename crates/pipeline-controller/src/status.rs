//! The next status of a Pipeline, beside what the planner says of it. Pure.

use api::delivery::{EnvironmentStatus, Pipeline, PipelineStatus};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use controller_kit::record::begun;
use jiff::Timestamp;
use promotion::plan::Wait;

/// A target could not be read, or no change could be made for it.
const TARGET_NOT_READABLE: &str = "TargetNotReadable";
/// Environments that need each other.
pub(crate) const INVALID_SPEC: &str = "InvalidSpec";
/// Applications that are selected by labels are not there, or must not be looked at.
pub(crate) const APPS_NOT_FOUND: &str = "AppsNotFound";
/// A promotion that ended could not be attested. Others go on.
const ATTESTATION_FAILED: &str = "AttestationFailed";
/// Annotation that cannot be read.
pub(crate) const INVALID_ANNOTATION: &str = "InvalidAnnotation";
/// Texts of one environment.
const MAX_WAITS: usize = 10;
/// Characters of the line about all environments.
const MAX_SUMMARY: usize = 4000;
/// Characters of one.
const MAX_WAIT: usize = 500;

/// What was found, with its conditions.
pub(crate) fn concluded(
    pipeline: &Pipeline,
    observed: PipelineStatus,
    waits: &[Vec<Wait>],
    (refused, unsigned): (&[String], Option<String>),
    now: Timestamp,
) -> PipelineStatus {
    let mut status = framed(pipeline, observed);
    for (environment, waits) in status.environments.iter_mut().zip(waits) {
        let texts = waits.iter().map(ToString::to_string);
        environment.waits = texts
            .map(|text| text.chars().take(MAX_WAIT).collect())
            .take(MAX_WAITS)
            .collect();
    }
    let ready = match (refused, unsigned) {
        ([], None) => Fact::holds(condition_types::READY, reasons::SUCCEEDED, summary(&status)),
        ([], Some(problem)) => {
            let text = format!("a promotion is not attested: {problem}");
            Fact::does_not_hold(condition_types::READY, ATTESTATION_FAILED, text)
        }
        (refused, _) => {
            let text = refused
                .iter()
                .take(MAX_WAITS)
                .cloned()
                .collect::<Vec<_>>()
                .join("; ");
            Fact::does_not_hold(condition_types::READY, TARGET_NOT_READABLE, text)
        }
    };
    settle(pipeline, &mut status, ready, now);
    status
}

/// What people wrote cannot be carried out, so nothing is promoted.
pub(crate) fn invalid(
    pipeline: &Pipeline,
    reason: &'static str,
    problem: &str,
    now: Timestamp,
) -> PipelineStatus {
    let mut status = framed(pipeline, pipeline.status.clone().unwrap_or_default());
    let text = format!("nothing is promoted: {problem}");
    let ready = Fact::does_not_hold(condition_types::READY, reason, text);
    settle(pipeline, &mut status, ready, now);
    status
}

/// The status with the request that is handled.
fn framed(pipeline: &Pipeline, mut status: PipelineStatus) -> PipelineStatus {
    status.last_handled_reconcile_at = begun(pipeline).last_handled_reconcile_at;
    status
}

fn settle(pipeline: &Pipeline, status: &mut PipelineStatus, ready: Fact, now: Timestamp) {
    let generation = pipeline.metadata.generation.unwrap_or_default();
    conditions::set(&mut status.conditions, ready, generation, now);
    status.observed_generation = Some(generation);
}

/// Where the releases are, in one line.
fn summary(status: &PipelineStatus) -> String {
    let environments = status.environments.iter().map(one);
    let text = environments.collect::<Vec<_>>().join("; ");
    match text.char_indices().nth(MAX_SUMMARY) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn one(environment: &EnvironmentStatus) -> String {
    let name = &environment.name;
    let has = match environment.release {
        Some(release) => format!("release {release}"),
        None => {
            let targets = environment.targets.iter().map(|target| target.release);
            let numbers: Vec<_> = targets.flatten().map(|release| release.to_string()).collect();
            match numbers.is_empty() {
                true => "no release".to_owned(),
                false => format!("releases {}", numbers.join(", ")),
            }
        }
    };
    let is_changing = environment.targets.iter().any(|target| target.change.is_some());
    let next = match environment.entering.filter(|_| is_changing) {
        // The targets have it, and are not healthy with it yet.
        Some(release) if environment.release == Some(release) => " on its way".to_owned(),
        Some(release) => format!(", release {release} on its way"),
        None => String::new(),
    };
    let bad = environment.targets.iter().find(|target| !target.ready);
    let bad = match bad.and_then(|target| Some((&target.name, target.message.as_ref()?))) {
        Some((target, message)) => format!(", {target} is not healthy: {message}"),
        None => String::new(),
    };
    let waits = match environment.waits.first() {
        Some(wait) => format!(", waits: {wait}"),
        None => String::new(),
    };
    format!("{name}: {has}{next}{bad}{waits}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_is_named_once() {
        for (fields, expected) in [
            (json!({"release": 2}), "eu: release 2"),
            (json!({"release": 2, "entering": 2}), "eu: release 2 on its way"),
            (
                json!({"release": 1, "entering": 2}),
                "eu: release 1, release 2 on its way",
            ),
            (json!({"entering": 2}), "eu: releases 7, release 2 on its way"),
        ] {
            let mut environment = json!({"name": "eu", "targets": [{"name": "a", "release": 7, "ready": true, "change": {"release": 2}}]});
            for (name, value) in fields.as_object().unwrap() {
                environment[name] = value.clone();
            }
            let environment = serde_json::from_value(environment).unwrap();
            assert_eq!(one(&environment), expected);
        }
    }
}
