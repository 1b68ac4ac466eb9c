//! One reconcile of a Pipeline: observe, plan, record what is begun, change Git, record what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{Pipeline, PipelineSpec, PipelineStatus, Target, TargetChange, TargetStatus};
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use controller_kit::record::Unrecorded;
use controller_kit::runtime::requested_at;
use controller_kit::{ObjectKey, pace};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use promotion::arrivals::{Arrival, arrivals, record};
use promotion::check;
use promotion::decisions::{ANNOTATIONS, Decisions, Promotion};
use promotion::observe::{Health, Seen, begin, observe, time};
use promotion::plan::{Plan, Situation, Step, is_proposed, plan};

use crate::apps;
use crate::attest;
use crate::change::{self, Done};
use crate::checks;
use crate::context::Context;
use crate::edit::{Asked, Task};
use crate::failures::{self, AGAIN};
use crate::gates::Gates;
use crate::observe::{self as look, Looked};
use crate::place;
use crate::status;
use crate::triggers;

/// Reason of the event for each promotion, as Weave's controller has it.
const PROMOTE: &str = "Promote";
/// Reasons of the event for what came of it.
const SUCCEEDED: &str = "PromotionSucceeded";
const FAILED: &str = "PromotionFailed";
/// The annotation of an event by which a commit gets a status.
const COMMIT: &str = "event.toolkit.fluxcd.io/commit";
/// How often a forge is asked, if the spec does not say.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
/// When a pipeline is looked at again that changed while it was looked at.
const SOON: Duration = Duration::from_millis(100);
/// When clusters that do not answer are asked again.
const AWAY: Duration = Duration::from_secs(15);
/// For how long the revision of a new release is looked for, and how often.
const FRESH: SignedDuration = SignedDuration::from_mins(2);
const SETTLES: SignedDuration = SignedDuration::from_secs(1);
/// Plans in one reconcile: each time a change could not be made, the others may go on.
const MAX_PLANS: usize = 100;

/// Promotes what is due.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let pipelines = &context.pipelines;
    let forget = |object: Option<&Pipeline>| {
        let uid = object.and_then(|object| object.metadata.uid.as_deref());
        context.failures.forget(uid.unwrap_or_default());
        context.remotes.retain(&key, &[]);
    };
    let outcome = pipelines
        .reconcile(&key, forget, |object| promote(object, &context))
        .await;
    if let Some(weave) = &context.weave {
        weave.wake(&key);
    }
    outcome
}

async fn promote(mut object: Arc<Pipeline>, context: &Context) -> Result<Outcome, Unrecorded> {
    let pipelines = &context.pipelines;
    let annotation = |name: &str| object.annotations().get(name).map(String::as_str);
    let decisions = match Decisions::parse(annotation) {
        Ok(decisions) => decisions,
        Err(error) => {
            let (reason, problem) = (status::INVALID_ANNOTATION, error.to_string());
            let status = status::invalid(&object, reason, &problem, Timestamp::now());
            pipelines.write(object, &status).await?;
            return Ok(Outcome::Done);
        }
    };
    let spec = spec(&object);
    if let Some(problem) = check::problem(&spec) {
        let status = status::invalid(&object, status::INVALID_SPEC, &problem, Timestamp::now());
        pipelines.write(object, &status).await?;
        return Ok(Outcome::Done);
    }
    let found = match apps::found(&object, context).await {
        Ok(found) => found,
        Err(problem) => {
            let status = status::invalid(&object, status::APPS_NOT_FOUND, &problem, Timestamp::now());
            pipelines.write(object, &status).await?;
            // No watch sees rights change.
            return Ok(Outcome::After(AGAIN));
        }
    };
    let looked = look::targets(&found, context).await;
    let mut seen: Vec<Vec<Seen>> = looked
        .iter()
        .map(|targets| targets.iter().map(|target| target.seen.clone()).collect())
        .collect();
    let before = object.status.clone().unwrap_or_default();
    let has_checks = checks::look(&object, &spec, &before, &mut seen, context).await;
    let now = Timestamp::now();
    let mut next = observe(&spec, &seen, &before, &decisions, now);
    next.apps = found
        .status
        .as_ref()
        .map(|status| status.apps.clone())
        .unwrap_or_default();
    next.triggers = triggers::of(&found, &looked, context);
    let is_unsettled = revisions(&mut next, &found, &looked, context).await;
    let mut ended = arrivals(&before, &next);
    record(&mut next, &ended, &decisions, now);
    let unsigned = attest::sign(&object, &mut next, &decisions, context).await;
    let gates = Gates::look(&object, &spec, &next, &decisions, context).await;
    let owner = (
        object.uid().unwrap_or_default(),
        object.metadata.generation,
        requested_at(&*object).map(str::to_owned),
    );
    // Into what cannot be read, nothing is promoted.
    let unreadable = unreadable(&seen);
    let mut refused = unreadable.clone();
    let mut open = BTreeSet::new();
    let mut again: Option<Timestamp> = None;
    let mut last = Plan::default();
    for _ in 0..MAX_PLANS {
        let now = Timestamp::now();
        last = plan(&Situation {
            spec: &spec,
            status: &next,
            decisions: &decisions,
            gates: &gates,
            refused: &refused,
            open: &open,
            now,
        });
        if last.steps.is_empty() {
            break;
        }
        let failed = last.steps.iter().filter_map(|step| {
            let problem = context.failures.get(&owner, change_of(*step))?;
            Some(((step.environment, step.target), problem))
        });
        let failed: Vec<_> = failed.collect();
        if !failed.is_empty() {
            refused.extend(failed);
            continue;
        }
        // What is begun is recorded first: a process that is killed in between does not forget it.
        let begun = next.clone();
        for step in &last.steps {
            begin(&mut next, step.environment, step.target, made(*step, now));
        }
        let decided = decided_by(&object);
        object = pipelines.write(object, &next).await?;
        tell_all(&object, &mut ended, context);
        // The answer is newer than what was looked at. A hold that came in between wins.
        if decided_by(&object) != decided {
            return Ok(Outcome::After(SOON));
        }
        // Those of one environment and release go together.
        let together = |one: &Step, next: &Step| {
            (one.environment, one.release, one.asked) == (next.environment, next.release, next.asked)
        };
        for steps in last.steps.chunk_by(together) {
            let done = carry_out(steps, &object, (&next, &decisions, &looked), context).await;
            for (step, done) in steps.iter().zip(done) {
                let mut change = made(*step, now);
                match done {
                    Ok(Done::Committed { commit, .. }) => {
                        change.commit = Some(commit);
                        // A pull request that was merged: the target may have been seen with it already, and then nothing else
                        // wakes the pipeline to find that it has arrived.
                        if has(&next, *step) {
                            again = again
                                .into_iter()
                                .chain([now.saturating_add(SOON).unwrap_or(now)])
                                .min();
                        }
                    }
                    Ok(Done::Proposed(proposal)) => {
                        open.insert((step.environment, step.target));
                        change.pull_request = Some(proposal.line);
                        again = again.into_iter().chain(proposal.again).min();
                    }
                    Err(problem) => {
                        context.failures.put(&owner, change_of(*step), &problem);
                        take_back(&mut next, &begun, *step);
                        refused.insert((step.environment, step.target), problem);
                        continue;
                    }
                }
                begin(&mut next, step.environment, step.target, change);
            }
        }
    }
    let problems = refused.iter().map(|((environment, target), problem)| {
        let environment = &spec.environments[*environment];
        format!(
            "{}: {}: {problem}",
            environment.name,
            environment.targets[*target].called()
        )
    });
    let problems: Vec<String> = problems.collect();
    // What is watched tells when it can be read again; a cluster that does not answer has to be asked.
    let targets = spec.environments.iter().flat_map(|one| &one.targets);
    let is_away =
        |(target, looked): (&Target, &Looked)| target.kube_config.is_some() && looked.cluster.is_none();
    let is_away = targets.zip(looked.iter().flatten()).any(is_away);
    let has_failed = refused.len() > unreadable.len();
    let signs = unsigned.is_some();
    let now = Timestamp::now();
    let status = status::concluded(&object, next, &last.waits, (&problems, unsigned), now);
    let object = pipelines.write(object, &status).await?;
    tell_all(&object, &mut ended, context);
    let outcome = match (has_failed, open.is_empty()) {
        _ if is_away => Outcome::After(AWAY),
        (true, _) => Outcome::After(AGAIN),
        // How pull requests and gates stand is asked for.
        (false, is_none_open) if !is_none_open || gates.is_polled || has_checks => {
            let interval = spec
                .interval
                .as_ref()
                .map_or(INTERVAL, |interval| interval.to_std());
            pace::after(interval, context.jitter_percentage)
        }
        (false, _) => Outcome::Done,
    };
    let settles = is_unsettled.then(|| now.saturating_add(SETTLES).unwrap_or(now));
    let signs = signs.then(|| now.saturating_add(AGAIN).unwrap_or(now));
    let again = again
        .into_iter()
        .chain(last.again)
        .chain(settles)
        .chain(signs)
        .min();
    Ok(pace::by(outcome, again, now))
}

/// Says of releases that a first environment has by which revision it has them. Returns whether that is not known yet of a fresh one, and
/// a gate asks for it.
async fn revisions(
    next: &mut PipelineStatus,
    object: &Pipeline,
    looked: &[Vec<Looked>],
    context: &Context,
) -> bool {
    let gates = object.spec.environments.iter().flat_map(|one| &one.gates);
    let is_asked_for = gates.into_iter().any(|gate| gate.commit_status.is_some());
    let (now, mut is_unknown) = (Timestamp::now(), false);
    let first = looked
        .iter()
        .enumerate()
        .filter(|(at, _)| object.spec.needs(*at).is_empty());
    for (at, targets) in first {
        let Some(has) = next.environments.get(at).and_then(|one| one.release) else {
            continue;
        };
        let mut releases = next.releases.iter_mut();
        let release = releases.find(|one| one.number == has && one.revision.is_none());
        let (Some(release), Some(target)) = (release, targets.first()) else {
            continue;
        };
        let made = release.made.as_ref().map_or(now, |made| made.0);
        // Applied by kubectl, or in another cluster: it stays unknown.
        if target.cluster.is_some() || now.duration_since(made) > FRESH {
            continue;
        }
        release.revision = place::revision(object.apps(), target, context).await;
        is_unknown |= release.revision.is_none();
    }
    is_unknown && is_asked_for
}

/// What people decide about a pipeline: its annotations, its spec, and whether it is still wanted.
fn decided_by(object: &Pipeline) -> (Vec<Option<String>>, Option<i64>, bool) {
    let annotations = ANNOTATIONS.map(|name| object.annotations().get(name).cloned());
    let is_going = object.metadata.deletion_timestamp.is_some();
    (annotations.to_vec(), object.metadata.generation, is_going)
}

/// The spec, with the pipeline's namespace where a target names none.
fn spec(pipeline: &Pipeline) -> PipelineSpec {
    let own = pipeline.namespace().unwrap_or_default();
    let mut spec = pipeline.spec.clone();
    for target in spec.environments.iter_mut().flat_map(|one| &mut one.targets) {
        target.namespace.get_or_insert_with(|| own.clone());
    }
    spec
}

/// Targets of which nothing is known, by environment and index, and why.
fn unreadable(seen: &[Vec<Seen>]) -> BTreeMap<(usize, usize), String> {
    let mut unreadable = BTreeMap::new();
    for (environment, targets) in seen.iter().enumerate() {
        for (target, seen) in targets.iter().enumerate() {
            if let Health::Unknown(problem) = &seen.health {
                unreadable.insert((environment, target), problem.clone());
            }
        }
    }
    unreadable
}

/// Returns whether the target of a step was seen with the release that is to enter.
fn has(status: &PipelineStatus, step: Step) -> bool {
    let environment = status.environments.get(step.environment);
    let target = environment.and_then(|environment| environment.targets.get(step.target));
    target.is_some_and(|target| target.release == Some(step.release))
}

/// What a failure is remembered by.
fn change_of(step: Step) -> failures::Change {
    (step.environment, step.target, step.release, step.asked)
}

fn made(step: Step, now: Timestamp) -> TargetChange {
    TargetChange {
        release: step.release,
        commit: None,
        pull_request: None,
        at: Some(time(now)),
        asked: step.asked.map(time),
    }
}

/// Forgets that a change was begun which could not be made.
fn take_back(status: &mut PipelineStatus, before: &PipelineStatus, step: Step) {
    let known = before.environments.get(step.environment);
    let known = known.and_then(|environment| environment.targets.get(step.target));
    let target = status.environments.get_mut(step.environment);
    let target = target.and_then(|environment| environment.targets.get_mut(step.target));
    if let (Some(known), Some(target)) = (known, target) {
        target.clone_from(known);
    }
}

/// Has the manifests of targets of one environment changed, or the change proposed. Returns what came of each.
async fn carry_out(
    steps: &[Step],
    object: &Pipeline,
    (status, decisions, looked): (&PipelineStatus, &Decisions, &[Vec<Looked>]),
    context: &Context,
) -> Vec<Result<Done, String>> {
    let Some(first) = steps.first() else {
        return Vec::new();
    };
    let number = first.release;
    let (spec, seen) = (
        &object.spec.environments[first.environment],
        &status.environments[first.environment],
    );
    let mut releases = status.releases.iter();
    let Some(release) = releases.find(|release| release.number == number) else {
        let problem = format!("release {number} is not known any more");
        return steps.iter().map(|_| Err(problem.clone())).collect();
    };
    let tasks = steps.iter().map(|step| {
        let target = &seen.targets[step.target];
        let asked = asked(*step, target, decisions.promotion(&spec.name));
        let looked = &looked[step.environment][step.target];
        let change = target.change.as_ref().filter(|change| change.release == number);
        let mut task = Task::new(object, &spec.name, looked, release, asked);
        task.proposed = change.and_then(|change| change.pull_request.clone());
        task
    });
    let tasks: Vec<_> = tasks.collect();
    let others = status.environments.iter().flat_map(|one| &one.targets);
    let open = others
        .filter(|target| target.change.as_ref().is_some_and(is_proposed))
        .count();
    let own = steps
        .iter()
        .filter_map(|step| seen.targets[step.target].change.as_ref());
    let own = own.filter(|change| is_proposed(change)).count();
    let done = change::carry_out(&tasks, object, open - own, context).await;
    for (environment, said) in said(&tasks, &done) {
        publish(object, environment, number, &said, context);
    }
    done
}

/// Who or what asked for a step.
fn asked(step: Step, target: &TargetStatus, promotion: Option<&Promotion>) -> Option<Asked> {
    let at = step.asked?;
    let promotion = promotion.filter(|one| time(one.at).0 == at);
    let newest = target.newest.unwrap_or_default();
    Some(Asked {
        at,
        is_back: step.release < newest,
        by: match promotion {
            Some(promotion) => promotion.to_string(),
            None => format!("the failure of release {newest} in {}", target.name),
        },
    })
}

/// A text for each commit, each pull request that was touched and each failure, with the commit; none for what was there.
fn said<'a>(tasks: &'a [Task], done: &[Result<Done, String>]) -> Vec<(&'a str, Said)> {
    let mut all: Vec<(&str, Said)> = Vec::new();
    for (task, done) in tasks.iter().zip(done) {
        let said = match done {
            Ok(Done::Committed { is_new: false, .. }) => continue,
            Ok(Done::Committed { commit, .. }) => {
                // One event for all targets of a commit.
                let known = all
                    .iter_mut()
                    .find(|(_, said)| said.commit.as_ref() == Some(commit));
                if let Some((_, known)) = known {
                    known.targets.push(task.target.clone());
                    continue;
                }
                Said {
                    commit: Some(commit.clone()),
                    asked: task.asked.clone(),
                    ..Said::default()
                }
            }
            Ok(Done::Proposed(proposal)) => match &proposal.event {
                Some(event) => Said {
                    event: event.clone(),
                    ..Said::default()
                },
                None => continue,
            },
            Err(problem) => Said {
                problem: Some(problem.clone()),
                ..Said::default()
            },
        };
        let targets = vec![task.target.clone()];
        all.push((&task.wanted.environment, Said { targets, ..said }));
    }
    all
}

/// What an event is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    targets: Vec<String>,
    commit: Option<String>,
    event: String,
    problem: Option<String>,
    asked: Option<Asked>,
}

/// The name of an event's annotation that Alerts pass on.
fn annotation(key: &str) -> String {
    format!("{}/{key}", api::delivery::GROUP)
}

/// Publishes what came of changes, after the status is written: a lost event is better than one that is sent twice.
fn tell_all(object: &Pipeline, ended: &mut Vec<Arrival>, context: &Context) {
    for arrival in ended.drain(..) {
        tell(object, &arrival, context);
    }
}

/// Tells what came of a change. Commits get a status by it, where an Alert has a Provider for that.
fn tell(object: &Pipeline, arrival: &Arrival, context: &Context) {
    let Arrival {
        environment,
        release,
        commit,
        targets,
        problem,
        ..
    } = arrival;
    // With the commit: the same release may arrive twice, and what is said twice within minutes is said once.
    let short = commit.get(..7).unwrap_or(commit);
    let place = format!("{environment} ({}) with commit {short}", targets.join(", "));
    let (severity, reason, text) = match problem {
        None => (
            Severity::Info,
            SUCCEEDED,
            format!("release {release} is healthy in {place}"),
        ),
        Some(problem) => (
            Severity::Error,
            FAILED,
            format!("release {release} failed in {place}: {problem}"),
        ),
    };
    let metadata = BTreeMap::from([
        (annotation("environment"), environment.clone()),
        (annotation("version"), release.to_string()),
        (COMMIT.to_owned(), format!("sha1:{commit}")),
    ]);
    context
        .pipelines
        .publish_with(object, severity, reason, &text, metadata);
}

fn publish(object: &Pipeline, environment: &str, number: u64, said: &Said, context: &Context) {
    let place = format!("{environment} ({})", said.targets.join(", "));
    let (severity, text) = match (&said.problem, &said.commit) {
        (Some(problem), _) => {
            let text = format!("release {number} did not go into {place}: {problem}");
            (Severity::Error, text)
        }
        (None, Some(commit)) => {
            let short = commit.get(..7).unwrap_or(commit);
            let text = match &said.asked {
                Some(Asked {
                    is_back: true, by, ..
                }) => {
                    format!("{place} goes back to release {number} by commit {short}, asked for by {by}")
                }
                Some(Asked { by, .. }) => {
                    format!("release {number} goes into {place} again by commit {short}, asked for by {by}")
                }
                None => format!("release {number} goes into {place} by commit {short}"),
            };
            (Severity::Info, text)
        }
        (None, None) => (Severity::Info, said.event.clone()),
    };
    let mut metadata = BTreeMap::from([
        (annotation("environment"), environment.to_owned()),
        (annotation("version"), number.to_string()),
    ]);
    metadata.extend(said.commit.clone().map(|commit| (annotation("revision"), commit)));
    context
        .pipelines
        .publish_with(object, severity, PROMOTE, &text, metadata);
}
