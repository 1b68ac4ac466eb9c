//! Two Kustomizations that apply one object take it from each other at their intervals. Both say so in Ready.

use std::collections::BTreeMap;

use controller_kit::ObjectKey;
use kube_apply::{Applied, Owner};
use manifest::ObjectId;

use super::managed_before;
use crate::controller::Context;

/// So many objects are named; the rest are counted.
const NAMED: usize = 3;

/// Objects that others apply, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rivals {
    objects: BTreeMap<ObjectId, ObjectKey>,
    /// True if the status still has to name them.
    pub untold: bool,
}

impl Rivals {
    /// Addition to the message of Ready; None without rivals.
    pub fn told(&self) -> Option<String> {
        let named = self.objects.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|(id, other)| format!("{id} by Kustomization/{other}"))
            .collect();
        let rest = self.objects.len().saturating_sub(NAMED);
        let rest = if rest == 0 {
            String::new()
        } else {
            format!(" and {rest} more")
        };
        (!named.is_empty()).then(|| format!("{SAID}{}{rest}", named.join(", ")))
    }
}

/// How it begins.
const SAID: &str = "; applied by others, too: ";

/// A message without what an earlier run said of rivals.
pub fn without(message: &str) -> &str {
    message.find(SAID).map_or(message, |at| &message[..at])
}

/// Takes in what a run took from others.
pub(super) fn took(context: &Context, key: &ObjectKey, applied: &Applied) {
    let taken = applied.changes.iter().filter_map(|change| {
        let other = change.taken_from.as_ref()?;
        Some((change.id.clone(), key_of(other)))
    });
    let objects = taken.filter(|(id, other)| is_rival(context, other, id)).collect();
    let rivals = Rivals {
        objects,
        untold: false,
    };
    context.memory.with(key, |entry| entry.rivals = rivals);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_are_named_after_what_is_said_anyway() {
        let mut rivals = Rivals::default();
        assert_eq!(rivals.told(), None);
        for number in 0..5 {
            let id = ObjectId {
                group: String::new(),
                kind: "ConfigMap".into(),
                namespace: "ns".into(),
                name: format!("m{number}"),
            };
            rivals.objects.insert(id, ObjectKey::new("ns", "other"));
        }
        let told = rivals.told().unwrap();
        assert!(
            told.starts_with("; applied by others, too: ConfigMap/ns/m0 by Kustomization/ns/other, "),
            "{told}"
        );
        assert!(
            told.ends_with("ConfigMap/ns/m2 by Kustomization/ns/other and 2 more"),
            "{told}"
        );
        assert_eq!(
            without(&format!("Applied revision: r{told}")),
            "Applied revision: r"
        );
        assert_eq!(without("Applied revision: r"), "Applied revision: r");
    }
}
