//! A pipeline as a board: environments as columns, releases as rows, for people. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::delivery::{
    Environment, EnvironmentStatus, Pipeline, PipelineStatus, Release, TargetStatus, Trigger,
};
use jiff::Timestamp;

use crate::decisions::Decisions;
use crate::observe::soak;
use crate::plan::{Situation, candidates, is_proposed};

/// A pipeline, as people look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// The environments, as in the spec.
    pub columns: Vec<Column>,
    /// The releases, the newest first.
    pub rows: Vec<Row>,
    /// Why what people decided cannot be read; nothing is promoted then.
    pub problem: Option<String>,
    /// The webhooks that start it.
    pub triggers: Vec<Trigger>,
}

/// An environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The environments in which a release must be healthy first. Nothing is promoted into one without.
    pub needs: Vec<String>,
    /// Number of the release that all its targets have.
    pub release: Option<u64>,
    /// Whether all its targets are healthy.
    pub is_healthy: bool,
    /// From when to when its release must be healthy to go on, while it soaks.
    pub soaks: Option<(Timestamp, Timestamp)>,
    /// What the next release waits for.
    pub waits: Vec<String>,
    /// What the next release needs from people.
    pub needs_people: Option<Need>,
    /// Holds of the environment, in words.
    pub holds: Vec<String>,
}

/// What only people can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// To approve a release.
    Approval {
        /// Its number.
        release: u64,
        /// Who has approved it.
        by: Vec<String>,
        /// How many must.
        required: usize,
    },
    /// To release what they hold.
    Release {
        /// Its number.
        release: u64,
        /// The hold, in words.
        hold: String,
    },
}

/// A release, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The release.
    pub release: Release,
    /// What it carries that the one before did not, with the value before.
    pub changed: Vec<(String, Option<String>, String)>,
    /// How it stands in each environment.
    pub cells: Vec<Cell>,
}

/// How a release stands in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// In a word.
    pub state: State,
    /// The targets that it is about.
    pub targets: Vec<Place>,
    /// How many targets the environment has.
    pub of: usize,
}

/// A release in a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The target.
    pub name: String,
    /// In a word.
    pub state: State,
    /// Why it is not healthy.
    pub message: String,
    /// The commit that has it, while it is on its way.
    pub commit: String,
    /// The pull request that proposes it.
    pub pull_request: String,
}

/// How a release stands, from the least that a person has to know to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum State {
    /// It was never there.
    #[default]
    Absent,
    /// It was there, and was healthy for long enough.
    Passed,
    /// It was there or was begun, and an older one is there now.
    Back,
    /// It is the next one, and waits.
    Waiting,
    /// It is there, and healthy.
    Here,
    /// It is on its way.
    Coming,
    /// It is there or was begun, and is not healthy.
    Failed,
}

/// Puts a pipeline on a board.
pub fn board(pipeline: &Pipeline, now: Timestamp) -> Board {
    let annotations = pipeline.metadata.annotations.as_ref();
    let decisions = Decisions::parse(|name| Some(annotations?.get(name)?.as_str()));
    let (decisions, problem) = match decisions {
        Ok(decisions) => (decisions, None),
        Err(error) => (Decisions::default(), Some(error.to_string())),
    };
    let nothing = PipelineStatus::default();
    let status = pipeline.status.as_ref().unwrap_or(&nothing);
    let spec = &pipeline.spec;
    let situation = Situation {
        spec,
        status,
        decisions: &decisions,
        gates: &(),
        refused: &BTreeMap::new(),
        open: &BTreeSet::new(),
        now,
    };
    // The planner knows environments by their place.
    let names = status.environments.iter().map(|one| &one.name);
    let fits = names.eq(spec.environments.iter().map(|one| &one.name));
    let candidates = match fits {
        true => candidates(&situation),
        false => vec![None; spec.environments.len()],
    };
    let unknown = EnvironmentStatus::default();
    let of = |name: &str| {
        status
            .environments
            .iter()
            .find(|one| one.name == name)
            .unwrap_or(&unknown)
    };
    let columns = spec
        .environments
        .iter()
        .enumerate()
        .map(|(index, environment)| Column {
            needs: spec.needs(index).into_iter().map(str::to_owned).collect(),
            ..column(
                environment,
                of(&environment.name),
                candidates[index],
                &decisions,
                now,
            )
        });
    let mut releases: Vec<&Release> = status.releases.iter().collect();
    releases.sort_by_key(|release| std::cmp::Reverse(release.number));
    let rows = releases.iter().enumerate().map(|(at, release)| Row {
        release: (*release).clone(),
        changed: changed(release, releases.get(at + 1).copied()),
        cells: spec
            .environments
            .iter()
            .enumerate()
            .map(|(index, environment)| {
                let is_next = candidates[index].is_some_and(|next| next.number == release.number);
                cell(of(&environment.name), release.number, is_next)
            })
            .collect(),
    });
    Board {
        rows: rows.collect(),
        columns: columns.collect(),
        problem,
        triggers: status.triggers.clone(),
    }
}

fn column(
    environment: &Environment,
    status: &EnvironmentStatus,
    candidate: Option<&Release>,
    decisions: &Decisions,
    now: Timestamp,
) -> Column {
    let name = environment.name.as_str();
    let has_passed = status
        .release
        .is_some_and(|release| status.passed.contains(&release));
    let since = status
        .healthy_since
        .as_ref()
        .filter(|_| !has_passed)
        .map(|since| since.0);
    let soaks = since.and_then(|since| Some((since, since.checked_add(soak(environment)).ok()?)));
    let holds = decisions.holds.iter();
    let holds = holds.filter(|hold| {
        let is_here = hold.environment.is_empty() || hold.environment == name;
        is_here && hold.until.is_none_or(|until| now < until)
    });
    let needs_people = candidate.and_then(|next| {
        if let Some(hold) = decisions.hold(name, next.number, now) {
            return Some(Need::Release {
                release: next.number,
                hold: hold.to_string(),
            });
        }
        let approvals = environment.approvals.as_ref()?;
        let required = approvals.required.max(1) as usize;
        let by: Vec<String> = decisions
            .approvers(name, &next.digest, &approvals.groups)
            .into_iter()
            .map(crate::decisions::shown)
            .collect();
        (by.len() < required).then_some(Need::Approval {
            release: next.number,
            by,
            required,
        })
    });
    Column {
        name: environment.name.clone(),
        needs: Vec::new(),
        release: status.release,
        is_healthy: !status.targets.is_empty() && status.targets.iter().all(|target| target.ready),
        soaks: soaks.filter(|(_, until)| now < *until),
        waits: status.waits.clone(),
        needs_people,
        holds: holds
            .map(|hold| match hold.release {
                Some(release) => format!("release {release} is {hold}"),
                None => hold.to_string(),
            })
            .collect(),
    }
}

fn cell(status: &EnvironmentStatus, release: u64, is_next: bool) -> Cell {
    let targets: Vec<Place> = status
        .targets
        .iter()
        .filter_map(|target| place(target, release))
        .collect();
    let worst = targets.iter().map(|target| target.state).max();
    let passed = status.passed.contains(&release).then_some(State::Passed);
    let waiting = is_next.then_some(State::Waiting);
    Cell {
        state: worst.max(passed).max(waiting).unwrap_or_default(),
        targets,
        of: status.targets.len(),
    }
}

/// A release in a target; None if it has never been there.
fn place(target: &TargetStatus, release: u64) -> Option<Place> {
    let change = target.change.as_ref().filter(|change| change.release == release);
    let is_there = target.release == Some(release);
    let was_begun = target.newest == Some(release);
    let state = match change {
        Some(_) => State::Coming,
        None if is_there && target.ready => State::Here,
        None if was_begun && target.ready => State::Back,
        None if is_there || was_begun => State::Failed,
        None => return None,
    };
    Some(Place {
        name: target.name.clone(),
        state,
        message: target.message.clone().unwrap_or_default(),
        commit: change
            .and_then(|change| change.commit.clone())
            .unwrap_or_default(),
        pull_request: change
            .filter(|change| is_proposed(change))
            .and_then(|change| change.pull_request.clone())
            .unwrap_or_default(),
    })
}

/// What differs from the release before.
fn changed(release: &Release, before: Option<&Release>) -> Vec<(String, Option<String>, String)> {
    let old = |field: &String| before.and_then(|before| before.values.get(field).cloned());
    let values = release.values.iter();
    let changed = values.map(|(field, value)| (field.clone(), old(field), value.clone()));
    changed
        .filter(|(_, old, new)| old.as_ref() != Some(new))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pipeline() -> Pipeline {
        let target = |name: &str, release: u64, ready: bool| json!({"name": name, "release": release, "newest": release, "ready": ready});
        let mut late = target("eu", 5, false);
        late["message"] = json!("crash");
        let mut coming = target("us", 4, true);
        coming["newest"] = json!(5);
        coming["change"] = json!({"release": 5, "commit": "abc"});
        let release = |number: u64, chart: &str, digest: &str| json!({"number": number, "digest": digest, "values": {"chart": chart, "web": "v1"}});
        serde_json::from_value(json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1",
            "kind": "Pipeline",
            "metadata": {"name": "shop", "annotations": {
                "delivery.windlass.dev/holds": r#"[{"environment": "staging", "release": 6, "by": "ana"}]"#,
            }},
            "spec": {"apps": [], "environments": [
                {"name": "dev", "targets": [{}], "soak": "1h"},
                {"name": "staging", "targets": [{}]},
                {"name": "production", "targets": [{"namespace": "eu"}, {"namespace": "us"}]},
                {"name": "late", "targets": [{}], "needs": ["staging"], "approvals": {"required": 2}},
            ]},
            "status": {
                "releases": [release(4, "1", "d4"), release(5, "2", "d5"), release(6, "3", "d6")],
                "environments": [
                    {"name": "dev", "release": 6, "healthySince": "2026-11-26T11:30:00Z", "passed": [5, 6],
                        "targets": [target("dev", 6, true)]},
                    {"name": "staging", "release": 5, "passed": [4, 5], "targets": [target("staging", 5, true)]},
                    {"name": "production", "waits": ["eu: crash"], "targets": [late, coming]},
                    {"name": "late", "release": 4, "targets": [target("late", 4, true)]},
                ],
            },
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-26T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn releases_stand_in_the_environments() {
        let board = board(&pipeline(), now());
        let rows: Vec<(u64, Vec<State>)> = board
            .rows
            .iter()
            .map(|row| {
                (
                    row.release.number,
                    row.cells.iter().map(|cell| cell.state).collect(),
                )
            })
            .collect();
        use State::{Absent, Failed, Here, Passed, Waiting};
        let wanted = [
            (6, vec![Here, Waiting, Absent, Absent]),
            (5, vec![Passed, Here, Failed, Waiting]),
            (4, vec![Absent, Passed, Here, Here]),
        ];
        assert_eq!(rows, wanted);
        assert_eq!(board.rows[1].cells[2].targets[1].commit, "abc");
        assert_eq!(board.rows[1].cells[2].targets[0].message, "crash");
        let changed = [("chart".to_owned(), Some("2".to_owned()), "3".to_owned())];
        assert_eq!(board.rows[0].changed, changed);
        assert_eq!(board.rows[2].changed.len(), 2, "the oldest that is known");
    }

    #[test]
    fn an_environment_says_what_it_needs_of_people() {
        let mut pipeline = pipeline();
        let needs = |pipeline: &Pipeline| -> Vec<Option<Need>> {
            let columns = board(pipeline, now()).columns;
            columns.into_iter().map(|column| column.needs_people).collect()
        };
        let held = Need::Release {
            release: 6,
            hold: "held by ana".to_owned(),
        };
        let approval = Need::Approval {
            release: 5,
            by: Vec::new(),
            required: 2,
        };
        assert_eq!(needs(&pipeline), [None, Some(held), None, Some(approval)]);
        let text = r#"[{"environment": "late", "digest": "d5", "by": "ben"}]"#;
        let annotations = pipeline.metadata.annotations.get_or_insert_default();
        annotations.insert(crate::decisions::APPROVALS.to_owned(), text.to_owned());
        assert!(matches!(&needs(&pipeline)[3], Some(Need::Approval { by, .. }) if by == &["ben"]));
        pipeline
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(crate::decisions::HOLDS.to_owned(), "{".to_owned());
        assert!(board(&pipeline, now()).problem.is_some());
    }

    #[test]
    fn what_was_taken_back_has_not_failed() {
        let mut pipeline = pipeline();
        let target = &mut pipeline.status.as_mut().unwrap().environments[1].targets[0];
        (target.release, target.newest) = (Some(4), Some(5));
        assert_eq!(board(&pipeline, now()).rows[1].cells[1].state, State::Back);
    }

    #[test]
    fn a_release_soaks_until_it_may_go_on() {
        let mut pipeline = pipeline();
        let soaks = |pipeline: &Pipeline, now| board(pipeline, now).columns[0].soaks;
        assert_eq!(soaks(&pipeline, now()), None, "it has passed");
        pipeline.status.as_mut().unwrap().environments[0].passed = vec![5];
        let (since, until) = soaks(&pipeline, now()).unwrap();
        assert_eq!(
            (since.to_string(), until.to_string()),
            (
                "2026-11-26T11:30:00Z".to_owned(),
                "2026-11-26T12:30:00Z".to_owned()
            )
        );
        assert_eq!(soaks(&pipeline, until), None);
    }

    #[test]
    fn a_pipeline_that_was_never_looked_at_has_columns_only() {
        let mut pipeline = pipeline();
        pipeline.status = None;
        let board = board(&pipeline, now());
        assert_eq!((board.columns.len(), board.rows.len()), (4, 0));
        assert!(!board.columns[0].is_healthy);
    }
}
