//! Back to a revision that was healthy (ADR 27): which revisions are kept, and when one is held.
//!
//! A revision that is held is never applied; the kept objects are, also against drift, until another revision comes, the spec or
//! the variables change, or a person releases it.

mod by_hand;

use std::collections::BTreeSet;
use std::time::Duration;

use api::kustomize::{
    Kustomization, KustomizationStatus, RELEASED_ANNOTATION as RELEASED, ROLLBACK_ANNOTATION as ROLLBACK,
};
use api::meta::{
    ROLLBACK_REASON_ANNOTATION as ROLLBACK_REASON, ROLLBACK_TO_ANNOTATION as ROLLBACK_TO, Snapshot, reasons,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::{Class, Expected, Inventory, Means, Prepared};
use manifest::ObjectId;

use super::ended::Failed;
use super::frozen;
use super::observe::Observed;
use super::pass::Pass;
use super::plan::{Content, Kept, Plan};
use super::status::Health;
use crate::context::Context;
use crate::error::Error;
use crate::good::{self, Head, Held, Record};
use crate::memory::{Inputs, Run};

pub(super) use by_hand::{begin, is_under_way, problem};

/// The value of [`ROLLBACK`] if a revision that is not healthy is held by itself.
pub const LAST_KNOWN_GOOD: &str = "last-known-good";
/// Its value if only a person goes back.
pub const BY_HAND: &str = "by-hand";
/// The annotation with the time for which a revision may be unhealthy.
const AFTER: &str = "windlass.dev/rollback-after";
/// Characters of what was not healthy that are kept.
const MAX_WHY: usize = 600;

/// Returns whether an object asks for its revisions to be kept, or is rolled back to one of them.
pub fn is_kept(object: &Kustomization) -> bool {
    is_wanted(object) || by_hand::is_asked(object)
}

fn is_wanted(object: &Kustomization) -> bool {
    is_automatic(object) || annotation(object, ROLLBACK) == Some(BY_HAND)
}

/// Returns whether an object is to be rolled back by itself.
fn is_automatic(object: &Kustomization) -> bool {
    annotation(object, ROLLBACK) == Some(LAST_KNOWN_GOOD)
}

/// Returns the annotations that wake an object when they change, as they are not part of its spec.
pub fn wishes(object: &Kustomization) -> [Option<String>; 5] {
    [ROLLBACK, AFTER, RELEASED, ROLLBACK_TO, ROLLBACK_REASON]
        .map(|key| annotation(object, key).map(str::to_owned))
}

/// Returns the error in the annotations, if there is one.
pub(super) fn mistake(object: &Kustomization) -> Option<String> {
    let asked = annotation(object, ROLLBACK)?;
    if !is_wanted(object) {
        return Some(format!(
            "the annotation {ROLLBACK} must be '{LAST_KNOWN_GOOD}' or '{BY_HAND}', and not '{asked}'"
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

/// Returns what to apply: the source's revision or, while that is held, an earlier one that was healthy.
pub(super) fn content(observed: &Observed, inputs: &Inputs) -> Content {
    let object = &observed.object;
    if by_hand::is_asked(object) {
        return by_hand::wanted(observed).map_or(Content::Source, Content::Good);
    }
    let Some(held) = &observed.record.held else {
        return Content::Source;
    };
    let is_held = is_automatic(object)
        && !held.by_hand
        && (held.generation, &held.revision, &held.digest)
            == (inputs.generation, &inputs.revision, &inputs.digest)
        && annotation(object, RELEASED) != Some(&held.revision)
        // What was touched may be what was missing.
        && !observed.variables_touched;
    match observed.record.find(&held.instead) {
        Some(head) if is_held => Content::Good(Kept::from(head)),
        _ => Content::Source,
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
    if !is_recorded(observed) {
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

/// Returns whether what is delivered is recorded: to go back to it, or to know it while a Freeze is in force.
pub(super) fn is_recorded(observed: &Observed) -> bool {
    is_kept(&observed.object) || observed.frozen.is_covered
}

/// Deletes the record of an object that is being deleted.
pub(super) async fn forget(pass: &Pass<'_>) -> Result<(), Error> {
    let uid = pass.object().uid().unwrap_or_default();
    match is_recorded(&pass.observed) {
        true => Ok(pass.context.good.forget(&uid).await?),
        false => Ok(()),
    }
}

/// Keeps a healthy revision, before it is reported.
pub(super) async fn keep(pass: &Pass<'_>, run: &Run, health: Health) -> Result<(), Error> {
    pass.remembered(|entry| entry.unhealthy_since = None);
    let head = Head {
        spec: frozen::spec_digest(pass.object()),
        revision: run.plan.inputs.revision.clone(),
        origin_revision: run.plan.origin_revision.clone(),
        checksum: run.checksum.clone(),
        size: run.packed.as_ref().map(|packed| packed.len() as u64),
    };
    let (known, is_covered) = (&pass.observed.record, pass.observed.frozen.is_covered);
    let is_newest = |newest: &Head| (&newest.spec, &newest.checksum) == (&head.spec, &head.checksum);
    // Without its objects it is recorded for Freezes alone: nothing goes back to it.
    let is_due = match health {
        Health::Passed(_) | Health::NotAsked if head.has_objects() => true,
        _ => is_covered && !known.kept.first().is_some_and(is_newest),
    };
    if !is_due {
        return Ok(());
    }
    let store = &pass.context.good;
    match store
        .keep(pass.object(), known, &head, run.packed.as_deref())
        .await
    {
        Err(error @ good::Error::Full(_)) if is_covered => {
            let head = Head { size: None, ..head };
            kept_as(pass, store.keep(pass.object(), known, &head, None).await?);
            Err(error.into())
        }
        kept => {
            kept_as(pass, kept?);
            Ok(())
        }
    }
}

fn kept_as(pass: &Pass<'_>, record: Record) {
    pass.remembered(|entry| entry.record = Some(record));
}

/// Reports once that objects could not be kept.
pub(super) fn is_not_kept(pass: &Pass<'_>, plan: &Plan, checksum: &str, why: &str) {
    pass.remembered(|entry| entry.unkept = Some(checksum.to_owned()));
    // For a Freeze alone it is no loss: what waits says that drift is not corrected.
    if is_wanted(pass.object()) {
        pass.recorder.cannot_be_kept(plan, why);
    }
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
    let unhealthy_for = now.duration_since(since).unsigned_abs();
    let good = way_back(
        pass.object(),
        &pass.observed.record,
        (&plan.inputs, failed.checksum.as_ref()),
        unhealthy_for,
    );
    let Some(good) = good else {
        return false;
    };
    let held = Held {
        generation: plan.inputs.generation,
        revision: plan.inputs.revision.clone(),
        digest: plan.inputs.digest.clone(),
        why: failed.error.message().chars().take(MAX_WHY).collect(),
        since: now,
        instead: good.checksum.clone(),
        by_hand: false,
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

/// Returns the revision to go back to from inputs whose objects were not healthy for so long.
fn way_back<'a>(
    object: &Kustomization,
    record: &'a Record,
    (inputs, checksum): (&Inputs, Option<&String>),
    unhealthy_for: Duration,
) -> Option<&'a Head> {
    let may_go_back = is_automatic(object)
        && annotation(object, RELEASED) != Some(&inputs.revision)
        && after(object).is_ok_and(|after| unhealthy_for >= after);
    if !may_go_back {
        return None;
    }
    // One that was healthy since and could not be kept is in the history all the same: there is no way past it.
    let good = match object.status.as_ref().and_then(last_good) {
        Some(newest) => record.find(&newest.digest),
        None => record.kept.first(),
    };
    good.filter(|good| {
        good.has_objects()
            // Of another spec the objects may belong elsewhere.
            && frozen::is_of_spec(good, object)
            // The same objects were healthy: going back changes nothing.
            && checksum != Some(&good.checksum)
    })
}

/// Returns the newest of the history that went well.
pub(super) fn last_good(status: &KustomizationStatus) -> Option<&Snapshot> {
    let was_good = |snapshot: &&Snapshot| {
        let outcome = &*snapshot.last_reconciled_status;
        [reasons::RECONCILIATION_SUCCEEDED, reasons::ROLLED_BACK].contains(&outcome)
    };
    // The newest is first.
    status.history.iter().find(was_good)
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

    fn goes_back(object: &Kustomization, checksum: &str, unhealthy_for: Duration) -> bool {
        let of = self::object(&json!({}), &[]);
        goes_back_of(object, &of, checksum, unhealthy_for)
    }

    /// Back to what was built with the spec of another object.
    fn goes_back_of(
        object: &Kustomization,
        of: &Kustomization,
        checksum: &str,
        unhealthy_for: Duration,
    ) -> bool {
        let good = Head {
            spec: frozen::spec_digest(of),
            revision: "r0".to_owned(),
            origin_revision: None,
            checksum: "sha256:0".to_owned(),
            size: Some(1),
        };
        let record = Record {
            kept: vec![good],
            held: None,
        };
        let inputs = Inputs {
            generation: 3,
            revision: "r1".to_owned(),
            digest: "sha256:r1".to_owned(),
        };
        let checksum = checksum.to_owned();
        way_back(object, &record, (&inputs, Some(&checksum)), unhealthy_for).is_some()
    }

    #[test]
    fn there_is_a_way_back_to_other_objects_of_the_same_spec() {
        let wanted = object(&json!({ROLLBACK: LAST_KNOWN_GOOD}), &[]);
        assert!(goes_back(&wanted, "sha256:1", Duration::ZERO));
        let mut other = object(&json!({}), &[]);
        other.spec.suspend = true;
        other.spec.timeout = Some(api::meta::Duration::from(MINUTE));
        assert!(goes_back_of(&wanted, &other, "sha256:1", MINUTE), "the same spec");
        other.spec.path = "./elsewhere".to_owned().into();
        assert!(!goes_back_of(&wanted, &other, "sha256:1", MINUTE), "another spec");
        assert!(!goes_back(&wanted, "sha256:0", MINUTE), "the same objects");
        assert!(!goes_back(&object(&json!({}), &[]), "sha256:1", MINUTE));
        let released = object(&json!({ROLLBACK: LAST_KNOWN_GOOD, RELEASED: "r1"}), &[]);
        assert!(!goes_back(&released, "sha256:1", MINUTE));
        let patient = object(&json!({ROLLBACK: LAST_KNOWN_GOOD, AFTER: "1m"}), &[]);
        assert!(!goes_back(&patient, "sha256:1", MINUTE / 2));
        assert!(goes_back(&patient, "sha256:1", MINUTE));
    }

    #[test]
    fn there_is_none_past_a_healthy_revision_that_was_not_kept() {
        let (succeeded, failed) = ("ReconciliationSucceeded", "HealthCheckFailed");
        let wish = json!({ROLLBACK: LAST_KNOWN_GOOD});
        let kept = [("sha256:1", failed), ("sha256:0", succeeded)];
        assert!(goes_back(&object(&wish, &kept), "sha256:1", MINUTE));
        let passed = [("sha256:2", succeeded), ("sha256:0", succeeded)];
        assert!(!goes_back(&object(&wish, &passed), "sha256:1", MINUTE));
        let rolled_back = [("sha256:0", "RolledBack"), ("sha256:2", succeeded)];
        assert!(goes_back(&object(&wish, &rolled_back), "sha256:1", MINUTE));
    }
}
