//! Deletes what left the inventory, unless it asks to stay or belongs to someone else by now.
//!
//! Each delete carries the uid and the version of what was looked at, so that an object that another owner took over, or
//! that was created anew, in the meantime is looked at again instead of deleted. Objects go in the reverse of the order in
//! which they are applied. What a person must confirm first is not deleted (`prune/guard.rs`).

mod content;
pub(crate) mod guard;
mod skip;

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::core::params::Preconditions;
use manifest::order::{compare_for_apply, rank_for_apply};
use manifest::{GroupVersionKind, ObjectId};

use skip::reason_to_keep;

pub(crate) use crate::page::{PAGE, Page};
pub use guard::{Guard, Refused, Share};

use crate::Engine;
use crate::failure::{Class, Failure, ObjectError, Step};
use crate::fingerprint::{Facts, Glimpse, format_uid};
use crate::managed::Live;
use crate::preview::Fate;
use crate::request::Address;
use crate::settings::Owner;

pub use skip::SkipReason;

/// Options of one prune.
#[derive(Clone, Debug, Default)]
pub struct PruneOptions {
    /// Objects that must be confirmed.
    pub guard: Guard,
}

/// The outcome of a prune. What failed belongs back into the inventory.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Gone, or on the way out.
    pub deleted: Vec<ObjectId>,
    /// Left alone for good.
    pub skipped: Vec<(ObjectId, SkipReason)>,
    /// Not deleted; to be tried again.
    pub failed: Vec<(ObjectId, ObjectError)>,
    /// Not deleted before someone confirms it.
    pub refused: Option<Refused>,
}

impl Engine {
    /// Deletes the objects, given with the version under which each was applied.
    pub async fn prune(&self, owner: &Owner, ids: &[(ObjectId, String)], options: &PruneOptions) -> Pruned {
        let mut pruned = Pruned {
            refused: self.review(owner, ids, &options.guard).await,
            ..Pruned::default()
        };
        let stays = |id: &ObjectId| {
            pruned
                .refused
                .as_ref()
                .is_some_and(|refused| refused.contains(id))
        };
        let mut ordered: Vec<_> = ids.iter().filter(|(id, _)| !stays(id)).collect();
        ordered.sort_by(|a, b| compare_for_apply(&b.0, &a.0));
        for rank in ordered.chunk_by(|a, b| rank_for_apply(&a.0.kind) == rank_for_apply(&b.0.kind)) {
            let deletes = rank
                .iter()
                .map(|(id, version)| self.prune_one(owner, id, version).boxed());
            let deletes: Vec<BoxFuture<'_, _>> = deletes.collect();
            let mut done: Vec<_> = futures::stream::iter(deletes)
                .buffer_unordered(self.settings().concurrency.max(1))
                .collect()
                .await;
            done.sort_by(|(a, _), (b, _)| compare_for_apply(b, a));
            for (id, outcome) in done {
                match outcome {
                    Ok(None) => pruned.deleted.push(id),
                    Ok(Some(reason)) => pruned.skipped.push((id, reason)),
                    Err(failure) => {
                        let error = ObjectError::new(id.clone(), None, Step::Delete, failure);
                        pruned.failed.push((id, error));
                    }
                }
            }
        }
        pruned
    }

    /// Says what a prune would do with each object, and asks for nothing but its metadata. What a person would have to
    /// confirm is not looked for.
    pub async fn preview_prune(
        &self,
        owner: &Owner,
        ids: &[(ObjectId, String)],
    ) -> Vec<(ObjectId, Result<Fate, Failure>)> {
        let asked = ids
            .iter()
            .map(|(id, version)| async move { (id.clone(), self.fate(owner, id, version).await) }.boxed());
        let asked: Vec<BoxFuture<'_, _>> = asked.collect();
        let width = self.settings().concurrency.max(1);
        futures::stream::iter(asked).buffered(width).collect().await
    }

    /// Returns who owns the object by its labels, if that is not `owner`. None if it is gone, or no one can say.
    pub async fn other_owner(&self, owner: &Owner, id: &ObjectId, version: &str) -> Option<Owner> {
        let facts = match self.known(id) {
            Some(facts) => facts,
            None => {
                let at = self.address(id, version).await.ok().flatten()?;
                self.look(&at).await.ok().flatten()?
            }
        };
        match reason_to_keep(owner, &facts) {
            Some(SkipReason::OwnedBy(other)) => Some(other),
            _ => None,
        }
    }

    async fn fate(&self, owner: &Owner, id: &ObjectId, version: &str) -> Result<Fate, Failure> {
        let Some(at) = self.address(id, version).await? else {
            return Ok(Fate::Missing);
        };
        let Some(facts) = self.look(&at).await? else {
            return Ok(Fate::Missing);
        };
        Ok(reason_to_keep(owner, &facts).map_or(Fate::Deleted, Fate::Kept))
    }

    async fn prune_one(&self, owner: &Owner, id: &ObjectId, version: &str) -> (ObjectId, Outcome) {
        (id.clone(), self.try_prune_one(owner, id, version).await)
    }

    async fn try_prune_one(&self, owner: &Owner, id: &ObjectId, version: &str) -> Outcome {
        let Some(at) = self.address(id, version).await? else {
            // The CRD is gone and took its objects along.
            return Ok(None);
        };
        // From here on its disappearance is no drift.
        self.managed().forget_object(id);
        let known = self.known(id);
        match self.delete_while_ours(owner, &at, known).await {
            // The CRD went since its kind was resolved, or this version of it did.
            Err(failure) if failure.class == Class::NotServed => {
                let resource = self.mapper().look_again(&kind_of(id, version)).await;
                match resource.map_err(|error| crate::failure::failure(&error))? {
                    None => Ok(None),
                    Some(resource) if resource == at.resource => Err(failure),
                    Some(resource) => {
                        let at = Address { resource, ..at };
                        self.delete_while_ours(owner, &at, None).await
                    }
                }
            }
            other => other,
        }
    }

    /// Where the object is, whatever version of its kind is served; None if its kind is gone.
    ///
    /// # Errors
    /// When the API server does not say which kinds it serves.
    pub async fn address(&self, id: &ObjectId, version: &str) -> Result<Option<Address>, Failure> {
        let resource = self.mapper().resolve_any_version(&kind_of(id, version)).await;
        let resource = resource.map_err(|error| crate::failure::failure(&error))?;
        Ok(resource.map(|resource| Address {
            resource,
            namespace: id.namespace.clone(),
            name: id.name.clone(),
        }))
    }

    /// Returns the facts that the watch knows of the object, if they suffice to delete it.
    fn known(&self, id: &ObjectId) -> Option<Facts> {
        match self.managed().live(id) {
            Live::Present(facts) => Some(facts).filter(|f| f.uid.is_some() && f.resource_version.is_some()),
            Live::Absent | Live::Unknown => None,
        }
    }

    /// Looks, decides and deletes, again as long as the object changes in between.
    async fn delete_while_ours(&self, owner: &Owner, at: &Address, mut known: Option<Facts>) -> Outcome {
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE * 2u32.pow(look - 1)).await;
            }
            let facts = match known.take() {
                Some(facts) => facts,
                None => match self.look(at).await? {
                    Some(facts) => facts,
                    None => return Ok(None),
                },
            };
            if let Some(reason) = reason_to_keep(owner, &facts) {
                return Ok(Some(reason));
            }
            if facts.terminating {
                return Ok(None);
            }
            match self.requests().delete(at, Some(preconditions(&facts))).await {
                Ok(_) => return Ok(None),
                Err(failure) if failure.class == Class::Conflict => {} // changed since; look again
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::new(
            Class::Conflict,
            "it changed each time it was about to be deleted",
        ))
    }

    async fn look(&self, at: &Address) -> Result<Option<Facts>, Failure> {
        let Some(live) = self.requests().metadata(at).await? else {
            return Ok(None);
        };
        let unreadable =
            |error| Failure::new(Class::Transient, format!("failed to read its metadata: {error}"));
        let glimpse: Glimpse = serde_json::from_value(live).map_err(unreadable)?;
        Ok(Some(Facts::new(&glimpse, self.settings())))
    }
}

/// None means that the object is gone or going.
type Outcome = Result<Option<SkipReason>, Failure>;

/// How often an object is looked at before its prune is left for the next time.
///
/// A new Deployment changes several times within a second, as its controllers write its status: without pauses all
/// looks fall between two of those writes.
const LOOKS: u32 = 8;

/// Pause before the second look; it doubles from look to look, to 2.5 s in all.
const PAUSE: Duration = Duration::from_millis(20);

fn kind_of(id: &ObjectId, version: &str) -> GroupVersionKind {
    GroupVersionKind {
        group: id.group.clone(),
        version: version.to_owned(),
        kind: id.kind.clone(),
    }
}

fn preconditions(facts: &Facts) -> Preconditions {
    Preconditions {
        uid: facts.uid.map(format_uid),
        resource_version: facts.resource_version.map(|version| version.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::fingerprint::Digest;
    use crate::policy::Policy;

    fn owner(name: &str) -> Owner {
        Owner {
            namespace: "flux-system".into(),
            name: name.into(),
        }
    }

    fn facts(owner: Option<Owner>, policy: Policy) -> Facts {
        Facts {
            fingerprint: Digest::from_value(&json!(1)),
            resource_version: Some(7),
            uid: Some(1),
            owner: owner.map(Arc::new),
            policy,
            needs_take_over: false,
            applied_at: None,
            owner_label_is_ours: true,
            terminating: false,
        }
    }

    #[test]
    fn objects_stay_that_ask_for_it_or_belong_to_somebody_else() {
        let plain = Policy::default();
        for (who, policy, expected) in [
            (Some(owner("apps")), plain, None),
            (
                Some(owner("apps")),
                Policy {
                    prune_disabled: true,
                    ..plain
                },
                Some(SkipReason::PruneDisabled),
            ),
            (
                Some(owner("apps")),
                Policy {
                    excluded: true,
                    ..plain
                },
                Some(SkipReason::Excluded),
            ),
            (
                Some(owner("other")),
                plain,
                Some(SkipReason::OwnedBy(owner("other"))),
            ),
            (None, plain, Some(SkipReason::NotOwned)),
        ] {
            assert_eq!(reason_to_keep(&owner("apps"), &facts(who, policy)), expected);
        }
    }

    #[test]
    fn a_delete_names_what_was_looked_at() {
        let p = preconditions(&facts(None, Policy::default()));
        assert_eq!(p.resource_version.as_deref(), Some("7"));
        assert_eq!(p.uid.as_deref(), Some("00000000-0000-0000-0000-000000000001"));
    }
}
