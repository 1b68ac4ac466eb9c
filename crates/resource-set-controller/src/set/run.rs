//! Carries out what was rendered: step by step applied and waited for, then what is rendered no more is deleted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use api::flux_operator::{GROUP, RECREATE_ON_FAILURE};
use api::meta::ENABLED_VALUE;
use cluster_access::targets::Target;
use controller_kit::events::Severity;
use controller_kit::queue::Slot;
use jiff::Timestamp;
use kube_apply::{
    Action, Applied as StepApplied, ApplyOptions, Cascade, CommonMetadata, Guard, Inventory, Owner,
    PruneOptions, inventory,
};
use kube_health::{Checks, Outcome, Status, WaitRequest};
use manifest::{Object, ObjectId};
use reconcile_kit::inventory as recorded_inventory;
use resource_set::Objects;
use tokio::sync::Notify;

use super::environments::Environments;
use super::{Ended, Error, Pass, status};
use crate::health;

/// Longest wait for the end of deleted objects: those that deliver, before what they need is deleted, and those that are made again.
const LONGEST_END: Duration = Duration::from_secs(60);

/// What came of a run.
#[derive(Debug)]
pub(super) struct Applied {
    /// Digest of what was rendered.
    pub(super) revision: String,
    /// Whether anything in the cluster was changed.
    pub(super) changed: bool,
    /// Whether health was waited for.
    pub(super) waited: bool,
}

/// A run, fully determined.
pub(super) struct Run<'a> {
    pub(super) target: &'a Target,
    pub(super) owner: Owner,
    pub(super) revision: String,
    /// Objects that hold what came from a Secret.
    pub(super) confidential: HashSet<ObjectId>,
    /// What belongs to which pull request.
    pub(super) environments: Environments,
    pub(super) timeout: Duration,
    /// Ends a wait.
    pub(super) interrupt: Arc<Notify>,
}

impl Run<'_> {
    pub(super) async fn carry_out(self, pass: &mut Pass<'_>, steps: Vec<Objects>) -> Result<Ended, Error> {
        let spec = pass.object.spec.clone();
        let common = spec.common_metadata.unwrap_or_default();
        let common = CommonMetadata {
            labels: common.labels,
            annotations: common.annotations,
        };
        let timeouts: Vec<_> = match spec.steps.as_slice() {
            [] => vec![self.timeout],
            steps => steps
                .iter()
                .map(|step| step.timeout.map_or(self.timeout, api::meta::Duration::to_std))
                .collect(),
        };
        let old = recorded_inventory::read(pass.next.inventory.as_ref());
        let mut prepared = Vec::new();
        let mut new = Inventory::default();
        for step in steps {
            let within = match step.step.as_str() {
                "" => String::new(),
                name => format!("step '{name}': "),
            };
            let recreated: Vec<Object> = step
                .objects
                .iter()
                .filter(|object| is_recreated(object))
                .cloned()
                .collect();
            let ready = self
                .target
                .engine
                .prepare(&self.owner, step.objects, &common)
                .await;
            let ready = ready.map_err(|error| apply_error(&within, error))?;
            let ready = ready.confidential(|id| self.confidential.contains(id));
            new = new.union(&ready.inventory());
            prepared.push((within, recreated, ready));
        }
        let all = recorded_inventory::recorded(&old.union(&new));
        let is_known = pass.next.inventory.as_ref() == Some(&all);
        if !is_known {
            // Before the first effect: what is applied and forgotten would stay for ever.
            pass.next.inventory = Some(all);
            status::progressing(&mut pass.next, &pass.object, "applying objects", Timestamp::now());
            self.record(pass).await?;
        }
        let is_waiting = spec.wait || !spec.steps.is_empty();
        let mut changed = false;
        let count = prepared.len();
        for (index, ((within, recreated, ready), timeout)) in prepared.into_iter().zip(timeouts).enumerate() {
            for object in &recreated {
                changed |= self.remove_if_failed(object, pass.slot).await;
            }
            let options = ApplyOptions {
                want_live: is_waiting,
                partial: count > 1,
                ..ApplyOptions::default()
            };
            let applied = match self.target.engine.apply(ready, &options).await {
                Ok(applied) => applied,
                Err(error) => {
                    if index == 0 && error.wrote_nothing() {
                        // What was not made is not managed: it would be deleted later, in vain.
                        pass.next.inventory = Some(recorded_inventory::recorded(&old));
                    }
                    return Err(apply_error(&within, error));
                }
            };
            changed |= self.tell(pass, &applied);
            self.environments.applied(index, pass);
            if is_waiting && !self.wait(pass, &within, applied, timeout).await? {
                return Ok(Ended::Interrupted);
            }
        }
        changed |= self.prune(pass, &old, &new).await?;
        pass.next.inventory = Some(recorded_inventory::recorded(&new));
        Ok(Ended::Applied(Applied {
            revision: self.revision,
            changed,
            waited: is_waiting,
        }))
    }

    async fn record(&self, pass: &mut Pass<'_>) -> Result<(), Error> {
        let written = pass
            .context
            .sets
            .write(Arc::clone(&pass.object), &pass.next)
            .await;
        pass.object = written.map_err(super::Unrecorded::from)?;
        Ok(())
    }

    /// Tells what an apply changed. Returns whether it was anything.
    fn tell(&self, pass: &Pass<'_>, applied: &StepApplied) -> bool {
        let lines: Vec<_> = applied
            .changed()
            .map(|change| format!("{} {}", change.id, change.action))
            .collect();
        if !lines.is_empty() {
            let sets = &pass.context.sets;
            sets.publish(
                &pass.object,
                Severity::Info,
                api::meta::reasons::PROGRESSING,
                &lines.join("\n"),
            );
        }
        !lines.is_empty()
    }

    /// Waits until what was applied is healthy. Returns whether it is; false if something newer is to be applied.
    async fn wait(
        &self,
        pass: &mut Pass<'_>,
        within: &str,
        applied: StepApplied,
        timeout: Duration,
    ) -> Result<bool, Error> {
        let began = tokio::time::Instant::now();
        let objects = self.targets(applied).await;
        if objects.is_empty() {
            return Ok(true);
        }
        let request = WaitRequest {
            jobs_with_ttl: health::jobs_with_ttl(&objects),
            objects,
            timeout,
            fail_fast: true,
            checks: Checks::default(),
        };
        let mut wait = std::pin::pin!(self.target.hub.wait(request));
        let outcome = match futures::poll!(&mut wait) {
            std::task::Poll::Ready(outcome) => outcome,
            std::task::Poll::Pending => {
                let message = format!("{within}waiting until objects are healthy");
                status::progressing(&mut pass.next, &pass.object, &message, Timestamp::now());
                self.record(pass).await?;
                pass.slot.pause();
                let outcome = tokio::select! {
                    outcome = wait => Some(outcome),
                    () = self.interrupt.notified() => None,
                    () = pass.context.shutdown.cancelled() => None,
                };
                pass.slot.resume().await;
                match outcome {
                    Some(outcome) => outcome,
                    None => return Ok(false),
                }
            }
        };
        match outcome {
            Outcome::Healthy => Ok(true),
            Outcome::Unhealthy(report) | Outcome::TimedOut(report) => Err(Error::Health {
                within: within.to_owned(),
                after: Duration::from_secs(began.elapsed().as_secs()).into(),
                report: Box::new(report),
            }),
        }
    }

    async fn targets(&self, applied: StepApplied) -> Vec<kube_health::Target> {
        let mut targets = Vec::new();
        for change in applied.changes {
            // Waiting for itself would never end.
            let is_itself = change.id.kind == "ResourceSet"
                && (&change.id.namespace, &change.id.name) == (&self.owner.namespace, &self.owner.name);
            if change.action == Action::Skipped || is_itself {
                continue;
            }
            let live = match change.live {
                Some(live) => Some(live),
                None => self.target.live(&change.id, &change.gvk.version).await,
            };
            targets.push(health::target(change.id, change.gvk.version, live));
        }
        targets
    }

    /// Deletes a failed object that is to be made again. Returns whether it did.
    async fn remove_if_failed(&self, object: &Object, slot: &Slot) -> bool {
        let (id, version) = (object.id(), object.gvk().version);
        let Ok(Some(live)) = super::read(self.target, &id, &version).await else {
            return false;
        };
        if kube_health::verdict::compute(&live).status != Status::Failed {
            return false;
        }
        let Ok(Some(at)) = self.target.engine.address(&id, &version).await else {
            return false;
        };
        // What cannot be deleted is applied as it is, and the condition reports its failure.
        if self
            .target
            .engine
            .delete_one(&at, Cascade::Background)
            .await
            .is_err()
        {
            return false;
        }
        slot.pause();
        let gone = self.target.engine.wait_gone(&at, LONGEST_END).await;
        slot.resume().await;
        gone.is_ok()
    }

    /// Deletes what is rendered no more. Returns whether there was anything.
    async fn prune(&self, pass: &mut Pass<'_>, old: &Inventory, new: &Inventory) -> Result<bool, Error> {
        let stale = inventory::diff(old, new);
        if stale.is_empty() {
            return Ok(false);
        }
        let (deleted, failed) = delete(
            self.target,
            &self.owner,
            &stale,
            (&pass.context.own_namespace, pass.slot),
        )
        .await;
        if !deleted.is_empty() {
            let lines: Vec<_> = deleted.iter().map(|id| format!("{id} deleted")).collect();
            let sets = &pass.context.sets;
            sets.publish(
                &pass.object,
                Severity::Info,
                api::meta::reasons::PROGRESSING,
                &lines.join("\n"),
            );
        }
        if failed.is_empty() {
            return Ok(!deleted.is_empty());
        }
        let left: Inventory = stale
            .into_iter()
            .filter(|(id, _)| failed.iter().any(|(other, _)| other == id))
            .collect();
        pass.next.inventory = Some(recorded_inventory::recorded(&new.union(&left)));
        Err(Error::Prune(failed.into_iter().map(|(_, error)| error).collect()))
    }
}

type Failures = Vec<(ObjectId, kube_apply::ObjectError)>;

/// Deletes objects: first those that deliver others, whose controllers need their accounts and Secrets to clean up, then the rest.
pub(super) async fn delete(
    target: &Target,
    owner: &Owner,
    stale: &[(ObjectId, String)],
    (own_namespace, slot): (&str, &Slot),
) -> (Vec<ObjectId>, Failures) {
    let options = PruneOptions {
        guard: Guard {
            own_namespace: Some(own_namespace.to_owned()).filter(|_| target.place.is_home()),
            ..Guard::default()
        },
    };
    let (first, rest): (Vec<_>, Vec<_>) = stale.iter().cloned().partition(|(id, _)| delivers(id));
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for (index, objects) in [first, rest].into_iter().enumerate() {
        if objects.is_empty() {
            continue;
        }
        let pruned = target.engine.prune(owner, &objects, &options).await;
        if index == 0 {
            let ends = pruned
                .deleted
                .iter()
                .filter_map(|id| objects.iter().find(|(other, _)| other == id));
            let ends = ends.map(|(id, version)| async move {
                if let Ok(Some(at)) = target.engine.address(id, version).await {
                    // What does not end in time has the rest taken away from it.
                    let _ = target.engine.wait_gone(&at, LONGEST_END).await;
                }
            });
            // A finalizer of a tenant may hold it up, and must not hold up others.
            slot.pause();
            futures::future::join_all(ends).await;
            slot.resume().await;
        }
        deleted.extend(pruned.deleted);
        failed.extend(pruned.failed);
    }
    (deleted, failed)
}

fn delivers(id: &ObjectId) -> bool {
    id.group.ends_with(".toolkit.fluxcd.io") || id.group == GROUP
}

fn is_recreated(object: &Object) -> bool {
    let value = object.annotation(RECREATE_ON_FAILURE);
    value.is_some_and(|value| value.eq_ignore_ascii_case(ENABLED_VALUE))
}

fn apply_error(within: &str, error: kube_apply::ApplyError) -> Error {
    Error::Apply {
        within: within.to_owned(),
        error: Box::new(error),
    }
}
