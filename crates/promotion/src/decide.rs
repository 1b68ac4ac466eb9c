//! What a person decides about a pipeline, as a change of its annotations. Used by everything that people decide with.

use api::delivery::{EnvironmentStatus, Pipeline, PipelineStatus, Release};
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use serde::Serialize;
use serde_json::{Value, json};

use crate::decisions::{self, APPROVALS, Approval, Decisions, HOLDS, Hold, PROMOTIONS, Promotion};

/// What a person wants of an environment. A release is meant by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Nothing that is named enters.
    Hold {
        /// The environment; every one if none.
        environment: Option<String>,
        /// The release; every one if none.
        release: Option<u64>,
        /// Why.
        reason: String,
        /// How long; until it is released if none.
        duration: Option<SignedDuration>,
    },
    /// Holds end, as far as they are named.
    Release {
        /// The environment; every one if none.
        environment: Option<String>,
        /// The release; every one if none.
        release: Option<u64>,
    },
    /// A release may enter.
    Approve {
        /// The environment.
        environment: String,
        /// The release; the newest that the environment does not have if none.
        release: Option<u64>,
    },
    /// A release enters again.
    Promote {
        /// The environment.
        environment: String,
        /// The release; the newest that the environment does not have if none.
        release: Option<u64>,
        /// Why.
        reason: String,
    },
    /// The environment goes back, and what it had is held.
    RollBack {
        /// The environment.
        environment: String,
        /// The release; the one that was healthy before if none.
        to: Option<u64>,
        /// Why.
        reason: String,
    },
}

/// Why a wish cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such environment.
    #[error("there is no environment '{name}': it has {known}")]
    NoEnvironment {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Nothing is promoted into a first environment.
    #[error("{0} is a first environment, into which nothing is promoted: change it in Git")]
    First(String),
    /// What people decided so far cannot be read.
    #[error(transparent)]
    Unreadable(#[from] decisions::Error),
    /// There is no such release.
    #[error("there is no release {0}")]
    NoRelease(u64),
    /// The environment has the newest.
    #[error("no release is newer than that of {0}")]
    NothingNewer(String),
    /// There is nothing to go back to.
    #[error("no release is older than that of {0}")]
    NothingOlder(String),
    /// It is no way back.
    #[error(
        "release {release} is not older than what {environment} has; windlass promote gives it a newer one"
    )]
    NotOlder {
        /// The environment.
        environment: String,
        /// The release.
        release: u64,
    },
    /// It was never there.
    #[error("{environment} never had release {release}: it needs approval")]
    NeverThere {
        /// The environment.
        environment: String,
        /// The release.
        release: u64,
    },
    /// The same person approved it before.
    #[error("{by} has approved release {release} already")]
    Approved {
        /// Who.
        by: String,
        /// The release.
        release: u64,
    },
    /// Others have to approve it.
    #[error("{by} is in none of the groups that approve: {groups}")]
    InNoGroup {
        /// Who.
        by: String,
        /// The groups.
        groups: String,
    },
    /// A hold keeps it from it.
    #[error("release {release} is {hold}; release it first")]
    Held {
        /// The release.
        release: u64,
        /// The hold.
        hold: String,
    },
    /// It is there.
    #[error("{environment} has release {release} already")]
    There {
        /// The environment.
        environment: String,
        /// The release.
        release: u64,
    },
    /// What cannot be read stops the pipeline.
    #[error("there are {} of these already: release holds first", decisions::MAX_ENTRIES)]
    TooMany,
    /// There is no such hold.
    #[error("nothing such is held back")]
    NotHeld,
}

/// Who decides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Person<'a> {
    /// Name of the user.
    pub name: &'a str,
    /// Groups that the API server counts the user to.
    pub groups: &'a [String],
}

/// Annotations that a wish sets, with null where one is removed; and what was done, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// By name of the annotation.
    pub annotations: Value,
    /// For people.
    pub said: String,
}

/// Grants a wish of a person.
///
/// # Errors
/// When there is nothing that the wish could be about, or what people decided before cannot be read.
pub fn decide(pipeline: &Pipeline, wish: &Wish, by: Person<'_>, now: Timestamp) -> Result<Decided, Refusal> {
    let annotations = pipeline.metadata.annotations.as_ref();
    let mut decisions = Decisions::parse(|name| Some(annotations?.get(name)?.as_str()))?;
    let nothing = PipelineStatus::default();
    let table = Table {
        pipeline,
        status: pipeline.status.as_ref().unwrap_or(&nothing),
        by: by.name,
        groups: by.groups,
        now,
    };
    let said = match wish {
        Wish::Hold {
            environment,
            release,
            reason,
            duration,
        } => {
            if let Some(environment) = environment {
                table.check(environment)?;
            }
            let until = duration.map(|duration| now.checked_add(duration).unwrap_or(Timestamp::MAX));
            let until = until.map(|until| until.round(Unit::Second).unwrap_or(until));
            table.hold(&mut decisions, environment.as_deref(), *release, reason, until)
        }
        Wish::Release { environment, release } => {
            table.release(&mut decisions, environment.as_deref(), *release)?
        }
        Wish::Approve { environment, release } => table.approve(&mut decisions, environment, *release)?,
        Wish::Promote {
            environment,
            release,
            reason,
        } => table.promote(&mut decisions, environment, *release, reason)?,
        Wish::RollBack {
            environment,
            to,
            reason,
        } => table.roll_back(&mut decisions, environment, *to, reason)?,
    };
    let lengths = [
        decisions.holds.len(),
        decisions.approvals.len(),
        decisions.promotions.len(),
    ];
    if lengths.into_iter().any(|length| length > decisions::MAX_ENTRIES) {
        return Err(Refusal::TooMany);
    }
    let annotations = json!({
        HOLDS: list(&decisions.holds),
        APPROVALS: list(&decisions.approvals),
        PROMOTIONS: list(&decisions.promotions),
    });
    Ok(Decided { annotations, said })
}

/// Returns the release that a wish to promote or to roll back is about, whether or not it would be granted now.
///
/// # Errors
/// When there is no such release.
pub fn meant(pipeline: &Pipeline, wish: &Wish) -> Result<Option<u64>, Refusal> {
    let nothing = PipelineStatus::default();
    let table = Table {
        pipeline,
        status: pipeline.status.as_ref().unwrap_or(&nothing),
        by: "",
        groups: &[],
        now: Timestamp::UNIX_EPOCH,
    };
    match wish {
        Wish::Promote {
            environment, release, ..
        } => {
            table.check_promoted(environment)?;
            Ok(Some(table.meant(environment, *release)?.0))
        }
        Wish::RollBack { environment, to, .. } => Ok(Some(table.way_back(environment, *to)?.1)),
        Wish::Hold { .. } | Wish::Release { .. } | Wish::Approve { .. } => Ok(None),
    }
}

/// The text of an annotation; null removes it.
fn list<T: Serialize>(entries: &[T]) -> Value {
    match entries.is_empty() {
        true => Value::Null,
        false => json!(json!(entries).to_string()),
    }
}

/// What is on the table when a person decides.
struct Table<'a> {
    pipeline: &'a Pipeline,
    status: &'a PipelineStatus,
    by: &'a str,
    groups: &'a [String],
    now: Timestamp,
}

impl Table<'_> {
    fn check(&self, environment: &str) -> Result<(), Refusal> {
        let environments = self.pipeline.spec.environments.iter();
        let names: Vec<&str> = environments.map(|one| one.name.as_str()).collect();
        match names.contains(&environment) {
            true => Ok(()),
            false => Err(Refusal::NoEnvironment {
                name: environment.to_owned(),
                known: names.join(", "),
            }),
        }
    }

    /// Refuses an environment into which nothing is promoted.
    fn check_promoted(&self, environment: &str) -> Result<(), Refusal> {
        self.check(environment)?;
        let spec = &self.pipeline.spec;
        let index = spec.environments.iter().position(|one| one.name == environment);
        match index.is_some_and(|index| spec.needs(index).is_empty()) {
            true => Err(Refusal::First(environment.to_owned())),
            false => Ok(()),
        }
    }

    fn environment(&self, name: &str) -> Option<&EnvironmentStatus> {
        self.status.environments.iter().find(|one| one.name == name)
    }

    /// The release that is meant: by number, or the newest that an environment does not have.
    fn meant(&self, environment: &str, release: Option<u64>) -> Result<(u64, String), Refusal> {
        let has = self.environment(environment).and_then(|one| one.release);
        let releases = self.status.releases.iter();
        let is_meant = |one: &&Release| match release {
            Some(number) => one.number == number,
            None => one.rolled_back.is_none() && Some(one.number) > has,
        };
        let meant = releases.filter(is_meant).max_by_key(|one| one.number);
        match (meant, release) {
            (Some(meant), _) => Ok((meant.number, meant.digest.clone())),
            (None, Some(number)) => Err(Refusal::NoRelease(number)),
            (None, None) => Err(Refusal::NothingNewer(environment.to_owned())),
        }
    }

    fn hold(
        &self,
        decisions: &mut Decisions,
        environment: Option<&str>,
        release: Option<u64>,
        reason: &str,
        until: Option<Timestamp>,
    ) -> String {
        let environment = environment.unwrap_or_default();
        decisions
            .holds
            .retain(|hold| hold.environment != environment || hold.release != release);
        decisions.holds.push(Hold {
            environment: environment.to_owned(),
            release,
            reason: reason.to_owned(),
            by: self.by.to_owned(),
            until,
        });
        format!("{} is held back", place(environment, release))
    }

    fn release(
        &self,
        decisions: &mut Decisions,
        environment: Option<&str>,
        release: Option<u64>,
    ) -> Result<String, Refusal> {
        let is_meant = |hold: &Hold| {
            environment.is_none_or(|environment| environment == hold.environment)
                && (release.is_none() || release == hold.release)
        };
        let (released, kept): (Vec<_>, Vec<_>) = decisions.holds.drain(..).partition(is_meant);
        decisions.holds = kept;
        if released.is_empty() {
            return Err(Refusal::NotHeld);
        }
        let said = released.iter().map(|hold| place(&hold.environment, hold.release));
        Ok(format!("{} released", said.collect::<Vec<_>>().join(", ")))
    }

    fn approve(
        &self,
        decisions: &mut Decisions,
        environment: &str,
        release: Option<u64>,
    ) -> Result<String, Refusal> {
        self.check(environment)?;
        let (number, digest) = self.meant(environment, release)?;
        let group = self.group(environment)?;
        let is_known = |one: &Approval| {
            (one.environment == environment && one.digest == digest)
                && (one.by == self.by && one.group == group)
        };
        if decisions.approvals.iter().any(is_known) {
            return Err(Refusal::Approved {
                by: self.by.to_owned(),
                release: number,
            });
        }
        // Those of releases that are gone, or that their environment has by now, are not needed any more.
        decisions.approvals.retain(|one| {
            let mut releases = self.status.releases.iter();
            let has = self.environment(&one.environment).and_then(|one| one.release);
            releases.any(|release| release.digest == one.digest && Some(release.number) > has)
        });
        decisions.approvals.push(Approval {
            environment: environment.to_owned(),
            digest,
            by: self.by.to_owned(),
            group,
            at: Some(self.now.round(Unit::Second).unwrap_or(self.now)),
        });
        Ok(format!(
            "release {number} is approved for {environment} by {}",
            self.by
        ))
    }

    /// The group for which the person approves; empty where an environment names none.
    fn group(&self, environment: &str) -> Result<String, Refusal> {
        let mut environments = self.pipeline.spec.environments.iter();
        let environment = environments.find(|one| one.name == environment);
        let approvals = environment.and_then(|one| one.approvals.as_ref());
        let Some(approvals) = approvals.filter(|approvals| !approvals.groups.is_empty()) else {
            return Ok(String::new());
        };
        let mut groups = approvals.groups.iter();
        let own = groups.find(|group| self.groups.contains(group));
        own.cloned().ok_or_else(|| Refusal::InNoGroup {
            by: self.by.to_owned(),
            groups: approvals.groups.join(", "),
        })
    }

    fn promote(
        &self,
        decisions: &mut Decisions,
        environment: &str,
        release: Option<u64>,
        reason: &str,
    ) -> Result<String, Refusal> {
        self.check_promoted(environment)?;
        let (number, _) = self.meant(environment, release)?;
        let targets = || {
            self.environment(environment)
                .into_iter()
                .flat_map(|one| &one.targets)
        };
        if targets().next().is_some() && targets().all(|target| target.release == Some(number)) {
            return Err(Refusal::There {
                environment: environment.to_owned(),
                release: number,
            });
        }
        self.check_had(environment, number)?;
        self.check_held(decisions, environment, number)?;
        self.ask(decisions, environment, number, reason);
        Ok(format!("release {number} is promoted to {environment} again"))
    }

    fn roll_back(
        &self,
        decisions: &mut Decisions,
        environment: &str,
        to: Option<u64>,
        reason: &str,
    ) -> Result<String, Refusal> {
        let (from, to) = self.way_back(environment, to)?;
        self.check_held(decisions, environment, to)?;
        self.ask(decisions, environment, to, reason);
        self.hold(decisions, Some(environment), Some(from), reason, None);
        Ok(format!(
            "{environment} goes back to release {to}, and release {from} is held back"
        ))
    }

    /// The release that an environment has, and the one that it would go back to.
    fn way_back(&self, environment: &str, to: Option<u64>) -> Result<(u64, u64), Refusal> {
        self.check_promoted(environment)?;
        let targets = || {
            self.environment(environment)
                .into_iter()
                .flat_map(|one| &one.targets)
        };
        let having = targets().flat_map(|target| {
            let coming = target.change.as_ref().map(|change| change.release);
            target.release.into_iter().chain(coming)
        });
        let nothing = || Refusal::NothingOlder(environment.to_owned());
        let from = having.max().ok_or_else(nothing)?;
        let known = |number: u64| self.status.releases.iter().any(|one| one.number == number);
        let to = match to {
            Some(number) if !known(number) => return Err(Refusal::NoRelease(number)),
            Some(number) if number >= from => {
                return Err(Refusal::NotOlder {
                    environment: environment.to_owned(),
                    release: number,
                });
            }
            Some(number) => number,
            None => {
                let previous = targets().filter_map(|target| target.previous);
                let previous = previous.filter(|number| *number < from && known(*number)).max();
                let older = self.status.releases.iter().map(|one| one.number);
                let had = |number: &u64| self.check_had(environment, *number).is_ok();
                let older = older.filter(|number| *number < from && had(number));
                previous.or_else(|| older.max()).ok_or_else(nothing)?
            }
        };
        self.check_had(environment, to)?;
        Ok((from, to))
    }

    /// Refuses a release that the environment never had: it passed neither the approvals nor the gates there.
    fn check_had(&self, environment: &str, release: u64) -> Result<(), Refusal> {
        let had = self.environment(environment).is_some_and(|one| {
            let mut targets = one.targets.iter();
            one.passed.contains(&release)
                || targets
                    .any(|target| [target.release, target.newest, target.previous].contains(&Some(release)))
        });
        match had {
            true => Ok(()),
            false => Err(Refusal::NeverThere {
                environment: environment.to_owned(),
                release,
            }),
        }
    }

    fn check_held(&self, decisions: &Decisions, environment: &str, release: u64) -> Result<(), Refusal> {
        match decisions.hold(environment, release, self.now) {
            Some(hold) => Err(Refusal::Held {
                release,
                hold: hold.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Asks for a release, in place of what was asked for before.
    fn ask(&self, decisions: &mut Decisions, environment: &str, release: u64, reason: &str) {
        let before = decisions.promotion(environment).map(|one| one.at);
        let up = TimestampRound::new()
            .smallest(Unit::Second)
            .mode(RoundMode::Trunc);
        let now = self.now.round(up).unwrap_or(self.now);
        // Two with the same second would be one.
        let next = before.and_then(|before| before.checked_add(SignedDuration::from_secs(1)).ok());
        let at = next.map_or(now, |next| next.max(now));
        decisions.promotions.retain(|one| one.environment != environment);
        decisions.promotions.push(Promotion {
            environment: environment.to_owned(),
            release,
            reason: reason.to_owned(),
            by: self.by.to_owned(),
            at,
        });
    }
}

/// What a hold is about, for people.
fn place(environment: &str, release: Option<u64>) -> String {
    let release = release.map_or("every release".to_owned(), |release| format!("release {release}"));
    match environment {
        "" => release,
        environment => format!("{release} in {environment}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline() -> Pipeline {
        let target = |release: u64, previous: u64| json!({"name": "t", "release": release, "newest": release, "previous": previous, "ready": true});
        serde_json::from_value(json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1",
            "kind": "Pipeline",
            "metadata": {"name": "shop", "namespace": "team"},
            "spec": {
                "apps": [],
                "environments": [
                    {"name": "dev", "targets": []},
                    {"name": "production", "targets": []},
                    {"name": "new", "targets": []},
                ],
            },
            "status": {
                "releases": [
                    {"number": 3, "digest": "d3", "values": {}},
                    {"number": 4, "digest": "d4", "values": {}},
                    {"number": 5, "digest": "d5", "values": {}},
                    {"number": 6, "digest": "d6", "values": {}, "rolledBack": "dev"},
                ],
                "environments": [
                    {"name": "dev", "release": 5, "targets": [target(5, 4)]},
                    {"name": "production", "release": 4, "targets": [target(4, 3)]},
                    {"name": "new"},
                ],
            },
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-26T12:00:00.7Z".parse().unwrap()
    }

    /// Grants a wish, and keeps it in the pipeline.
    fn granted(pipeline: &mut Pipeline, wish: &Wish) -> Result<String, String> {
        granted_to("ana", &["team"], pipeline, wish)
    }

    fn granted_to(
        name: &str,
        groups: &[&str],
        pipeline: &mut Pipeline,
        wish: &Wish,
    ) -> Result<String, String> {
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        let person = Person {
            name,
            groups: &groups,
        };
        let decided = decide(pipeline, wish, person, now()).map_err(|refusal| refusal.to_string())?;
        let annotations = decided.annotations.as_object().unwrap();
        let kept = pipeline.metadata.annotations.get_or_insert_default();
        for (name, text) in annotations {
            match text.as_str() {
                Some(text) => kept.insert(name.clone(), text.to_owned()),
                None => kept.remove(name),
            };
        }
        Ok(decided.said)
    }

    fn approve(environment: &str, release: Option<u64>) -> Wish {
        Wish::Approve {
            environment: environment.to_owned(),
            release,
        }
    }

    fn promote(release: u64) -> Wish {
        Wish::Promote {
            environment: "production".to_owned(),
            release: Some(release),
            reason: "again".to_owned(),
        }
    }

    fn roll_back(environment: &str, to: Option<u64>) -> Wish {
        Wish::RollBack {
            environment: environment.to_owned(),
            to,
            reason: "crash".to_owned(),
        }
    }

    #[test]
    fn the_newest_release_is_meant_that_the_environment_does_not_have() {
        let said = |environment, number| granted(&mut pipeline(), &approve(environment, number));
        let approved =
            |number, environment| Ok(format!("release {number} is approved for {environment} by ana"));
        assert_eq!(said("production", None), approved(5, "production"));
        assert_eq!(said("new", None), approved(5, "new"));
        assert_eq!(said("production", Some(4)), approved(4, "production"));
        let refused = |environment, number| said(environment, number).unwrap_err();
        assert_eq!(refused("dev", None), "no release is newer than that of dev");
        assert_eq!(refused("dev", Some(9)), "there is no release 9");
        let unknown = "there is no environment 'prod': it has dev, production, new";
        assert_eq!(refused("prod", None), unknown);
    }

    #[test]
    fn a_person_approves_once() {
        let mut pipeline = pipeline();
        granted(&mut pipeline, &approve("production", None)).unwrap();
        let again = granted(&mut pipeline, &approve("production", None)).unwrap_err();
        assert_eq!(again, "ana has approved release 5 already");
    }

    #[test]
    fn people_approve_for_a_group_of_theirs_where_groups_are_named() {
        let mut pipeline = pipeline();
        let environments = pipeline.spec.environments.iter_mut();
        for environment in environments {
            environment.approvals = Some(api::delivery::Approvals {
                required: 1,
                groups: vec!["leads".to_owned(), "ops".to_owned()],
            });
        }
        let wish = approve("production", None);
        let refused = granted_to("ana", &["team"], &mut pipeline, &wish).unwrap_err();
        assert_eq!(refused, "ana is in none of the groups that approve: leads, ops");
        granted_to("ben", &["team", "ops"], &mut pipeline, &wish).unwrap();
        let annotations = pipeline.metadata.annotations.as_ref().unwrap();
        let decisions = Decisions::parse(|name| Some(annotations.get(name)?.as_str())).unwrap();
        let approvers = |groups: &[&str]| -> Vec<&str> {
            let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
            decisions
                .approvers("production", "d5", &groups)
                .into_iter()
                .collect()
        };
        assert_eq!(approvers(&["leads", "ops"]), ["ben"]);
        assert_eq!(approvers(&[]), ["ben"]);
        // An approval for a group that is not asked for any more does not count.
        assert!(approvers(&["leads"]).is_empty());
        let again = granted_to("ben", &["ops"], &mut pipeline, &wish).unwrap_err();
        assert_eq!(again, "ben has approved release 5 already");
    }

    #[test]
    fn approvals_that_are_used_up_are_dropped_and_lists_stay_readable() {
        let mut pipeline = pipeline();
        let used = json!([{"environment": "production", "digest": "d4", "by": "eve"}]).to_string();
        let annotations = pipeline.metadata.annotations.get_or_insert_default();
        annotations.insert(APPROVALS.to_owned(), used);
        granted(&mut pipeline, &approve("production", None)).unwrap();
        let approvals = pipeline.metadata.annotations.as_ref().unwrap()[APPROVALS].clone();
        assert!(
            approvals.contains("d5") && !approvals.contains("d4"),
            "{approvals}"
        );
        let hold = |release: u64| Wish::Hold {
            environment: None,
            release: Some(release),
            reason: "full".to_owned(),
            duration: None,
        };
        for release in 0..decisions::MAX_ENTRIES as u64 {
            granted(&mut pipeline, &hold(release)).unwrap();
        }
        let refused = granted(&mut pipeline, &hold(999)).unwrap_err();
        assert_eq!(refused, "there are 200 of these already: release holds first");
    }

    #[test]
    fn a_rollback_holds_what_was_there() {
        let mut pipeline = pipeline();
        let said = granted(&mut pipeline, &roll_back("production", None)).unwrap();
        assert_eq!(
            said,
            "production goes back to release 3, and release 4 is held back"
        );
        let annotations = pipeline.metadata.annotations.clone().unwrap();
        let read = |name: &str| serde_json::from_str::<Value>(&annotations[name]).unwrap();
        let held = json!([{"environment": "production", "release": 4, "reason": "crash", "by": "ana"}]);
        assert_eq!(read(HOLDS), held);
        let at = "2026-11-26T12:00:00Z";
        let asked =
            json!([{"environment": "production", "release": 3, "reason": "crash", "by": "ana", "at": at}]);
        assert_eq!(read(PROMOTIONS), asked);
        // Forward again: only after the hold is released, and a second later.
        let refused = granted(&mut pipeline, &promote(4)).unwrap_err();
        assert_eq!(
            refused, "production has release 4 already",
            "the status is not there yet"
        );
        let status = pipeline.status.as_mut().unwrap();
        status.environments[1].release = Some(3);
        status.environments[1].targets[0].release = Some(3);
        let refused = granted(&mut pipeline, &promote(4)).unwrap_err();
        assert_eq!(refused, "release 4 is held by ana: crash; release it first");
        let wish = Wish::Release {
            environment: None,
            release: None,
        };
        granted(&mut pipeline, &wish).unwrap();
        assert_eq!(pipeline.metadata.annotations.as_ref().unwrap().get(HOLDS), None);
        let said = granted(&mut pipeline, &promote(4)).unwrap();
        assert_eq!(said, "release 4 is promoted to production again");
        assert!(pipeline.metadata.annotations.unwrap()[PROMOTIONS].contains("12:00:01Z"));
    }

    #[test]
    fn what_an_environment_never_had_needs_approval() {
        let never = "production never had release 5: it needs approval";
        assert_eq!(granted(&mut pipeline(), &promote(5)).unwrap_err(), never);
        // Nor is it a way round approvals to go back to what was passed over.
        let mut pipeline = pipeline();
        let production = &mut pipeline.status.as_mut().unwrap().environments[1];
        (production.release, production.targets[0].release) = (Some(5), Some(5));
        (production.targets[0].newest, production.targets[0].previous) = (Some(5), Some(3));
        let refused = granted(&mut pipeline, &roll_back("production", Some(4))).unwrap_err();
        assert_eq!(refused, "production never had release 4: it needs approval");
        let said = granted(&mut pipeline, &roll_back("production", None)).unwrap();
        assert_eq!(
            said,
            "production goes back to release 3, and release 5 is held back"
        );
    }

    #[test]
    fn there_is_nothing_to_go_back_to() {
        let refused = |environment, to| granted(&mut pipeline(), &roll_back(environment, to)).unwrap_err();
        assert_eq!(refused("new", None), "no release is older than that of new");
        let first = "dev is a first environment, into which nothing is promoted: change it in Git";
        assert_eq!(refused("dev", None), first);
        assert_eq!(refused("production", Some(1)), "there is no release 1");
        let newer = "release 5 is not older than what production has; windlass promote gives it a newer one";
        assert_eq!(refused("production", Some(5)), newer);
    }
}
