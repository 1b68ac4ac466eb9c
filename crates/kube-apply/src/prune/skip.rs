//! Reasons to skip an object.

use crate::fingerprint::Facts;
use crate::settings::Owner;

/// Why an object that left the inventory was not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its metadata says `prune: disabled`.
    PruneDisabled,
    /// Its metadata says `reconcile: disabled` or `ssa: Ignore`.
    Excluded,
    /// It wears the labels of another owner.
    OwnedBy(Owner),
    /// It wears no owner labels.
    NotOwned,
}

pub(super) fn reason_to_keep(owner: &Owner, facts: &Facts) -> Option<SkipReason> {
    match facts.owner.as_deref() {
        None => Some(SkipReason::NotOwned),
        Some(other) if other != owner => Some(SkipReason::OwnedBy(other.clone())),
        _ if facts.policy.prune_disabled => Some(SkipReason::PruneDisabled),
        _ if facts.policy.excluded => Some(SkipReason::Excluded),
        _ => None,
    }
}
