//! Back to an earlier revision because a person says so: until the annotation that names it is gone, whatever the source has.

use api::kustomize::Kustomization;
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{MAX_WHY, ROLLBACK, ROLLBACK_REASON, ROLLBACK_TO, annotation};
use crate::error::Error;
use crate::good::{Head, Held};
use crate::reconcile::frozen;
use crate::reconcile::observe::Observed;
use crate::reconcile::pass::Pass;
use crate::reconcile::plan::{Content, Kept, Plan};

/// Returns whether a person asks for an earlier revision.
pub(super) fn is_asked(object: &Kustomization) -> bool {
    annotation(object, ROLLBACK_TO).is_some()
}

/// Returns what is asked for, if it can be applied: by its revision, or by the digest of its objects.
pub(super) fn wanted(observed: &Observed) -> Option<Kept> {
    let asked = annotation(&observed.object, ROLLBACK_TO)?;
    let head = asked_for(observed, asked).find(|head| can_be_applied(observed, head))?;
    let revision = match asked == head.checksum {
        true => head.revision.clone(),
        false => asked.to_owned(),
    };
    Some(Kept {
        revision,
        ..Kept::from(head)
    })
}

/// Returns the kept ones that someone may mean. Where the objects stayed the same the history names the newest revision that made
/// them, and the record the first.
fn asked_for<'a>(observed: &'a Observed, asked: &'a str) -> impl Iterator<Item = &'a Head> {
    let status = observed.object.status.as_ref();
    let history = status.into_iter().flat_map(|status| &status.history);
    let made = history.filter(move |entry| {
        entry
            .metadata
            .get("revision")
            .is_some_and(|revision| revision == asked)
    });
    let digests: Vec<_> = made.map(|entry| &entry.digest).collect();
    let kept = &observed.record.kept;
    let by_name = kept
        .iter()
        .filter(move |head| head.revision == asked || head.checksum == asked);
    by_name.chain(kept.iter().filter(move |head| digests.contains(&&head.checksum)))
}

fn can_be_applied(observed: &Observed, head: &Head) -> bool {
    head.has_objects() && frozen::is_of_spec(head, &observed.object)
}

/// Returns why the revision that is asked for cannot be applied.
pub(in super::super) fn problem(observed: &Observed) -> Option<String> {
    let asked = annotation(&observed.object, ROLLBACK_TO)?;
    if wanted(observed).is_some() {
        return None;
    }
    let kept = observed.record.kept.iter();
    let possible: Vec<_> = kept
        .filter(|head| can_be_applied(observed, head))
        .map(|head| &*head.revision)
        .collect();
    let why = match asked_for(observed, asked).any(Head::has_objects) {
        true => "which another spec made",
        false => "which is not kept",
    };
    let possible = match possible.as_slice() {
        [] => format!("No revision is kept yet; the annotation {ROLLBACK} keeps those to come"),
        some => format!("Kept are: {}", some.join(", ")),
    };
    let asked: String = asked.chars().take(MAX_WHY).collect();
    Some(format!(
        "the annotation {ROLLBACK_TO} asks for revision {asked}, {why}. {possible}"
    ))
}

/// Returns whether an object has gone back, or is about to, to the revision that is asked for.
pub(in super::super) fn is_under_way(observed: &Observed) -> bool {
    let held = observed.record.held.as_ref();
    let wanted = wanted(observed).map(|kept| kept.checksum);
    !is_asked(&observed.object) || held.is_some_and(|held| Some(&held.instead) == wanted.as_ref())
}

/// Holds the revision of the source before the one is applied that is asked for.
pub(in super::super) async fn begin(pass: &Pass<'_>, plan: &Plan) -> Result<(), Error> {
    let object = pass.object();
    let (Content::Good(kept), true) = (&plan.content, is_asked(object)) else {
        return Ok(());
    };
    let known = pass.remembered(|entry| entry.record.as_ref().and_then(|record| record.held.clone()));
    let is_same = |held: &&Held| held.by_hand && held.instead == kept.checksum;
    let since = known
        .as_ref()
        .filter(is_same)
        .map_or_else(Timestamp::now, |held| held.since);
    let why = annotation(object, ROLLBACK_REASON).unwrap_or("no reason was given");
    let held = Held {
        generation: plan.inputs.generation,
        revision: plan.inputs.revision.clone(),
        digest: plan.inputs.digest.clone(),
        why: why.chars().take(MAX_WHY).collect(),
        since,
        instead: kept.checksum.clone(),
        by_hand: true,
    };
    if known.as_ref() == Some(&held) {
        return Ok(());
    }
    let uid = object.uid().unwrap_or_default();
    pass.context.good.hold(&uid, Some(&held)).await?;
    pass.remembered(|entry| {
        if let Some(record) = &mut entry.record {
            record.held = Some(held);
        }
    });
    Ok(())
}
