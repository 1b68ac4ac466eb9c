//! Back to the last revision that was healthy (ADR 27): which revisions are kept, and when one is held.
//!
//! A revision that is held is never applied; the kept objects are, also against drift, until another revision comes, the spec or
//! the variables change, or a person releases it.

use std::collections::BTreeSet;
use std::time::Duration;

use api::kustomize::{Kustomization, RELEASED_ANNOTATION as RELEASED};
use api::meta::reasons;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::{Class, Expected, Inventory, Means, Prepared};
use manifest::ObjectId;

use super::ended::Failed;
use super::observe::Observed;
use super::pass::Pass;
use super::plan::{Content, Plan};
use super::status::Health;
use crate::context::Context;
use crate::error::Error;
use crate::good::{self, Head, Held, Record};
use crate::memory::{Inputs, Run};

/// The annotation that asks for it, and its only value.
pub const ROLLBACK: &str = "windlass.dev/rollback";
pub const LAST_KNOWN_GOOD: &str = "last-known-good";
/// The annotation with the time for which a revision may be unhealthy.
const AFTER: &str = "windlass.dev/rollback-after";
/// Characters of what was not healthy that are kept.
const MAX_WHY: usize = 600;

/// Returns whether an object asks to be rolled back.
pub fn is_wanted(object: &Kustomization) -> bool {
    annotation(object, ROLLBACK) == Some(LAST_KNOWN_GOOD)
}

/// Returns the annotations that wake an object when they change, as they are not part of its spec.
pub fn wishes(object: &Kustomization) -> [Option<String>; 3] {
    [ROLLBACK, AFTER, RELEASED].map(|key| annotation(object, key).map(str::to_owned))
}

/// Returns the error in the annotations, if there is one.
pub(super) fn mistake(object: &Kustomization) -> Option<String> {
    let asked = annotation(object, ROLLBACK)?;
    if asked != LAST_KNOWN_GOOD {
        return Some(format!(
            "the annotation {ROLLBACK} must be '{LAST_KNOWN_GOOD}', and not '{asked}'"
        ));
    }
    let problem = after(object).err()?;
    Some(format!(
        "the annotation {AFTER} must be a duration such as 10m: {problem}"
    ))
}

fn annotation<'a>(object: &'a Kustomization, key: &str) -> Option<&'a str> {
    object.annotations().get(key).map(String::as_str)
}

fn after(object: &Kustomization) -> Result<Duration, String> {
    let Some(text) = annotation(object, AFTER) else {
        return Ok(Duration::ZERO);
    };
    let read: Result<api::meta::Duration, _> = text.parse();
    read.map(api::meta::Duration::to_std)
        .map_err(|error| error.to_string())
}

/// Returns what to apply: the source's revision or, while that is held, the last revision that was healthy.
pub(super) fn content(observed: &Observed, inputs: &Inputs) -> Content {
    let object = &observed.object;
    let Record {
        good: Some(good),
        held: Some(held),
    } = &observed.record
    else {
        return Content::Source;
    };
    let is_held = is_wanted(object)
        && (held.generation, &held.revision, &held.digest)
            == (inputs.generation, &inputs.revision, &inputs.digest)
        && annotation(object, RELEASED) != Some(&held.revision)
        // What was touched may be what was missing.
        && !observed.variables_touched;
    match is_held {
        true => Content::Good {
            revision: good.revision.clone(),
            origin_revision: good.origin_revision.clone(),
        },
        false => Content::Source,
    }
}

/// Reads the record of an object, unless it is known. Deletes the record of an object that no longer asks for one.
pub(super) async fn load(
    context: &Context,
    observed: &mut Observed,
    key: &controller_kit::ObjectKey,
) -> Result<(), good::Error> {
    let known = context.memory.with(key, |entry| entry.record.clone());
    let uid = observed.object.uid().unwrap_or_default();
    if !is_wanted(&observed.object) {
        if known.is_some_and(|known| known != Record::default()) {
            context.good.forget(&uid).await?;
        }
        context.memory.with(key, |entry| entry.record = None);
        return Ok(());
    }
    observed.record = match known {
        Some(known) => known,
        None => {
            let read = context.good.record(&uid).await?;
            context
                .memory
                .with(key, |entry| entry.record = Some(read.clone()));
            read
        }
    };
    Ok(())
}

/// Deletes the record of an object that is being deleted.
pub(super) async fn forget(pass: &Pass<'_>) -> Result<(), Error> {
    let uid = pass.object().uid().unwrap_or_default();
    match is_wanted(pass.object()) {
        true => Ok(pass.context.good.forget(&uid).await?),
        false => Ok(()),
    }
}

/// Returns whether what a run applies may be kept: it asks for health, or nothing would ever be held.
pub(super) fn may_be_kept(object: &Kustomization) -> bool {
    is_wanted(object) && (object.spec.wait || !object.spec.health_checks.is_empty())
}

/// Keeps a healthy revision, before it is reported.
pub(super) async fn keep(pass: &Pass<'_>, run: &Run, health: Health) -> Result<(), Error> {
    pass.remembered(|entry| entry.unhealthy_since = None);
    let (true, Some(packed)) = (matches!(health, Health::Passed(_)), &run.packed) else {
        return Ok(());
    };
    let head = Head {
        generation: run.plan.inputs.generation,
        revision: run.plan.inputs.revision.clone(),
        origin_revision: run.plan.origin_revision.clone(),
        checksum: run.checksum.clone(),
    };
    pass.context.good.keep(pass.object(), &head, packed).await?;
    pass.remembered(|entry| {
        entry.record = Some(Record {
            good: Some(head),
            held: None,
        });
    });
    Ok(())
}

/// Reports once that objects could not be kept.
pub(super) fn is_not_kept(pass: &Pass<'_>, plan: &Plan, checksum: &str, why: &str) {
    pass.remembered(|entry| entry.unkept = Some(checksum.to_owned()));
    pass.recorder.cannot_be_kept(plan, why);
}

/// Ends a hold, as a run of the source's revision begins.
pub(super) async fn let_go(pass: &Pass<'_>) -> Result<(), Error> {
    let held = pass.remembered(|entry| entry.record.as_ref().is_some_and(|record| record.held.is_some()));
    if !held {
        return Ok(());
    }
    let uid = pass.object().uid().unwrap_or_default();
    pass.context.good.hold(&uid, None).await?;
    pass.remembered(|entry| {
        if let Some(record) = &mut entry.record {
            record.held = None;
        }
    });
    Ok(())
}

/// Holds a revision that is not healthy, if there is one to go back to. Returns whether it does.
pub(super) async fn hold(pass: &Pass<'_>, plan: &Plan, failed: &Failed) -> bool {
    let now = Timestamp::now();
    let (true, Error::Health { .. }) = (plan.content == Content::Source, &failed.error) else {
        return false;
    };
    let since = pass.remembered(|entry| {
        let known = entry
            .unhealthy_since
            .take()
            .filter(|(inputs, _)| *inputs == plan.inputs);
        let since = known.map_or(now, |(_, since)| since);
        entry.unhealthy_since = Some((plan.inputs.clone(), since));
        since
    });
    let (object, good) = (pass.object(), pass.observed.record.good.as_ref());
    let unhealthy_for = now.duration_since(since).unsigned_abs();
    if !may_go_back(
        object,
        good,
        (&plan.inputs, failed.checksum.as_ref()),
        unhealthy_for,
    ) {
        return false;
    }
    let held = Held {
        generation: plan.inputs.generation,
        revision: plan.inputs.revision.clone(),
        digest: plan.inputs.digest.clone(),
        why: failed.error.message().chars().take(MAX_WHY).collect(),
        since: now,
    };
    let uid = pass.object().uid().unwrap_or_default();
    if let Err(error) = pass.context.good.hold(&uid, Some(&held)).await {
        // The retry of the run tries it again.
        tracing::error!(
            error = Error::from(error).message(),
            "failed to hold the revision"
        );
        pass.remembered(|entry| entry.record = None);
        return false;
    }
    pass.remembered(|entry| {
        entry.unhealthy_since = None;
        if let Some(record) = &mut entry.record {
            record.held = Some(held);
        }
    });
    true
}

/// Returns whether there is a way back from inputs whose objects were not healthy for so long.
fn may_go_back(
    object: &Kustomization,
    good: Option<&Head>,
    (inputs, checksum): (&Inputs, Option<&String>),
    unhealthy_for: Duration,
) -> bool {
    let Some(good) = good else {
        return false;
    };
    is_wanted(object)
        && annotation(object, RELEASED) != Some(&inputs.revision)
        // Of another spec the objects may belong elsewhere.
        && good.generation == inputs.generation
        // The same objects were healthy: going back changes nothing.
        && checksum != Some(&good.checksum)
        && is_the_last(object, good)
        && after(object).is_ok_and(|after| unhealthy_for >= after)
}

/// Returns whether no other revision was healthy since. One that could not be kept is in the history all the same.
fn is_the_last(object: &Kustomization, good: &Head) -> bool {
    let was_good =
        |outcome: &str| [reasons::RECONCILIATION_SUCCEEDED, reasons::ROLLED_BACK].contains(&outcome);
    // The newest is first.
    let mut history = object.status.iter().flat_map(|status| &status.history);
    let newest = history.find(|snapshot| was_good(&snapshot.last_reconciled_status));
    newest.is_none_or(|newest| newest.digest == good.checksum)
}

/// Which of the objects stay as they are: Jobs have run, definitions may have objects of the newer version, and what cannot be
/// changed would only be deleted.
pub(super) async fn stay(
    target: &cluster_access::targets::Target,
    prepared: &Prepared,
    managed: &Inventory,
    force: bool,
) -> BTreeSet<ObjectId> {
    let previews = target.engine.preview(prepared, force, Means::Apply).await;
    let stays = previews.into_iter().filter(|preview| {
        let kind = (&*preview.id.group, &*preview.id.kind);
        let is_immutable = matches!(&preview.expected, Err(error) if error.class == Class::Immutable);
        let changes = !matches!(&preview.expected, Ok(Expected::Unchanged(_)));
        let cannot = kind == ("batch", "Job")
            || kind == ("apiextensions.k8s.io", "CustomResourceDefinition") && managed.contains(&preview.id);
        is_immutable || cannot && changes
    });
    stays.map(|preview| preview.id).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn object(annotations: &Value, history: &[(&str, &str)]) -> Kustomization {
        let at = "2026-01-01T00:00:00Z";
        let history = history.iter().map(|(digest, outcome)| {
            json!({
                "digest": digest, "firstReconciled": at, "lastReconciled": at, "lastReconciledDuration": "1s",
                "lastReconciledStatus": outcome, "totalReconciliations": 1,
            })
        });
        let object = json!({
            "metadata": {"name": "app", "namespace": "ns", "annotations": annotations},
            "spec": {"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}},
            "status": {"history": history.collect::<Vec<_>>()},
        });
        serde_json::from_value(object).unwrap()
    }

    fn way_back(object: &Kustomization, generation: i64, checksum: &str, unhealthy_for: Duration) -> bool {
        let good = Head {
            generation: 3,
            revision: "r0".to_owned(),
            origin_revision: None,
            checksum: "sha256:0".to_owned(),
        };
        let inputs = Inputs {
            generation,
            revision: "r1".to_owned(),
            digest: "sha256:r1".to_owned(),
        };
        let checksum = checksum.to_owned();
        may_go_back(object, Some(&good), (&inputs, Some(&checksum)), unhealthy_for)
    }

    #[test]
    fn there_is_a_way_back_to_other_objects_of_the_same_spec() {
        let wanted = object(&json!({ROLLBACK: LAST_KNOWN_GOOD}), &[]);
        assert!(way_back(&wanted, 3, "sha256:1", Duration::ZERO));
        assert!(!way_back(&wanted, 4, "sha256:1", MINUTE), "another spec");
        assert!(!way_back(&wanted, 3, "sha256:0", MINUTE), "the same objects");
        assert!(!way_back(&object(&json!({}), &[]), 3, "sha256:1", MINUTE));
        let released = object(&json!({ROLLBACK: LAST_KNOWN_GOOD, RELEASED: "r1"}), &[]);
        assert!(!way_back(&released, 3, "sha256:1", MINUTE));
        let patient = object(&json!({ROLLBACK: LAST_KNOWN_GOOD, AFTER: "1m"}), &[]);
        assert!(!way_back(&patient, 3, "sha256:1", MINUTE / 2));
        assert!(way_back(&patient, 3, "sha256:1", MINUTE));
    }

    #[test]
    fn there_is_none_past_a_healthy_revision_that_was_not_kept() {
        let (succeeded, failed) = ("ReconciliationSucceeded", "HealthCheckFailed");
        let wish = json!({ROLLBACK: LAST_KNOWN_GOOD});
        let kept = [("sha256:1", failed), ("sha256:0", succeeded)];
        assert!(way_back(&object(&wish, &kept), 3, "sha256:1", MINUTE));
        let passed = [("sha256:2", succeeded), ("sha256:0", succeeded)];
        assert!(!way_back(&object(&wish, &passed), 3, "sha256:1", MINUTE));
        let rolled_back = [("sha256:0", "RolledBack"), ("sha256:2", succeeded)];
        assert!(way_back(&object(&wish, &rolled_back), 3, "sha256:1", MINUTE));
    }
}
