//! Waiting for what was applied to become healthy. The wait is a task of its own, fed by watches: it holds no worker, and
//! a newer run ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use api::kustomize::Kustomization;
use cluster_access::targets::Target as Place;
use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube_apply::managed::Live;
use kube_apply::{Action, Applied};
use kube_health::{Checks, Outcome, Target, WaitRequest};
use manifest::{GroupVersionKind, ObjectId};

use super::conclude::{conclude_failure, conclude_success, remember};
use super::decide::Decision;
use super::ended::CutOff;
use super::observe::Observed;
use super::pass::Pass;
use super::plan::Trigger;
use super::status::Health;
use super::{Ended, Failed};
use crate::context::Context;
use crate::error::Error;
use crate::memory::{self, Run, Wait};

/// Most rollouts of small changes are over sooner; telling of the wait would cost a status patch for nothing.
const TOLD_AFTER: Duration = Duration::from_millis(750);

/// Tells waits apart, so that the answer of one that was given up is not taken for another's.
static NEXT_WAIT: AtomicU64 = AtomicU64::new(0);

/// Starts to wait, if the spec asks for it and something is not healthy yet.
pub(super) async fn begin(
    pass: &Pass<'_>,
    place: &Place,
    run: Run,
    applied: Applied,
) -> Result<Ended, Box<Failed>> {
    let targets = targets(pass.object(), applied);
    if targets.is_empty() {
        return Ok(Ended::Done {
            run: Box::new(run),
            health: Health::NotAsked,
        });
    }
    // Understood already, or the object would be stalled.
    let checks = reconcile_kit::checks::checks(pass.object()).unwrap_or_default();
    let targets = look_up(place, targets, &checks).await;
    let request = WaitRequest {
        jobs_with_ttl: targets
            .iter()
            .filter(|target| has_ttl(target))
            .map(|target| target.id.clone())
            .collect(),
        objects: targets,
        timeout: pass.object().timeout().into(),
        fail_fast: pass.context.fail_fast,
        checks,
    };
    let hub = place.hub.clone();
    let teller = Teller::new(pass.context, pass.key);
    let telling = teller.clone();
    let mut wait = Box::pin(async move {
        let tell = |report| telling.tell_present(&report);
        hub.wait_telling(request, tell).await
    });
    match futures::poll!(&mut wait) {
        Poll::Ready(Outcome::Healthy) => Ok(Ended::Done {
            run: Box::new(run),
            health: Health::Passed(Duration::ZERO),
        }),
        Poll::Ready(Outcome::Unhealthy(report) | Outcome::TimedOut(report)) => {
            Err(failed(&run, report, Duration::ZERO))
        }
        Poll::Pending => {
            watch(teller, &pass.observed, run, wait);
            Ok(Ended::Waiting)
        }
    }
}

/// Tells the reconcile of its object what a wait has to say.
#[derive(Clone)]
struct Teller {
    context: Arc<Context>,
    key: ObjectKey,
    number: u64,
}

impl Teller {
    fn new(context: &Arc<Context>, key: &ObjectKey) -> Self {
        Self {
            context: Arc::clone(context),
            key: key.clone(),
            number: NEXT_WAIT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Changes what is remembered of the wait and wakes the object; nothing, if the wait was given up.
    fn change_wait(&self, change: impl FnOnce(&mut Wait)) {
        let found = self.context.memory.with(&self.key, |entry| {
            let own = entry.wait.as_mut().filter(|wait| wait.number == self.number);
            own.map(change).is_some()
        });
        if found {
            self.context.base.queue.add(self.key.clone());
        }
    }

    fn tell_present(&self, report: &kube_health::Report) {
        let present = report.brief();
        self.change_wait(|wait| {
            wait.present = Some(present);
            wait.slow = true;
            wait.told = false;
        });
    }
}

/// Hands the wait over to a task.
fn watch(
    teller: Teller,
    observed: &Observed,
    run: Run,
    wait: impl Future<Output = Outcome> + Send + Unpin + 'static,
) {
    let (context, key, number) = (Arc::clone(&teller.context), teller.key.clone(), teller.number);
    let interval = context.base.jittered(observed.object.spec.interval.into());
    remember(
        &context,
        &key,
        run.plan.clone(),
        memory::Outcome::Waiting,
        interval,
    );
    // The entry is locked until the wait is in it: the task may be done before this function is.
    context.memory.with(&key, |entry| {
        let task = tokio::spawn(async move {
            let mut wait = wait;
            let quick = tokio::time::timeout(TOLD_AFTER, &mut wait).await;
            let answer = match quick {
                Ok(answer) => answer,
                Err(_) => {
                    teller.change_wait(|wait| wait.slow = true);
                    wait.await
                }
            };
            let ended = Timestamp::now();
            teller.change_wait(|wait| wait.answer = Some((answer, ended)));
        });
        let began = Timestamp::now();
        entry.wait = Some(Wait {
            number,
            abort: task.abort_handle(),
            began,
            run,
            answer: None,
            slow: false,
            told: false,
            present: None,
        });
    });
}

/// Tells of a wait that ends because something newer begins, as Flux does. Whoever goes on says the rest in the status; who
/// does nothing more, because it is suspended, says it here.
pub(super) async fn cancel(pass: &mut Pass<'_>, decision: &Decision) {
    let trigger = match decision {
        Decision::Run(plan) if plan.trigger == Trigger::Revision => pass.observed.source_name.clone(),
        Decision::Run(_) | Decision::Suspended | Decision::Finalize | Decision::Stalled { .. } => {
            format!("Kustomization/{}", pass.key)
        }
        _ => return,
    };
    // One whose answer is there is over already.
    let ended = pass.remembered(|entry| entry.wait.take_if(|wait| wait.answer.is_none()));
    if let Some(ended) = ended {
        let is_last = *decision == Decision::Suspended;
        let plan = &ended.run.plan;
        pass.recorder.health_canceled(plan, &trigger, is_last).await;
    }
}

/// Says in the status that health is being waited for, once it takes long enough to be worth it.
pub(super) async fn report_wait(mut pass: Pass<'_>) -> Next {
    let run = pass.remembered(|entry| {
        let wait = entry.wait.as_mut()?;
        wait.told = true;
        Some((wait.run.clone(), wait.present.clone()))
    });
    let Some((run, present)) = run else {
        return Next::Done;
    };
    match pass.recorder.waiting(&run, present).await {
        Ok(()) => Next::Done,
        Err(_) => Next::Backoff,
    }
}

/// Records the answer of a wait that is over.
pub(super) async fn conclude(pass: Pass<'_>) -> Next {
    let ended = pass.remembered(|entry| {
        let wait = entry.wait.as_mut()?;
        let (answer, at) = wait.answer.take()?;
        let (run, began) = (wait.run.clone(), wait.began);
        entry.wait = None;
        Some((run, answer, at.duration_since(began).unsigned_abs()))
    });
    let Some((run, answer, after)) = ended else {
        return Next::Done;
    };
    match answer {
        Outcome::Healthy => conclude_success(pass, run, Health::Passed(after)).await,
        Outcome::Unhealthy(report) | Outcome::TimedOut(report) => {
            let failed = failed(&run, report, after);
            conclude_failure(pass, &run.plan, *failed, run.began).await
        }
    }
}

fn failed(run: &Run, report: kube_health::Report, after: Duration) -> Box<Failed> {
    Box::new(Failed {
        error: Error::Health {
            after: after.into(),
            report: Box::new(report),
        },
        checksum: Some(run.checksum.clone()),
        inventory: Some(run.inventory.clone()),
        cut_off: CutOff::default(),
    })
}

/// Lists what must be healthy: all that was applied, or what the spec names.
fn targets(object: &Kustomization, applied: Applied) -> Vec<Target> {
    let mut targets = if object.spec.wait {
        applied_targets(applied)
    } else {
        named_targets(object)
    };
    // Waiting for itself would never end.
    let metadata = &object.metadata;
    let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref());
    targets.retain(|Target { id, .. }| {
        id.kind != "Kustomization" || Some(&*id.name) != name || Some(&*id.namespace) != namespace
    });
    targets
}

/// Looks up what the apply did not need to write, and so has no answer about. What is known to be there and has no
/// status is healthy by that.
async fn look_up(place: &Place, mut targets: Vec<Target>, checks: &Checks) -> Vec<Target> {
    targets.retain(|target| {
        target.initial.is_some()
            || checks.covers(&target.id.group, &target.id.kind)
            || !is_healthy_by_being(place, &target.id)
    });
    let looked_up = targets.into_iter().map(|mut target| async move {
        if target.initial.is_none() {
            target.initial = place.live(&target.id, &target.version).await;
        }
        target
    });
    futures::stream::iter(looked_up)
        .buffered(place.engine.settings().concurrency.max(1))
        .collect()
        .await
}

/// Kinds of Kubernetes without anything that could be unhealthy.
const WITHOUT_STATUS: [(&str, &str); 12] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "LimitRange"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];

fn is_healthy_by_being(place: &Place, id: &ObjectId) -> bool {
    WITHOUT_STATUS.contains(&(&id.group, &id.kind))
        && matches!(place.engine.managed().live(id), Live::Present(_))
}

/// A Job that removes itself when it is done is not missing when it is gone.
fn has_ttl(target: &Target) -> bool {
    let spec = target.initial.as_ref().and_then(|job| job.get("spec"));
    target.id.kind == "Job"
        && target.id.group == "batch"
        && spec
            .and_then(|spec| spec.get("ttlSecondsAfterFinished"))
            .is_some_and(|ttl| !ttl.is_null())
}

fn applied_targets(applied: Applied) -> Vec<Target> {
    let kept = applied
        .changes
        .into_iter()
        .filter(|change| change.action != Action::Skipped);
    let target = kept.map(|change| {
        let metadata = change.live.as_ref().and_then(|live| live.get("metadata"));
        let text = |field: &str| metadata?.get(field)?.as_str().map(ToOwned::to_owned);
        Target {
            minimum_generation: metadata
                .and_then(|m| m.get("generation"))
                .and_then(serde_json::Value::as_i64),
            uid: text("uid"),
            id: change.id,
            version: change.gvk.version,
            labelled: true,
            initial: change.live,
        }
    });
    target.collect()
}

/// The apiVersion that `spec.healthChecks` means when it names none. Flux's client leaves it out.
const UNNAMED_VERSION: &str = "apps/v1";

fn named_targets(object: &Kustomization) -> Vec<Target> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let target = object.spec.health_checks.iter().map(|check| {
        let named = check.api_version.as_deref().filter(|version| !version.is_empty());
        let gvk = GroupVersionKind::new(named.unwrap_or(UNNAMED_VERSION), &check.kind);
        let namespace = check.namespace.as_deref().unwrap_or(own).to_owned();
        Target {
            id: ObjectId {
                group: gvk.group,
                kind: gvk.kind,
                namespace,
                name: check.name.clone(),
            },
            version: gvk.version,
            labelled: false,
            initial: None,
            minimum_generation: None,
            uid: None,
        }
    });
    target.collect()
}
