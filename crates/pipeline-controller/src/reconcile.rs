//! One reconcile of a Pipeline: observe, plan, record what is begun, change Git, record what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{Pipeline, PipelineSpec, PipelineStatus, TargetChange};
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use controller_kit::record::Unrecorded;
use controller_kit::{ObjectKey, pace};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use promotion::check;
use promotion::decisions::{self, Decisions};
use promotion::observe::{Health, Seen, begin, observe};
use promotion::plan::{Plan, Situation, Step, plan};

use crate::change::{self, Task};
use crate::context::Context;
use crate::{observe as look, status};

/// Annotations of a Pipeline that say what may be promoted.
pub(crate) const ANNOTATIONS: [&str; 2] = [decisions::HOLDS, decisions::APPROVALS];
/// Reason of the event for each promotion, as Weave's controller has it.
const PROMOTE: &str = "Promote";
/// A change that could not be made is tried again after this.
const AGAIN: Duration = Duration::from_secs(60);
/// Plans in one reconcile: each time a change could not be made, the others may go on.
const MAX_PLANS: usize = 100;

/// Promotes what is due.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let pipelines = &context.pipelines;
    pipelines
        .reconcile(&key, |_| {}, |object| promote(object, &context))
        .await
}

async fn promote(mut object: Arc<Pipeline>, context: &Context) -> Result<Outcome, Unrecorded> {
    let pipelines = &context.pipelines;
    let annotation = |name: &str| object.annotations().get(name).map(String::as_str);
    let decisions = match Decisions::parse(annotation(decisions::HOLDS), annotation(decisions::APPROVALS)) {
        Ok(decisions) => decisions,
        Err(error) => {
            let (reason, problem) = (status::INVALID_ANNOTATION, error.to_string());
            let status = status::invalid(&object, reason, &problem, Timestamp::now());
            pipelines.write(object, &status).await?;
            return Ok(Outcome::Done);
        }
    };
    if let Some(problem) = check::problem(&object.spec) {
        let status = status::invalid(&object, status::INVALID_SPEC, &problem, Timestamp::now());
        pipelines.write(object, &status).await?;
        return Ok(Outcome::Done);
    }
    let spec = spec(&object);
    let seen = look::targets(&object, context).await;
    let before = object.status.clone().unwrap_or_default();
    let mut next = observe(&spec, &seen, &before, Timestamp::now());
    let mut refused = BTreeMap::new();
    let mut last = Plan::default();
    for _ in 0..MAX_PLANS {
        let now = Timestamp::now();
        last = plan(&Situation {
            spec: &spec,
            status: &next,
            decisions: &decisions,
            gates: &(),
            refused: &refused,
            now,
        });
        if last.steps.is_empty() {
            break;
        }
        // What is begun is recorded first: a process that is killed in between does not forget it.
        let begun = next.clone();
        for step in &last.steps {
            begin(&mut next, step.environment, step.target, made(*step, None, now));
        }
        object = pipelines.write(object, &next).await?;
        for step in &last.steps {
            match carry_out(*step, &object, &next, context).await {
                Ok(commit) => {
                    let change = made(*step, Some(commit), now);
                    begin(&mut next, step.environment, step.target, change);
                }
                Err(problem) => {
                    take_back(&mut next, &begun, *step);
                    refused.insert((step.environment, step.target), problem);
                }
            }
        }
    }
    let problems = refused.iter().map(|((environment, target), problem)| {
        let environment = &spec.environments[*environment];
        let target = environment.targets[*target].namespace.as_deref();
        format!("{}: {}: {problem}", environment.name, target.unwrap_or_default())
    });
    let mut problems: Vec<String> = problems.collect();
    problems.extend(unreadable(&seen, &spec));
    let now = Timestamp::now();
    let status = status::concluded(&object, next, &last.waits, &problems, now);
    pipelines.write(object, &status).await?;
    let outcome = match refused.is_empty() {
        true => Outcome::Done,
        false => Outcome::After(AGAIN),
    };
    Ok(pace::by(outcome, last.again, now))
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

/// Targets of which nothing is known.
fn unreadable(seen: &[Vec<Seen>], spec: &PipelineSpec) -> Vec<String> {
    let environments = spec.environments.iter().zip(seen);
    let unknown = environments.flat_map(|(environment, targets)| {
        targets.iter().filter_map(|target| match &target.health {
            Health::Unknown(problem) => Some(format!("{}: {problem}", environment.name)),
            _ => None,
        })
    });
    unknown.collect()
}

fn made(step: Step, commit: Option<String>, now: Timestamp) -> TargetChange {
    TargetChange {
        release: step.release,
        commit,
        at: Some(Time(now.round(jiff::Unit::Second).unwrap_or(now))),
    }
}

/// Forgets that a change was begun which could not be made.
fn take_back(status: &mut PipelineStatus, before: &PipelineStatus, step: Step) {
    let known = before.environments.get(step.environment);
    let known = known.and_then(|environment| environment.targets.get(step.target));
    let target = status.environments.get_mut(step.environment);
    let target = target.and_then(|environment| environment.targets.get_mut(step.target));
    if let (Some(known), Some(target)) = (known, target) {
        (target.newest, target.change) = (known.newest, known.change.clone());
    }
}

/// Has the manifests of a target changed. Returns the commit.
async fn carry_out(
    step: Step,
    object: &Pipeline,
    status: &PipelineStatus,
    context: &Context,
) -> Result<String, String> {
    let environment = &object.spec.environments[step.environment];
    let target = &status.environments[step.environment].targets[step.target];
    let mut releases = status.releases.iter();
    let release = releases.find(|release| release.number == step.release);
    let release = release.ok_or_else(|| format!("release {} is not known any more", step.release))?;
    let task = Task::new(object, &environment.name, &target.name, release, context);
    let done = change::carry_out(&task, object, context).await;
    let pipelines = &context.pipelines;
    let number = release.number;
    match done {
        Ok(done) => {
            if done.is_new {
                let short = done.commit.get(..7).unwrap_or(&done.commit);
                let text = format!(
                    "release {number} goes into {} ({}) by commit {short}",
                    environment.name, target.name
                );
                let metadata = [
                    ("environment".to_owned(), environment.name.clone()),
                    ("version".to_owned(), number.to_string()),
                    ("commit".to_owned(), done.commit.clone()),
                ];
                pipelines.publish_with(object, Severity::Info, PROMOTE, &text, BTreeMap::from(metadata));
            }
            Ok(done.commit)
        }
        Err(error) => {
            let problem = error_chain::chain(&error);
            let text = format!(
                "release {number} did not go into {} ({}): {problem}",
                environment.name, target.name
            );
            pipelines.publish(object, Severity::Error, PROMOTE, &text);
            Err(problem)
        }
    }
}
