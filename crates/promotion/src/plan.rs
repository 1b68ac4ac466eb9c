//! What is due: which release goes into which target now, and what the others wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::delivery::{
    Environment, EnvironmentStatus, OnFailure, PipelineSpec, PipelineStatus, Release, TargetChange,
    TargetStatus,
};
use change_window::window::{self, Gate};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::decisions::{Decisions, shown};
use crate::observe::{soak, time, timeout};

/// A release goes into a target. Indices are those of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// Of the environment.
    pub environment: usize,
    /// Of the target in it.
    pub target: usize,
    /// Number of the release.
    pub release: u64,
    /// When a person or a failure asked for it, although a newer release has been there.
    pub asked: Option<Timestamp>,
}

/// A cause for which something does not go on, and the time at which it ends, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The cause.
    pub cause: String,
    /// When it ends.
    pub until: Option<Timestamp>,
}

impl Wait {
    /// A cause without a time.
    pub fn new(cause: impl Into<String>) -> Self {
        let cause = cause.into();
        Self { cause, until: None }
    }

    fn until(cause: impl Into<String>, time: Timestamp) -> Self {
        Self {
            until: Some(time),
            ..Self::new(cause)
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.cause)?;
        match self.until {
            Some(until) => {
                let until = until.to_zoned(TimeZone::UTC);
                write!(formatter, " {}", until.strftime("%a %Y-%m-%d %H:%M:%S UTC"))
            }
            None => Ok(()),
        }
    }
}

/// What else than time and people keeps a release out: looked at before, for the [`candidates`].
pub trait Gates {
    /// Returns what keeps a release out of an environment. A gate that does not answer is closed, and is among them.
    fn closed(&self, environment: &str, release: &Release) -> Vec<Wait>;
}

/// No gates.
impl Gates for () {
    fn closed(&self, _: &str, _: &Release) -> Vec<Wait> {
        Vec::new()
    }
}

/// What a plan is made of.
pub struct Situation<'a> {
    /// The pipeline.
    pub spec: &'a PipelineSpec,
    /// As [`crate::observe::observe`] gives it.
    pub status: &'a PipelineStatus,
    /// What people decided.
    pub decisions: &'a Decisions,
    /// The gates.
    pub gates: &'a dyn Gates,
    /// Targets, by environment and index, for which no change could be made a moment ago, and why.
    pub refused: &'a BTreeMap<(usize, usize), String>,
    /// Targets, by environment and index, whose pull request was found open a moment ago.
    pub open: &'a BTreeSet<(usize, usize)>,
    /// The time.
    pub now: Timestamp,
}

/// What is due, and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is due, in order.
    pub steps: Vec<Step>,
    /// For each environment, what the next release waits for.
    pub waits: Vec<Vec<Wait>>,
    /// When to look again at the latest, if nothing happens before.
    pub again: Option<Timestamp>,
}

/// Returns the release that would enter each environment next, if there is one.
pub fn candidates<'a>(situation: &Situation<'a>) -> Vec<Option<&'a Release>> {
    let environments = 0..situation.spec.environments.len();
    environments.map(|index| situation.candidate(index)).collect()
}

/// Returns what is due.
pub fn plan(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    for index in 0..situation.spec.environments.len() {
        let mut waits = situation.finish(index, &mut plan.steps);
        waits.extend(situation.go_back(index, &mut plan.steps));
        waits.extend(match situation.candidate(index) {
            Some(release) => situation.enter(index, release, &mut plan.steps),
            None => situation.coming(index),
        });
        plan.waits.push(waits);
    }
    // A soak time passes also where nothing waits for it yet.
    let soaking = situation
        .spec
        .environments
        .iter()
        .zip(&situation.status.environments);
    let soaking = soaking.filter_map(|(environment, status)| soaks_until(environment, status));
    let untils = plan.waits.iter().flatten().filter_map(|wait| wait.until);
    let changes = situation
        .spec
        .environments
        .iter()
        .zip(&situation.status.environments);
    let late = changes.flat_map(|(environment, status)| late(environment, status));
    let promotions = situation.decisions.promotions.iter().map(|one| one.at);
    plan.again = untils
        .chain(promotions)
        .chain(soaking)
        .chain(late)
        .filter(|time| *time > situation.now)
        .min();
    plan
}

/// When the release of an environment has been healthy for long enough; None if it is not healthy, or has passed.
fn soaks_until(environment: &Environment, status: &EnvironmentStatus) -> Option<Timestamp> {
    let (release, since) = (status.release?, status.healthy_since.as_ref()?);
    if status.passed.contains(&release) {
        return None;
    }
    since.0.checked_add(soak(environment)).ok()
}

/// When the changes that are on their way to an environment count as failed.
fn late<'a>(
    environment: &Environment,
    status: &'a EnvironmentStatus,
) -> impl Iterator<Item = Timestamp> + 'a {
    let timeout = timeout(environment);
    let changes = status.targets.iter().filter_map(|target| {
        let change = target.change.as_ref()?;
        change.at.as_ref().filter(|_| !is_proposed(change))
    });
    changes.filter_map(move |at| at.0.checked_add(timeout).ok())
}

/// Returns whether a release has passed an environment and is healthy wherever it still is there.
fn has_passed(status: &EnvironmentStatus, release: u64) -> bool {
    let mut having = status
        .targets
        .iter()
        .filter(|target| target.release == Some(release));
    status.passed.contains(&release) && having.all(|target| target.ready)
}

/// Returns whether a release is in a target or on its way into one. A pull request that waits is neither.
fn is_in(status: &EnvironmentStatus, release: u64) -> bool {
    status.targets.iter().any(|target| {
        let change = target.change.as_ref().filter(|change| change.release == release);
        let is_coming = change.is_some_and(|change| !is_proposed(change));
        target.release == Some(release) || is_coming
    })
}

/// Returns whether a change waits in a pull request.
pub fn is_proposed(change: &TargetChange) -> bool {
    change.commit.is_none() && change.pull_request.is_some()
}

/// Returns whether a target has begun with a release, and it came to nothing.
fn has_failed_with(target: &TargetStatus, release: u64) -> bool {
    let is_there = target.release == Some(release) && target.ready;
    let is_coming = target
        .change
        .as_ref()
        .is_some_and(|change| change.release == release);
    target.newest == Some(release) && !is_coming && !is_there
}

impl<'a> Situation<'a> {
    fn environment(&self, name: &str) -> Option<(&'a Environment, &'a EnvironmentStatus)> {
        let index = self.spec.environments.iter().position(|one| one.name == name)?;
        Some((
            &self.spec.environments[index],
            self.status.environments.get(index)?,
        ))
    }

    /// The releases that an environment could still get, the newest first.
    fn wanted(&self, index: usize) -> Vec<&'a Release> {
        let Some(status) = self.status.environments.get(index) else {
            return Vec::new();
        };
        if self.spec.needs(index).is_empty() {
            return Vec::new();
        }
        let lacks = |release: u64| status.targets.iter().any(|target| target.newest < Some(release));
        let releases = self.status.releases.iter();
        let mut wanted: Vec<_> = releases
            .filter(|release| release.rolled_back.is_none() && lacks(release.number))
            .collect();
        wanted.sort_by_key(|release| std::cmp::Reverse(release.number));
        wanted
    }

    fn has_passed_all(&self, index: usize, release: &Release) -> bool {
        let mut needs = self.spec.needs(index).into_iter();
        needs.all(|need| {
            let need = self.environment(need);
            need.is_some_and(|(_, status)| has_passed(status, release.number))
        })
    }

    fn candidate(&self, index: usize) -> Option<&'a Release> {
        let environment = self.spec.environments.get(index)?;
        let status = self.status.environments.get(index)?;
        let entering = status.entering.filter(|release| is_in(status, *release));
        let mut ready = self.wanted(index);
        ready.retain(|release| self.has_passed_all(index, release));
        let is_held = |release: &Release| {
            let hold = self.decisions.hold(&environment.name, release.number, self.now);
            hold.is_some()
        };
        // What has begun goes to its end, unless it is stopped; else the newest. One that is held is only named.
        let mut free = ready.iter().filter(|release| !is_held(release));
        let mut begun = free.clone().filter(|release| Some(release.number) == entering);
        let begun = begun.find(|release| self.stopped(index, release.number).is_none());
        begun.or_else(|| free.next()).or_else(|| ready.first()).copied()
    }

    /// Has changes made that were begun, and of which it is not known whether they were: the process may have been killed.
    fn finish(&self, index: usize, steps: &mut Vec<Step>) -> Vec<Wait> {
        let mut waits = Vec::new();
        let environment = &self.spec.environments[index];
        for (at, target) in self.status.environments[index].targets.iter().enumerate() {
            let Some(change) = target.change.as_ref().filter(|change| change.commit.is_none()) else {
                continue;
            };
            if self.asked(index, target).is_some() {
                continue; // to another release
            }
            if self.open.contains(&(index, at)) {
                let proposed = change.pull_request.iter();
                waits.extend(proposed.map(|text| Wait::new(format!("{}: {text}", target.name))));
                continue;
            }
            let release = change.release;
            let mut releases = self.status.releases.iter();
            let closed = match releases.find(|known| known.number == release) {
                Some(_) if change.asked.is_some() => self.held(environment, release).into_iter().collect(),
                Some(known) => self.closed(environment, known),
                None => Vec::new(),
            };
            let asked = change.asked.as_ref().map(|asked| asked.0);
            if !closed.is_empty() {
                let closed = closed.into_iter().map(|wait| Wait {
                    cause: format!("{}: {}", target.name, wait.cause),
                    ..wait
                });
                waits.extend(closed);
            } else if let Some(message) = self.refused.get(&(index, at)) {
                waits.push(Wait::new(format!("{}: {message}", target.name)));
            } else {
                steps.push(Step {
                    environment: index,
                    target: at,
                    release,
                    asked,
                });
            }
        }
        waits
    }

    /// What a person promotes by hand into a target, or the failure of a newer release has it go back to, as far as that was
    /// not begun; and when that was asked for.
    fn asked(&self, index: usize, target: &TargetStatus) -> Option<(u64, Timestamp)> {
        let promotion = self.decisions.promotion(&self.spec.environments[index].name);
        let promotion = promotion.filter(|one| {
            !self.spec.needs(index).is_empty()
                && one.at <= self.now
                && target.last_asked < Some(time(one.at))
                && target.newest >= Some(one.release)
        });
        match promotion {
            Some(one) => Some((one.release, time(one.at).0)),
            None => {
                let own = target.rollback.as_ref()?;
                Some((own.release, own.at.as_ref()?.0))
            }
        }
    }

    /// Has targets go to the releases that were asked for. Only holds keep them from it.
    fn go_back(&self, index: usize, steps: &mut Vec<Step>) -> Vec<Wait> {
        let environment = &self.spec.environments[index];
        let mut waits = Vec::new();
        for (at, target) in self.status.environments[index].targets.iter().enumerate() {
            let Some((release, asked)) = self.asked(index, target) else {
                continue;
            };
            let named = |cause: &str| Wait::new(format!("{}: {cause}", target.name));
            let mut releases = self.status.releases.iter();
            if !releases.any(|known| known.number == release) {
                waits.push(named(&format!(
                    "release {release} is asked for, and is not known any more"
                )));
            } else if let Some(held) = self.held(environment, release) {
                waits.push(Wait {
                    cause: format!("{}: {}", target.name, held.cause),
                    ..held
                });
            } else if let Some(message) = self.refused.get(&(index, at)) {
                waits.push(named(message));
            } else {
                steps.push(Step {
                    environment: index,
                    target: at,
                    release,
                    asked: Some(asked),
                });
            }
        }
        waits
    }

    /// The hold that keeps a release out of an environment.
    fn held(&self, environment: &Environment, release: u64) -> Option<Wait> {
        let hold = self.decisions.hold(&environment.name, release, self.now)?;
        let cause = format!("release {release} is {hold}");
        Some(match hold.until {
            Some(until) => Wait::until(format!("{cause}, until"), until),
            None => Wait::new(cause),
        })
    }

    /// What keeps a release from entering, or the steps with which it does.
    fn enter(&self, index: usize, release: &Release, steps: &mut Vec<Step>) -> Vec<Wait> {
        let environment = &self.spec.environments[index];
        let closed = self.closed(environment, release);
        if !closed.is_empty() {
            return closed;
        }
        let number = release.number;
        let targets = &self.status.environments[index].targets;
        if let Some(stopped) = self.stopped(index, number) {
            return vec![stopped];
        }
        let rollout = environment.rollout.as_ref();
        let most = rollout.and_then(|rollout| rollout.max_concurrent);
        let most = most.map_or(usize::MAX, |most| most as usize);
        let refused = |target: usize| self.refused.get(&(index, target));
        let mut waits = Vec::new();
        let mut under_way: Vec<&str> = targets
            .iter()
            .filter(|target| target.change.is_some())
            .map(|target| target.name.as_str())
            .collect();
        for (at, target) in targets.iter().enumerate() {
            if target.newest >= Some(number) || self.asked(index, target).is_some() {
                continue;
            }
            // A pull request that is still open, or whose release is held, is made one for the newer release.
            let proposed = target.change.as_ref().filter(|change| is_proposed(change));
            let is_replaced = proposed.is_some_and(|change| {
                let hold = self.decisions.hold(&environment.name, change.release, self.now);
                self.open.contains(&(index, at)) || hold.is_some()
            });
            if let Some(message) = refused(at) {
                waits.push(Wait::new(format!("{}: {message}", target.name)));
            } else if is_replaced {
                steps.push(Step {
                    environment: index,
                    target: at,
                    release: number,
                    asked: None,
                });
            } else if let Some(change) = &target.change {
                let cause = format!("{}: release {} is on its way", target.name, change.release);
                waits.push(Wait::new(cause));
            } else if under_way.len() >= most {
                let cause = format!("{}: waits for {}", target.name, under_way.join(", "));
                waits.push(Wait::new(cause));
            } else {
                under_way.push(&target.name);
                steps.push(Step {
                    environment: index,
                    target: at,
                    release: number,
                    asked: None,
                });
            }
        }
        waits
    }

    /// The target whose failure keeps a release from the others, if the environment wants that.
    fn stopped(&self, index: usize, release: u64) -> Option<Wait> {
        let rollout = self.spec.environments[index].rollout.as_ref()?;
        if rollout.on_failure != Some(OnFailure::Stop) {
            return None;
        }
        let mut targets = self.status.environments[index].targets.iter().enumerate();
        targets.find_map(|(at, target)| {
            let message = target.message.as_deref().unwrap_or("it does not have it");
            let failed = has_failed_with(target, release).then_some(message);
            let message = failed.or_else(|| self.refused.get(&(index, at)).map(String::as_str))?;
            let name = &target.name;
            Some(Wait::new(format!(
                "stopped: {name} failed with release {release}: {message}"
            )))
        })
    }

    /// What keeps a release that has passed before out of an environment.
    fn closed(&self, environment: &Environment, release: &Release) -> Vec<Wait> {
        let (name, number) = (environment.name.as_str(), release.number);
        if let Some(held) = self.held(environment, number) {
            return vec![held];
        }
        let mut closed = Vec::new();
        match window::gate(&environment.windows, self.now) {
            Ok(Gate::Open) => {}
            Ok(Gate::Opens(time)) => closed.push(Wait::until("window opens", time)),
            Err(error) => closed.push(Wait::new(format!("window: {error}"))),
        }
        if let Some(approvals) = &environment.approvals {
            let people = self.decisions.approvers(name, &release.digest, &approvals.groups);
            let required = approvals.required.max(1) as usize;
            if people.len() < required {
                let names: Vec<_> = people.iter().map(|name| shown(name)).collect();
                let names = match names.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", names.join(", ")),
                };
                let cause = format!("release {number}: approval {} of {required}{names}", people.len());
                closed.push(Wait::new(cause));
            }
        }
        closed.extend(self.gates.closed(name, release));
        closed
    }

    /// What keeps the newest release from passing the environments that are needed.
    fn coming(&self, index: usize) -> Vec<Wait> {
        let wanted = self.wanted(index);
        let Some(release) = wanted.first() else {
            return Vec::new();
        };
        let number = release.number;
        let needs = self.spec.needs(index).into_iter();
        let missing = needs.filter_map(|need| {
            let (environment, status) = self.environment(need)?;
            if has_passed(status, number) {
                return None;
            }
            Some(
                match (status.release == Some(number), soaks_until(environment, status)) {
                    (true, Some(until)) => {
                        Wait::until(format!("release {number} must be healthy in {need} until"), until)
                    }
                    (true, None) => Wait::new(format!("release {number} is not healthy in {need}")),
                    (false, _) => Wait::new(format!("release {number} is not in {need} yet")),
                },
            )
        });
        missing.collect()
    }
}

#[cfg(test)]
mod tests;
