//! The end of a Kustomization: what it manages goes or stays, as its deletion policy says; then its finalizer goes.

use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{DeletionPolicy, Kustomization};
use cluster_access::targets::Target;
use controller_kit::queue::Outcome as Next;
use kube_apply::PruneOptions;
use manifest::ObjectId;
use reconcile_kit::base::placement;

use super::pass::Pass;
use super::{handover, prune, rollback};
use crate::memory::Termination;

/// Removes what is to be removed, then lets the object go. Waiting for termination holds no worker.
pub(super) async fn finalize(mut pass: Pass<'_>) -> Next {
    if !pass.recorder.has_finalizer() {
        pass.context.forget(pass.key);
        return Next::Done;
    }
    match pass.remembered(|entry| entry.termination) {
        Some(Termination::Awaited) => return Next::Done,
        Some(Termination::Over) => {}
        None => {
            let deleted = match delete(&mut pass).await {
                Ok(deleted) => deleted,
                Err(Held::Failed) => return Next::Backoff,
                Err(Held::HandingOver) => return handing_over(&pass),
            };
            if pass.object().deletion_policy() == DeletionPolicy::WaitForTermination
                && let Some((target, deleted)) = deleted.filter(|(_, deleted)| !deleted.is_empty())
            {
                await_termination(&pass, target, deleted);
                return Next::Done;
            }
        }
    }
    if let Err(error) = rollback::forget(&pass).await {
        tracing::error!(error = error.message(), "failed to delete what is kept");
        return Next::Backoff;
    }
    match pass.recorder.remove_finalizer().await {
        Ok(()) => {
            pass.context.forget(pass.key);
            Next::Done
        }
        Err(_) => Next::Backoff,
    }
}

/// Why the object has to stay.
enum Held {
    /// Something could not be deleted, or must not be yet.
    Failed,
    /// Others are about to take over what it managed. Their changes wake it.
    HandingOver,
}

fn handing_over(pass: &Pass<'_>) -> Next {
    let waits = pass.remembered(|entry| entry.handing_over.clone());
    waits.map_or(Next::Backoff, |waits| match waits.moved {
        true => Next::After(Duration::ZERO),
        false => Next::After(reconcile_kit::patience::until(waits.until())),
    })
}

/// Deleted objects, and their target.
type Deleted = (Arc<Target>, Vec<(ObjectId, String)>);

async fn delete(pass: &mut Pass<'_>) -> Result<Option<Deleted>, Held> {
    pass.remembered(|entry| entry.wait = None);
    let owner = pass.owner();
    let Pass {
        context,
        key,
        observed,
        recorder,
    } = pass;
    let object = &*observed.object;
    if !deletes(object) {
        return Ok(None);
    }
    let targets = &context.base.targets;
    let target = match targets.has_account(placement(object)).await {
        Ok(true) => {
            let target = targets.target_of(placement(object)).await;
            target.map_err(|error| error.to_string())
        }
        // As in Flux: without its account nothing can be deleted, and the object must not hang for that.
        Ok(false) => {
            recorder.left_behind(&super::inventory::managed_before(object).sorted());
            return Ok(None);
        }
        Err(error) => Err(error.to_string()),
    };
    let target = target.map_err(|error| {
        recorder.cannot_prune(&error);
        Held::Failed
    })?;
    let Some(sorted) = handover::at_the_end(context, key, object, &target).await else {
        return Err(Held::HandingOver);
    };
    let managed = sorted.to_be_deleted();
    let options = PruneOptions {
        guard: context.prune.at_the_end(object, &target),
    };
    let pruned = handover::delete(&target, &owner, &sorted, &options).await;
    recorder.pruned(None, &pruned);
    if let Some(refused) = &pruned.refused {
        let left = super::inventory::recorded(&handover::left(&managed, &pruned).collect());
        let message = prune::explained(object, refused);
        // It is tried again in any case: the content may go, or a confirmation come.
        let _ = recorder.prune_refused(message, left).await;
        return Err(Held::Failed);
    }
    if pruned.failed.is_empty() {
        let deleted = managed.into_iter().filter(|(id, _)| pruned.deleted.contains(id));
        Ok(Some((target, deleted.collect())))
    } else {
        Err(Held::Failed)
    }
}

/// Returns whether the objects go with their Kustomization. A suspended one leaves everything as it is.
fn deletes(object: &Kustomization) -> bool {
    !object.spec.suspend
        && match object.deletion_policy() {
            DeletionPolicy::MirrorPrune => object.spec.prune,
            DeletionPolicy::Delete | DeletionPolicy::WaitForTermination => true,
            DeletionPolicy::Orphan => false,
        }
}

fn await_termination(pass: &Pass<'_>, target: Arc<Target>, deleted: Vec<(ObjectId, String)>) {
    pass.remembered(|entry| entry.termination = Some(Termination::Awaited));
    let (context, key) = (Arc::clone(pass.context), pass.key.clone());
    let timeout = pass.object().timeout().into();
    tokio::spawn(async move {
        // As in Flux, the object goes even if some of what it managed hangs; it is only told.
        if let Err(left) = target.engine.wait_terminated(&deleted, timeout).await {
            let left: Vec<_> = left.iter().map(ToString::to_string).collect();
            let (namespace, name, left) = (&key.namespace, &key.name, left.join(", "));
            tracing::error!(namespace, name, left, "failed to wait for resources termination");
        }
        context
            .memory
            .with(&key, |entry| entry.termination = Some(Termination::Over));
        context.base.queue.add(key);
    });
}

#[cfg(test)]
mod tests {
    use api::kustomize::KustomizationSpec;

    use super::*;

    #[test]
    fn the_policy_says_what_goes() {
        for (policy, prune, suspend, goes) in [
            (None, true, false, true),
            (None, false, false, false),
            (Some(DeletionPolicy::MirrorPrune), true, false, true),
            (Some(DeletionPolicy::Delete), false, false, true),
            (Some(DeletionPolicy::WaitForTermination), false, false, true),
            (Some(DeletionPolicy::Orphan), true, false, false),
            (Some(DeletionPolicy::Delete), true, true, false),
        ] {
            let spec = KustomizationSpec {
                prune,
                suspend,
                deletion_policy: policy,
                ..KustomizationSpec::default()
            };
            assert_eq!(
                deletes(&Kustomization::new("a", spec)),
                goes,
                "{policy:?} prune={prune} suspend={suspend}"
            );
        }
    }
}
