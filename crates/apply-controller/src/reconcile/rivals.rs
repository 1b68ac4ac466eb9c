//! Two Kustomizations that apply one object take it from each other at their intervals. Both say so in Ready.

use controller_kit::ObjectKey;
use kube_apply::{Applied, Owner};
use manifest::ObjectId;

use super::inventory::managed_before;
use super::pass::Pass;
use crate::context::Context;
use crate::memory::rivals::Rivals;

/// Takes in what a run took from others.
pub(super) fn took(pass: &Pass<'_>, applied: &Applied) {
    let taken = applied.changes.iter().filter_map(|change| {
        let other = change.taken_from.as_ref()?;
        Some((change.id.clone(), key_of(other)))
    });
    let objects = taken
        .filter(|(id, other)| is_rival(pass.context, other, id))
        .collect();
    let rivals = Rivals {
        objects,
        untold: false,
    };
    pass.remembered(|entry| entry.rivals = rivals);
}

/// Notes that another owner applied an object of ours. Returns whether the status has to say so, which it does not while we
/// hand the object over.
pub fn lost(context: &Context, key: &ObjectKey, id: &ObjectId, by: &Owner) -> bool {
    let other = key_of(by);
    if !is_rival(context, &other, id) {
        return false;
    }
    context.memory.with(key, |entry| {
        let is_new = entry.handing_over.is_none()
            && entry.rivals.objects.insert(id.clone(), other.clone()).as_ref() != Some(&other);
        entry.rivals.untold |= is_new;
        is_new
    })
}

fn key_of(owner: &Owner) -> ObjectKey {
    ObjectKey::new(&owner.namespace, &owner.name)
}

/// Returns whether another Kustomization goes on applying an object. The labels of an object are not enough: anybody may write them.
fn is_rival(context: &Context, other: &ObjectKey, id: &ObjectId) -> bool {
    let Some(object) = context.base.objects.get(&other.object_ref()) else {
        return false;
    };
    let hands_over = context.memory.with(other, |entry| entry.handing_over.is_some());
    !hands_over && object.metadata.deletion_timestamp.is_none() && managed_before(&object).contains(id)
}
