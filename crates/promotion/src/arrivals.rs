//! What came of changes: releases that are healthy in a target by now, or have failed there. Pure.

use std::collections::BTreeMap;

use api::delivery::{PipelineStatus, PromotionOutcome, PromotionRecord};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::decisions::Decisions;
use crate::observe::time;

/// Promotions of an environment that its status keeps.
const MAX_HISTORY: usize = 10;
/// Those of them whose attestations it keeps.
const MAX_ATTESTED: usize = 2;
/// Characters of why one failed.
const MAX_MESSAGE: usize = 500;

/// A release that has arrived or failed, with the change that brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The environment.
    pub environment: String,
    /// Number of the release.
    pub release: u64,
    /// The commit that had it.
    pub commit: String,
    /// The targets.
    pub targets: Vec<String>,
    /// Why it failed, if it did.
    pub problem: Option<String>,
    /// When it was found in the branch.
    began: Option<Time>,
    /// When it was asked for, if it did not enter by itself.
    asked: Option<Time>,
}

/// Returns which changes ended between two looks. Targets that arrived by the same commit are one.
pub fn arrivals(before: &PipelineStatus, now: &PipelineStatus) -> Vec<Arrival> {
    let mut all: BTreeMap<(&str, u64, &str, Option<&str>), Arrival> = BTreeMap::new();
    for environment in &before.environments {
        let Some(next) = now.environments.iter().find(|one| one.name == environment.name) else {
            continue;
        };
        for target in &environment.targets {
            let change = target.change.as_ref();
            let change = change.and_then(|change| Some((change, change.commit.as_deref()?)));
            let next = next.targets.iter().find(|one| one.name == target.name);
            let (Some((change, commit)), Some(next)) = (change, next) else {
                continue;
            };
            if next.change.is_some() {
                continue;
            }
            let release = change.release;
            let has_arrived = next.ready && next.release == Some(release);
            let problem = (!has_arrived).then(|| next.message.as_deref().unwrap_or("it is not there"));
            let arrival = all
                .entry((&environment.name, release, commit, problem))
                .or_insert_with(|| Arrival {
                    environment: environment.name.clone(),
                    release,
                    commit: commit.to_owned(),
                    targets: Vec::new(),
                    problem: problem.map(str::to_owned),
                    began: change.at.clone(),
                    asked: change.asked.clone(),
                });
            arrival.targets.push(next.name.clone());
        }
    }
    all.into_values().collect()
}

/// Adds what ended to the histories of the environments. Targets to which one commit came one after another share an entry.
pub fn record(status: &mut PipelineStatus, ended: &[Arrival], decisions: &Decisions, now: Timestamp) {
    for arrival in ended {
        let mut environments = status.environments.iter_mut();
        let Some(environment) = environments.find(|one| one.name == arrival.environment) else {
            continue;
        };
        let outcome = match arrival.problem {
            None => PromotionOutcome::Succeeded,
            Some(_) => PromotionOutcome::Failed,
        };
        let message = arrival.problem.as_deref();
        let message = message.map(|text| text.chars().take(MAX_MESSAGE).collect::<String>());
        let newest = environment.history.first_mut().filter(|known| {
            known.release == arrival.release && known.commit == arrival.commit && known.outcome == outcome
        });
        if let Some(known) = newest {
            let new = arrival
                .targets
                .iter()
                .filter(|name| !known.targets.contains(name));
            let new: Vec<_> = new.cloned().collect();
            known.targets.extend(new);
            known.message = message.or(known.message.take());
            known.ended = Some(time(now));
            known.attestation = None;
            continue;
        }
        let asked = arrival.asked.as_ref().map(|asked| {
            let promotion = decisions.promotion(&arrival.environment);
            match promotion.filter(|one| time(one.at) == *asked) {
                Some(promotion) => promotion.to_string(),
                None => "the failure of a newer release".to_owned(),
            }
        });
        let entry = PromotionRecord {
            release: arrival.release,
            targets: arrival.targets.clone(),
            outcome,
            commit: arrival.commit.clone(),
            asked,
            message,
            attestation: None,
            began: arrival.began.clone(),
            ended: Some(time(now)),
        };
        environment.history.insert(0, entry);
        environment.history.truncate(MAX_HISTORY);
        for older in environment.history.iter_mut().skip(MAX_ATTESTED) {
            older.attestation = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(targets: &Value) -> PipelineStatus {
        serde_json::from_value(json!({"environments": [{"name": "production", "targets": targets}]})).unwrap()
    }

    #[test]
    fn a_change_that_ended_is_told_once() {
        let change = json!({"release": 2, "commit": "abc"});
        let target = |name: &str, release: u64, ready: bool, change: &Value| json!({"name": name, "release": release, "ready": ready, "change": change});
        let before = status(&json!([
            target("eu", 1, true, &change),
            target("us", 1, true, &change),
            target("ap", 1, true, &change),
            target("sa", 1, true, &change),
            target("no", 1, true, &json!({"release": 2})),
        ]));
        let mut failed = target("ap", 2, false, &Value::Null);
        failed["message"] = json!("crash");
        let now = status(&json!([
            target("eu", 2, true, &Value::Null),
            target("us", 2, true, &Value::Null),
            failed,
            target("sa", 1, true, &change),
            target("no", 1, true, &Value::Null),
        ]));
        let found = arrivals(&before, &now);
        let told: Vec<(Vec<String>, Option<&str>)> = found
            .iter()
            .map(|one| (one.targets.clone(), one.problem.as_deref()))
            .collect();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            told,
            [(names(&["eu", "us"]), None), (names(&["ap"]), Some("crash"))]
        );
        assert_eq!(arrivals(&now, &now), []);
        assert_eq!(arrivals(&before, &PipelineStatus::default()), []);
    }

    #[test]
    fn what_ended_is_kept_the_newest_first() {
        let change = json!({"release": 2, "commit": "abc", "at": "2026-11-26T10:00:00Z"});
        let target = |name: &str, release: u64, change: &Value| json!({"name": name, "release": release, "ready": true, "change": change});
        let at = |minute: u32| format!("2026-11-26T10:{minute:02}:00Z").parse().unwrap();
        let mut before = status(&json!([target("eu", 1, &change), target("us", 1, &change)]));
        // One after the other, by one commit.
        for (minute, targets) in [
            (
                1,
                json!([target("eu", 2, &Value::Null), target("us", 1, &change)]),
            ),
            (
                2,
                json!([target("eu", 2, &Value::Null), target("us", 2, &Value::Null)]),
            ),
        ] {
            let mut now = before.clone();
            now.environments[0].targets = status(&targets).environments[0].targets.clone();
            let ended = arrivals(&before, &now);
            record(&mut now, &ended, &Decisions::default(), at(minute));
            before = now;
        }
        let history = serde_json::to_value(&before.environments[0].history).unwrap();
        let expected = json!([{
            "release": 2, "targets": ["eu", "us"], "outcome": "Succeeded",
            "commit": "abc", "began": "2026-11-26T10:00:00Z", "ended": "2026-11-26T10:02:00Z",
        }]);
        assert_eq!(history, expected);

        // By hand, and failed; more than ten are not kept.
        let promotions =
            json!([{"environment": "production", "release": 1, "reason": "incident 12", "by": "ana",
            "at": "2026-11-26T11:00:00Z"}])
            .to_string();
        let decisions =
            Decisions::parse(|name| name.ends_with("/promotions").then_some(promotions.as_str())).unwrap();
        for number in 0..12 {
            let mut change = json!({"release": 1, "commit": format!("c{number}")});
            if number == 11 {
                change["asked"] = json!("2026-11-26T11:00:00Z");
            }
            let mut then = before.clone();
            then.environments[0].targets = status(&json!([target("eu", 2, &change)])).environments[0]
                .targets
                .clone();
            let mut now = then.clone();
            let mut failed = target("eu", 1, &Value::Null);
            failed["ready"] = json!(false);
            failed["message"] = json!("x".repeat(600));
            now.environments[0].targets = status(&json!([failed])).environments[0].targets.clone();
            let ended = arrivals(&then, &now);
            record(&mut now, &ended, &decisions, at(30));
            before = now;
        }
        let history = &before.environments[0].history;
        assert_eq!(history.len(), MAX_HISTORY);
        assert_eq!(history[0].outcome, PromotionOutcome::Failed);
        assert_eq!(history[0].asked.as_deref(), Some("ana: incident 12"));
        assert_eq!(history[1].asked, None);
        assert_eq!(history[0].message.as_ref().map(String::len), Some(MAX_MESSAGE));
    }
}
