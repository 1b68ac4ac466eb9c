//! The pure half of a wait: what is asked for, what is known about each object, and whether that is an end.
//!
//! [`crate::hub`] feeds in what the watches saw and asks `decide` after each change. No client, no clock.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use manifest::{GroupVersionKind, ObjectId};
use serde_json::Value;

use crate::custom::Checks;
use crate::report::ObjectReport;
use crate::verdict::{Rule, Status, Verdict};

/// A set of objects to wait for.
#[derive(Clone, Debug, Default)]
pub struct WaitRequest {
    /// The objects; none means healthy at once.
    pub objects: Vec<Target>,
    /// How long to wait.
    pub timeout: Duration,
    /// True if the first Failed object ends the wait. Otherwise it ends when all objects are Failed or Current.
    pub fail_fast: bool,
    /// Jobs with `ttlSecondsAfterFinished`: once they are gone they have done their work.
    pub jobs_with_ttl: HashSet<ObjectId>,
    /// Health checks of the user; see [`Checks`].
    pub checks: Checks,
}

/// One object to wait for, and what is known about it.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Which object.
    pub id: ObjectId,
    /// The version of the API in which to watch it, for example `v1`.
    pub version: String,
    /// True if it carries the owner label, so that the one watch on all such objects sees it.
    pub labelled: bool,
    /// The API server's answer to the apply. What it shows is the oldest state that counts, and a Current one needs
    /// no watch. Give it for Jobs with a TTL: without it, a Job that the watch has not seen yet counts as gone.
    pub initial: Option<Value>,
    /// The generation that the apply made; older states of the same object do not count.
    pub minimum_generation: Option<i64>,
    /// The uid that the generation belongs to; an object that was created anew counts from 1 again.
    pub uid: Option<String>,
}

impl Target {
    pub(crate) fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.id.group.clone(),
            version: self.version.clone(),
            kind: self.id.kind.clone(),
        }
    }
}

/// Object as a watch keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) verdict: Verdict,
    pub(crate) generation: Option<i64>,
    pub(crate) uid: Option<String>,
    /// `resourceVersion` as a number; None when it is not one.
    pub(crate) version: Option<u64>,
    /// The label selector of Pods whose failure is this object's failure.
    pub(crate) pods: Option<String>,
    /// For Pods: whether its failure is its owner's.
    pub(crate) fails_owner: bool,
}

/// The oldest state of an object that counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline {
    uid: Option<String>,
    generation: Option<i64>,
    pub(crate) version: Option<u64>,
}

impl Baseline {
    fn from_target(target: &Target) -> Self {
        let metadata = target.initial.as_ref().and_then(|object| object.get("metadata"));
        let text = |field: &str| metadata?.get(field)?.as_str();
        Self {
            uid: target.uid.clone().or_else(|| text("uid").map(str::to_owned)),
            generation: target
                .minimum_generation
                .or_else(|| metadata?.get("generation")?.as_i64()),
            version: text("resourceVersion").and_then(|version| version.parse().ok()),
        }
    }

    /// Resource versions of one resource are ordered numbers (KEP-5504; always so with etcd), across re-creation too.
    fn is_after(&self, seen: &Seen) -> bool {
        if let (Some(baseline), Some(version)) = (self.version, seen.version)
            && version < baseline
        {
            return true;
        }
        let other_object = matches!((&self.uid, &seen.uid), (Some(a), Some(b)) if a != b);
        let older = matches!((self.generation, seen.generation), (Some(a), Some(b)) if b < a);
        older && !other_object
    }
}

/// State of an object according to a watch.
#[derive(Clone, Debug)]
pub(crate) enum Reading {
    /// Nothing yet, or nothing new enough; with what stands in the way.
    Nothing { trouble: Option<String> },
    /// The watch will never say anything.
    Refused(String),
    /// The API server does not have it.
    Absent,
    /// Its newest state.
    Seen(Arc<Seen>),
}

/// One object of a running wait.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) id: ObjectId,
    pub(crate) baseline: Baseline,
    pub(crate) verdict: Verdict,
    /// Pods to look at while the object is in progress; see [`Seen::pods`].
    pub(crate) pods: Option<String>,
    /// Message of a failure that the status still has from before the change.
    left_over: Option<String>,
    seen: bool,
    gone_is_done: bool,
    refused: bool,
}

impl Tracked {
    pub(crate) fn new(
        target: &Target,
        jobs_with_ttl: &HashSet<ObjectId>,
        rule: &dyn Rule,
        now: Timestamp,
    ) -> Self {
        let verdict = match &target.initial {
            Some(object) => rule.verdict(object, now),
            None => Verdict::new(Status::Unknown, "not yet seen"),
        };
        Self {
            id: target.id.clone(),
            baseline: Baseline::from_target(target),
            verdict,
            pods: None,
            left_over: target
                .initial
                .as_ref()
                .and_then(|object| left_over(object, rule, now)),
            seen: target.initial.is_some(),
            gone_is_done: jobs_with_ttl.contains(&target.id),
            refused: false,
        }
    }

    /// Takes in what the watch says now.
    pub(crate) fn observe(&mut self, reading: Reading) {
        match reading {
            Reading::Nothing { trouble } => {
                if let Some(trouble) = trouble.filter(|_| !self.seen) {
                    self.verdict = Verdict::new(Status::Unknown, trouble);
                }
            }
            Reading::Refused(why) => {
                self.refused = true;
                self.verdict = Verdict::new(Status::Unknown, why);
            }
            Reading::Absent => {
                self.seen = true;
                self.pods = None;
                self.verdict = Verdict::new(Status::NotFound, "does not exist");
            }
            Reading::Seen(seen) if !self.baseline.is_after(&seen) => {
                self.seen = true;
                self.pods.clone_from(&seen.pods);
                let is_failed = seen.verdict.status == Status::Failed;
                if is_failed && self.left_over.as_ref() == Some(&seen.verdict.message) {
                    let message = format!("its status is from before the change: {}", seen.verdict.message);
                    self.verdict = Verdict::in_progress(message);
                } else {
                    self.verdict = seen.verdict.clone();
                }
            }
            Reading::Seen(_) => {}
        }
    }

    /// Takes in how many of its Pods have failed for good (kstatus does this for StatefulSets and ReplicaSets).
    pub(crate) fn observe_failed_pods(&mut self, failed: usize) {
        if failed > 0 && self.verdict.status == Status::InProgress {
            let plural = if failed == 1 { "pod has" } else { "pods have" };
            self.verdict = Verdict::failed(format!("{}, {failed} {plural} failed", self.verdict.message));
        }
    }

    fn status(&self, now: Timestamp) -> Status {
        match self.verdict.at(now).status {
            Status::NotFound if self.gone_is_done => Status::Current,
            status => status,
        }
    }

    pub(crate) fn is_current(&self, now: Timestamp) -> bool {
        self.status(now) == Status::Current
    }

    fn report(&self, now: Timestamp) -> ObjectReport {
        let verdict = self.verdict.at(now);
        ObjectReport {
            id: self.id.clone(),
            status: verdict.status,
            message: verdict.message,
            why: None,
        }
    }
}

/// The failure that a status has from before the change that made this generation. Controllers may report a generation as
/// observed before they have replaced the conditions of the one before (Deployments do), and it has not failed by that.
fn left_over(object: &Value, rule: &dyn Rule, now: Timestamp) -> Option<String> {
    let generation = object.pointer("/metadata/generation")?.clone();
    let observed = object.pointer("/status/observedGeneration")?;
    if *observed == generation {
        return None;
    }
    let mut object = object.clone();
    *object.pointer_mut("/status/observedGeneration")? = generation;
    let verdict = rule.verdict(&object, now);
    (verdict.status == Status::Failed).then_some(verdict.message)
}

/// Whether a wait is at its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Healthy,
    /// These objects have failed, and there is nothing to wait for.
    Unhealthy(Vec<ObjectReport>),
    /// Look again when a watch has news, or at this time.
    Wait(Option<Timestamp>),
}

/// Decides as Flux does (pkg/ssa `WaitForSetWithContext`): done when all are Current; failed when any has Failed and
/// `fail_fast`, or when each is either Failed or Current; and, beyond Flux, when a watch was refused.
pub(crate) fn decide(tracked: &[Tracked], fail_fast: bool, now: Timestamp) -> Decision {
    let statuses: Vec<Status> = tracked.iter().map(|object| object.status(now)).collect();
    if statuses.iter().all(|status| *status == Status::Current) {
        return Decision::Healthy;
    }
    let any_failed = statuses.contains(&Status::Failed);
    let nothing_under_way = statuses
        .iter()
        .all(|status| matches!(status, Status::Failed | Status::Current));
    let any_refused = tracked.iter().any(|object| object.refused);
    if nothing_under_way || any_refused || (fail_fast && any_failed) {
        let blame = |(object, status): &(&Tracked, Status)| object.refused || *status == Status::Failed;
        let objects = tracked.iter().zip(statuses).filter(blame);
        return Decision::Unhealthy(objects.map(|(object, _)| object.report(now)).collect());
    }
    Decision::Wait(
        tracked
            .iter()
            .filter_map(|object| object.verdict.fails_at)
            .filter(|at| *at > now)
            .min(),
    )
}

/// Reports every object that is not there yet, for the end of the time.
pub(crate) fn unfinished(tracked: &[Tracked], now: Timestamp) -> Vec<ObjectReport> {
    tracked
        .iter()
        .filter(|object| !object.is_current(now))
        .map(|object| object.report(now))
        .collect()
}
