//! What came of changes: releases that are healthy in a target by now, or have failed there. Pure.

use std::collections::BTreeMap;

use api::delivery::PipelineStatus;

/// A release that has arrived or failed, with the change that brought it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) environment: String,
    pub(crate) release: u64,
    pub(crate) commit: String,
    /// The targets.
    pub(crate) targets: Vec<String>,
    /// Why it failed, if it did.
    pub(crate) problem: Option<String>,
}

/// Returns which changes ended between two looks. Targets that arrived by the same commit are one.
pub(crate) fn arrivals(before: &PipelineStatus, now: &PipelineStatus) -> Vec<Arrival> {
    let mut all: BTreeMap<(&str, u64, &str, Option<&str>), Vec<String>> = BTreeMap::new();
    for environment in &before.environments {
        let Some(next) = now.environments.iter().find(|one| one.name == environment.name) else {
            continue;
        };
        for target in &environment.targets {
            let change = target.change.as_ref();
            let change = change.and_then(|change| Some((change.release, change.commit.as_deref()?)));
            let next = next.targets.iter().find(|one| one.name == target.name);
            let (Some((release, commit)), Some(next)) = (change, next) else {
                continue;
            };
            if next.change.is_some() {
                continue;
            }
            let has_arrived = next.ready && next.release == Some(release);
            let problem = (!has_arrived).then(|| next.message.as_deref().unwrap_or("it is not there"));
            all.entry((&environment.name, release, commit, problem))
                .or_default()
                .push(next.name.clone());
        }
    }
    let all = all.into_iter();
    all.map(|((environment, release, commit, problem), targets)| Arrival {
        environment: environment.to_owned(),
        release,
        commit: commit.to_owned(),
        targets,
        problem: problem.map(str::to_owned),
    })
    .collect()
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
}
