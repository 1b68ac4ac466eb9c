//! Checks of environments: conditions that must hold for a release to count as healthy where it is.
//!
//! They are looked at until the release has passed, and as long as its failure would have the target go back; then never again.

use std::collections::BTreeMap;

use api::delivery::{Environment, EnvironmentStatus, Pipeline, PipelineSpec, PipelineStatus, Release};
use jiff::Timestamp;
use promotion::observe::{Health, Seen, entered_lately, release_of};
use promotion::values::digest;
use tokio::time::Instant;

use crate::context::Context;
use crate::gates::{ALL_TIMEOUT, Closed, Looking, evaluate};

/// Has what the checks say count as the health of targets that are healthy otherwise. Returns whether they have to be looked at again.
pub(crate) async fn look(
    object: &Pipeline,
    spec: &PipelineSpec,
    before: &PipelineStatus,
    seen: &mut [Vec<Seen>],
    context: &Context,
) -> bool {
    let (now, deadline) = (Timestamp::now(), Instant::now() + ALL_TIMEOUT);
    let nothing = EnvironmentStatus::default();
    let mut is_polled = false;
    for (environment, targets) in spec.environments.iter().zip(seen) {
        if environment.checks.is_empty() {
            continue;
        }
        let mut known = before.environments.iter();
        let known = known.find(|one| one.name == environment.name).unwrap_or(&nothing);
        // Once for each release.
        let mut answers: BTreeMap<String, Option<Health>> = BTreeMap::new();
        for (target, seen) in environment.targets.iter().zip(targets) {
            if seen.health != Health::Ready || seen.values.is_empty() {
                continue;
            }
            let release = release_of(&seen.values, &before.releases);
            let mut releases = before.releases.iter();
            let release = release.and_then(|number| releases.find(|one| one.number == number));
            let name = target.called();
            if !is_due(environment, known, &name, release, now) {
                continue;
            }
            is_polled = true;
            let release = match release {
                Some(release) => release.clone(),
                // It becomes one when it is healthy.
                None => Release {
                    digest: digest(&seen.values),
                    values: seen.values.clone(),
                    ..Release::default()
                },
            };
            if !answers.contains_key(&release.digest) {
                let looking = Looking {
                    pipeline: object,
                    status: before,
                    environment: &environment.name,
                    release: &release,
                    deadline,
                };
                let answer = all(environment, looking, context).await;
                answers.insert(release.digest.clone(), answer);
            }
            if let Some(Some(health)) = answers.get(&release.digest) {
                seen.health = health.clone();
            }
        }
    }
    is_polled
}

/// Returns whether it matters now what the checks say of a target.
fn is_due(
    environment: &Environment,
    known: &EnvironmentStatus,
    target: &str,
    release: Option<&Release>,
    now: Timestamp,
) -> bool {
    let Some(release) = release else {
        return true;
    };
    let has_passed = known.passed.contains(&release.number);
    let mut targets = known.targets.iter();
    let target = targets.find(|one| one.name == target);
    let may_go_back = target.is_some_and(|target| {
        target.newest == Some(release.number) && entered_lately(target, environment, now)
    });
    !has_passed || may_go_back
}

/// What all checks say together: None if they hold.
async fn all(environment: &Environment, looking: Looking<'_>, context: &Context) -> Option<Health> {
    let mut unknown = None;
    for check in &environment.checks {
        let Err(closed) = evaluate(check, looking, context).await else {
            continue;
        };
        let text = format!("check {}: {}", check.name, closed.text());
        match closed {
            Closed::False(_) => return Some(Health::Failed(text)),
            Closed::Unknown(_) => unknown = unknown.or(Some(Health::Progressing(text))),
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checks_are_due_until_a_release_has_passed_and_may_not_go_back_any_more() {
        let at = |minute: u32| format!("2026-11-26T10:{minute:02}:00Z").parse().unwrap();
        let environment = |rollout: serde_json::Value| -> Environment {
            serde_json::from_value(
                json!({"name": "production", "targets": [{"namespace": "eu"}], "rollout": rollout}),
            )
            .unwrap()
        };
        let known = |passed: &[u64], newest: u64| -> EnvironmentStatus {
            let target =
                json!({"name": "eu", "newest": newest, "entered": "2026-11-26T10:00:00Z", "ready": true});
            serde_json::from_value(json!({"name": "production", "passed": passed, "targets": [target]}))
                .unwrap()
        };
        let release = Release {
            number: 2,
            ..Release::default()
        };
        let (plain, back) = (
            environment(json!({})),
            environment(json!({"rollbackWithin": "15m"})),
        );
        for (environment, known, release, minute, expected) in [
            (&plain, known(&[1], 2), Some(&release), 1, true),
            (&plain, known(&[1, 2], 2), Some(&release), 1, false),
            (&plain, known(&[1, 2], 2), None, 1, true),
            (&back, known(&[1, 2], 2), Some(&release), 14, true),
            (&back, known(&[1, 2], 2), Some(&release), 16, false),
            (&back, known(&[1, 2], 3), Some(&release), 1, false),
            (&plain, EnvironmentStatus::default(), Some(&release), 1, true),
        ] {
            let is_due = is_due(environment, &known, "eu", release, at(minute));
            assert_eq!(is_due, expected, "{known:?} {minute}");
        }
    }
}
