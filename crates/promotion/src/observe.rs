//! What is seen now, joined with what was known: which releases there are, who has which, since when it is healthy.

use api::delivery::{
    Environment, EnvironmentStatus, PipelineSpec, PipelineStatus, Release, Rollback, TargetChange,
    TargetStatus,
};
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Values;
use crate::decisions::Decisions;
use crate::plan::is_proposed;
use crate::values::digest;

/// Releases that are kept besides those in use.
const KEPT: usize = 10;
/// How long a target may take until it is healthy, if the spec does not say.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(30);

/// How a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// All its applications are Ready.
    Ready,
    /// Not yet, and why.
    Progressing(String),
    /// An application has failed, and why.
    Failed(String),
    /// It cannot be read, and why. Nothing is known of it.
    Unknown(String),
}

/// A target, as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What its applications carry.
    pub values: Values,
    /// How they are.
    pub health: Health,
}

/// The time as statuses have it, in whole seconds: not before it was, so that nothing soaks for too short.
pub fn time(now: Timestamp) -> Time {
    let up = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
    Time(now.round(up).unwrap_or(now))
}

/// How long a release must be healthy in an environment before it goes on.
pub(crate) fn soak(environment: &Environment) -> SignedDuration {
    duration(environment.soak.as_ref()).unwrap_or_default()
}

/// How long a target may take until it is healthy.
pub(crate) fn timeout(environment: &Environment) -> SignedDuration {
    let rollout = environment.rollout.as_ref();
    duration(rollout.and_then(|rollout| rollout.timeout.as_ref())).unwrap_or(TIMEOUT)
}

fn rollback_within(environment: &Environment) -> Option<SignedDuration> {
    duration(environment.rollout.as_ref()?.rollback_within.as_ref())
}

fn duration(duration: Option<&api::meta::Duration>) -> Option<SignedDuration> {
    SignedDuration::try_from(duration?.to_std()).ok()
}

/// Returns the status after a look at all targets: `seen` has a list for each environment of the spec, with an entry for each
/// target. Conditions are left as they are.
pub fn observe(
    spec: &PipelineSpec,
    seen: &[Vec<Seen>],
    before: &PipelineStatus,
    decisions: &Decisions,
    now: Timestamp,
) -> PipelineStatus {
    let mut status = before.clone();
    status.environments = Vec::new();
    for (index, (environment, targets)) in spec.environments.iter().zip(seen).enumerate() {
        let known = before
            .environments
            .iter()
            .find(|one| one.name == environment.name);
        if spec.needs(index).is_empty() {
            make_release(&mut status.releases, &environment.name, targets, known, now);
        }
    }
    for (environment, targets) in spec.environments.iter().zip(seen) {
        let known = before
            .environments
            .iter()
            .find(|one| one.name == environment.name);
        let mut next = environment_status(environment, targets, &status.releases, known, now);
        if let Some(promotion) = decisions.promotion(&environment.name).filter(|one| one.at <= now) {
            for target in &mut next.targets {
                // There is nothing to do; what the target never had enters as other releases do.
                let is_there = target.change.is_none() && target.release == Some(promotion.release);
                if is_there || target.newest < Some(promotion.release) {
                    target.last_asked = target.last_asked.take().max(Some(time(promotion.at)));
                }
            }
        }
        status.environments.push(next);
    }
    forget(&mut status);
    status
}

/// Records that a change is about to be made for a target. It is written before the change: what is recorded without a commit is
/// planned again until it has one.
pub fn begin(status: &mut PipelineStatus, environment: usize, target: usize, change: TargetChange) {
    let Some(environment) = status.environments.get_mut(environment) else {
        return;
    };
    environment.entering = Some(change.release);
    if let Some(target) = environment.targets.get_mut(target) {
        if target.newest < Some(change.release) {
            target.entered = change.at.clone();
            target.previous = target.release.filter(|_| target.ready).or(target.previous);
            target.rollback = None;
        }
        if let Some(asked) = &change.asked {
            target.last_asked = target.last_asked.take().max(Some(asked.clone()));
            target.rollback = None;
        }
        target.newest = target.newest.max(Some(change.release));
        // What is begun again began before.
        let is_again = target.change.as_ref().is_some_and(|known| {
            known.release == change.release
                && known.asked == change.asked
                && known.commit.is_none()
                && change.commit.is_none()
        });
        match &mut target.change {
            Some(known) if is_again => known.pull_request = change.pull_request.or(known.pull_request.take()),
            known => *known = Some(change),
        }
    }
}

/// Has a first environment make a release of what all its targets run with.
fn make_release(
    releases: &mut Vec<Release>,
    environment: &str,
    targets: &[Seen],
    known: Option<&EnvironmentStatus>,
    now: Timestamp,
) {
    let Some((first, others)) = targets.split_first() else {
        return;
    };
    let is_one = others.iter().all(|other| other.values == first.values);
    let is_ready = targets.iter().all(|target| target.health == Health::Ready);
    if first.values.is_empty() || !is_one || !is_ready {
        return;
    }
    let digest = digest(&first.values);
    let Some(found) = releases.iter_mut().find(|release| release.digest == digest) else {
        let newest = releases.iter().map(|release| release.number).max();
        releases.push(Release {
            number: newest.unwrap_or_default() + 1,
            digest,
            values: first.values.clone(),
            revision: None,
            made: Some(time(now)),
            rolled_back: None,
        });
        return;
    };
    // Back to an older one: those after it are taken back here. Forward again: it is what people want.
    found.rolled_back = None;
    let number = found.number;
    let had = known.map(|known| known.passed.iter().copied().chain(known.release));
    for left in had.into_iter().flatten().filter(|left| *left > number) {
        if let Some(left) = releases.iter_mut().find(|release| release.number == left) {
            left.rolled_back = Some(environment.to_owned());
        }
    }
}

fn environment_status(
    environment: &Environment,
    targets: &[Seen],
    releases: &[Release],
    known: Option<&EnvironmentStatus>,
    now: Timestamp,
) -> EnvironmentStatus {
    let nothing = EnvironmentStatus::default();
    let known = known.unwrap_or(&nothing);
    let statuses = environment.targets.iter().zip(targets).map(|(target, seen)| {
        let name = target.called();
        let before = known.targets.iter().find(|one| one.name == name);
        target_status(name, seen, releases, before, environment, now)
    });
    let statuses: Vec<_> = statuses.collect();
    let first = statuses.first().and_then(|target| target.release);
    let release = first.filter(|_| statuses.iter().all(|target| target.release == first));
    let is_ready = statuses.iter().all(|target| target.ready);
    let healthy_since = match (release, &known.healthy_since) {
        (Some(release), Some(since)) if is_ready && known.release == Some(release) => Some(since.clone()),
        (Some(_), _) if is_ready => Some(time(now)),
        _ => None,
    };
    let mut passed = known.passed.clone();
    for (status, seen) in statuses.iter().zip(targets) {
        // What failed here, or was taken back from here, has to pass again.
        let has_failed = matches!(seen.health, Health::Failed(_));
        let is_lost = |passed: u64| match status.release {
            Some(release) => release < passed || (has_failed && release == passed),
            None => false,
        };
        passed.retain(|passed| !is_lost(*passed));
    }
    if let (Some(release), Some(since)) = (release, &healthy_since)
        && (soak(environment).is_zero() || now.duration_since(since.0) >= soak(environment))
        && !passed.contains(&release)
    {
        passed.push(release);
    }
    let is_over = |entering: &u64| {
        let mut targets = statuses.iter();
        targets.all(|target| target.newest >= Some(*entering) && target.change.is_none())
    };
    EnvironmentStatus {
        name: environment.name.clone(),
        release,
        healthy_since,
        passed,
        entering: known.entering.filter(|entering| !is_over(entering)),
        waits: known.waits.clone(),
        targets: statuses,
        history: known.history.clone(),
    }
}

fn target_status(
    name: String,
    seen: &Seen,
    releases: &[Release],
    before: Option<&TargetStatus>,
    environment: &Environment,
    now: Timestamp,
) -> TargetStatus {
    let timeout = timeout(environment);
    let nothing = TargetStatus::default();
    let before = before.unwrap_or(&nothing);
    // What cannot be read has what it had.
    let release = match seen.health {
        Health::Unknown(_) => before.release,
        _ => release_of(&seen.values, releases),
    };
    let has_failed = matches!(seen.health, Health::Failed(_));
    let is_ready = seen.health == Health::Ready;
    let mut message = match &seen.health {
        Health::Ready => None,
        Health::Progressing(text) | Health::Failed(text) | Health::Unknown(text) => Some(text.clone()),
    };
    let mut change = before.change.clone();
    let mut is_bad = has_failed && release == before.newest && entered_lately(before, environment, now);
    if let Some(made) = &change {
        // Who goes back before the newer one has arrived has what was asked for, and Git has the newer one until that is written.
        let may_still_leave = made.asked.is_some() && made.commit.is_none();
        let has_arrived = release == Some(made.release) && !may_still_leave;
        // A pull request waits for people.
        let is_late = !is_proposed(made)
            && made
                .at
                .as_ref()
                .is_none_or(|at| now.duration_since(at.0) >= timeout);
        if is_late && !(has_arrived && is_ready) {
            let text = format!("release {} is not healthy after {timeout:#}", made.release);
            message = Some(match message {
                Some(message) => format!("{text}: {message}"),
                None => text,
            });
        }
        let is_known = !matches!(seen.health, Health::Unknown(_));
        is_bad |= is_known && is_late && !(has_arrived && is_ready) && Some(made.release) == before.newest;
        if is_late || (has_arrived && (is_ready || has_failed)) {
            change = None;
        }
    }
    let newest = before.newest.max(release);
    let mut rollback = before.rollback.clone();
    // Only from the newest, and only to an older one: never in circles.
    let previous = before.previous.filter(|previous| Some(*previous) < newest);
    if let Some(previous) = previous
        && is_bad
        && change.is_none()
        && rollback.is_none()
        && newest == before.newest
        && release != Some(previous)
        && rollback_within(environment).is_some()
    {
        rollback = Some(Rollback {
            release: previous,
            at: Some(time(now)),
        });
    }
    // People were faster, or it has recovered before it could go back.
    let is_done = |rollback: &Rollback| {
        release == Some(rollback.release) || newest != before.newest || (is_ready && release == newest)
    };
    TargetStatus {
        name,
        release,
        newest,
        ready: is_ready,
        message,
        change,
        entered: before.entered.clone(),
        previous: before.previous,
        rollback: rollback.filter(|rollback| !is_done(rollback)),
        last_asked: before.last_asked.clone(),
    }
}

/// Returns whether the newest release began to enter a target so short ago that its failure has the target go back.
pub fn entered_lately(target: &TargetStatus, environment: &Environment, now: Timestamp) -> bool {
    let (Some(within), Some(entered)) = (rollback_within(environment), &target.entered) else {
        return false;
    };
    now.duration_since(entered.0) <= within
}

/// Returns the release that a target has: the newest whose values it has, as far as it has such fields.
pub fn release_of(values: &Values, releases: &[Release]) -> Option<u64> {
    let fits = |release: &&Release| {
        let mut common = values
            .iter()
            .filter_map(|(field, value)| Some((value, release.values.get(field)?)))
            .peekable();
        common.peek().is_some() && common.all(|(value, released)| value == released)
    };
    let fitting = releases.iter().filter(fits);
    fitting.map(|release| release.number).max()
}

/// Drops releases that are old and in no environment.
fn forget(status: &mut PipelineStatus) {
    let used = |number: u64| {
        let mut environments = status.environments.iter();
        environments.any(|environment| {
            let mut targets = environment.targets.iter();
            environment.release == Some(number)
                || environment.entering == Some(number)
                || targets.any(|target| {
                    let change = target.change.as_ref().map(|change| change.release);
                    target.release == Some(number)
                        || change == Some(number)
                        || target.previous == Some(number)
                })
        })
    };
    let newest = status.releases.iter().map(|release| release.number).max();
    let oldest = newest.unwrap_or_default().saturating_sub(KEPT as u64 - 1);
    let is_kept = |number: u64| number >= oldest || used(number);
    let gone: Vec<u64> = status
        .releases
        .iter()
        .map(|one| one.number)
        .filter(|number| !is_kept(*number))
        .collect();
    status.releases.retain(|release| !gone.contains(&release.number));
    for environment in &mut status.environments {
        environment.passed.retain(|number| !gone.contains(number));
    }
}
