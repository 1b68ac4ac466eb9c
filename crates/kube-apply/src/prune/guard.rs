//! Which deletes are refused until a person confirms them: the controller's own namespace, namespaces and definitions that
//! hold what others made, and too much at once.
//!
//! In: what left the inventory, and what may be lost with it ([`content`](super::content)). Out: the objects that stay, why,
//! and a token that stands for exactly this set. A confirmation is that token: with one more object, or another object of
//! the same name, it is another token, and no one deletes what was not shown to them.

use std::fmt;

use manifest::ObjectId;
use sha2::{Digest as _, Sha256};

use crate::Engine;
use crate::failure::Failure;
use crate::fingerprint::format_uid;
use crate::inventory::Inventory;
use crate::prune::content::{Content, Ours};
use crate::settings::Owner;

/// Guarded objects of one prune. The default guards nothing.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The namespace of the controller, if the objects are in its cluster. It is never deleted unconfirmed.
    pub own_namespace: Option<String>,
    /// Namespaces and definitions with foreign content stay.
    pub foreign: bool,
    /// How much may go at once.
    pub share: Option<Share>,
    /// Objects that stay managed; they must not be deleted with a namespace or a definition either.
    pub kept: Inventory,
    /// The token that a person has given.
    pub confirmation: Option<String>,
    /// A text that tells of the refusal before. A set that was refused as too large stays refused until it is confirmed, even
    /// if other objects have joined the inventory since.
    pub refused_before: Option<String>,
}

/// How much of an inventory may be deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// In percent of the inventory; 100 allows everything.
    pub percent: u8,
    /// The number of objects in the inventory before.
    pub of: usize,
}

/// Fewer objects than this may always be deleted: half of two objects is no disaster.
pub const ALWAYS_ALLOWED: usize = 5;

/// Objects that were not deleted because someone must confirm it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Each with the version under which it was applied, ordered by id.
    pub objects: Vec<(ObjectId, String)>,
    /// Stands for exactly this set.
    pub token: String,
    dangers: Vec<(ObjectId, Danger)>,
    share: Option<Share>,
}

/// Loss that comes with deleting one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Danger {
    /// The controller.
    Controller,
    /// Objects that are not the owner's, or that the owner still applies.
    Content(Content),
    /// No one knows: it could not be looked into.
    Unknown(Failure),
}

/// A delete that is about to happen.
#[derive(Clone)]
struct Candidate {
    id: ObjectId,
    version: String,
    /// None if it could not be read.
    uid: Option<u128>,
}

impl Candidate {
    fn unread(id: &ObjectId, version: &str) -> Self {
        Self {
            id: id.clone(),
            version: version.to_owned(),
            uid: None,
        }
    }
}

/// Namespaces that are looked into in one prune; each costs one list per kind.
const NAMESPACES: usize = 32;

impl Engine {
    /// Looks for deletes that need a confirmation. None if there are none, or if they are confirmed.
    pub(super) async fn review(
        &self,
        owner: &Owner,
        ids: &[(ObjectId, String)],
        guard: &Guard,
    ) -> Option<Refused> {
        let ours = Ours {
            owner,
            pruned: ids.iter().map(|(id, _)| id).collect(),
            kept: &guard.kept,
        };
        let (mut found, mut kinds, mut namespaces) = (Vec::new(), None, 0);
        for (id, version) in ids {
            if !guard.concerns(id) {
                continue;
            }
            let candidate = match self.candidate(owner, id, version).await {
                Ok(None) => continue,
                Ok(Some(candidate)) => candidate,
                Err(failure) => {
                    found.push((Candidate::unread(id, version), Danger::Unknown(failure)));
                    continue;
                }
            };
            namespaces += usize::from(is_namespace(id));
            let danger = if guard.is_own_namespace(id) {
                Some(Danger::Controller)
            } else if is_namespace(id) && namespaces > NAMESPACES {
                Some(Danger::Unknown(too_many()))
            } else {
                match self.content(id, &ours, &mut kinds).await {
                    Ok(content) if content.is_harmless() => None,
                    Ok(content) => Some(Danger::Content(content)),
                    Err(failure) => Some(Danger::Unknown(failure)),
                }
            };
            found.extend(danger.map(|danger| (candidate, danger)));
        }
        let deleted = self.deleted(owner, ids, guard).await;
        let refused = Refused::new(owner, found, deleted, guard)?;
        (guard.confirmation.as_deref() != Some(&refused.token)).then_some(refused)
    }

    /// Returns whether a prune would delete the object: false if it is gone, on the way out, or not ours to delete. True if no one
    /// knows.
    pub async fn would_delete(&self, owner: &Owner, id: &ObjectId, version: &str) -> bool {
        !matches!(self.candidate(owner, id, version).await, Ok(None))
    }

    /// All that would be deleted, if it may be too much; else nothing, since looking costs.
    async fn deleted(&self, owner: &Owner, ids: &[(ObjectId, String)], guard: &Guard) -> Vec<Candidate> {
        let share = guard.share.filter(|share| share.percent < 100);
        // What is left alone in the end, because it was handed over for example, does not count.
        if !share.is_some_and(|share| share.is_exceeded_by(ids.len()) || guard.refused_before.is_some()) {
            return Vec::new();
        }
        let mut deleted = Vec::new();
        for (id, version) in ids {
            let candidate = self.candidate(owner, id, version).await;
            deleted.extend(candidate.unwrap_or_else(|_| Some(Candidate::unread(id, version))));
        }
        deleted
    }

    /// An object that the prune would delete; None if it is gone, on the way out, or would be left alone.
    async fn candidate(
        &self,
        owner: &Owner,
        id: &ObjectId,
        version: &str,
    ) -> Result<Option<Candidate>, Failure> {
        let Some(at) = self.address(id, version).await? else {
            return Ok(None);
        };
        let facts = match self.known(id) {
            Some(facts) => Some(facts),
            None => self.look(&at).await?,
        };
        let deleted = facts.filter(|f| !f.terminating && super::skip::reason_to_keep(owner, f).is_none());
        Ok(deleted.map(|facts| Candidate {
            id: id.clone(),
            version: version.to_owned(),
            uid: facts.uid,
        }))
    }
}

impl Guard {
    fn concerns(&self, id: &ObjectId) -> bool {
        self.is_own_namespace(id) || (self.foreign && (is_namespace(id) || is_definition(id)))
    }

    fn is_own_namespace(&self, id: &ObjectId) -> bool {
        is_namespace(id) && self.own_namespace.as_ref() == Some(&id.name)
    }
}

impl Share {
    fn is_exceeded_by(self, deleted: usize) -> bool {
        deleted >= ALWAYS_ALLOWED && deleted * 100 > self.of * usize::from(self.percent)
    }
}

pub(super) fn is_namespace(id: &ObjectId) -> bool {
    id.group.is_empty() && id.kind == "Namespace"
}

fn is_definition(id: &ObjectId) -> bool {
    id.group == "apiextensions.k8s.io" && id.kind == "CustomResourceDefinition"
}

fn too_many() -> Failure {
    Failure::new(
        crate::Class::Transient,
        format!("more than {NAMESPACES} namespaces would be deleted at once"),
    )
}

impl Refused {
    /// None if nothing is endangered, and `deleted`, which is all that would go, is not too much.
    fn new(
        owner: &Owner,
        found: Vec<(Candidate, Danger)>,
        deleted: Vec<Candidate>,
        guard: &Guard,
    ) -> Option<Self> {
        let named = |(candidate, danger): (Candidate, Danger)| {
            let id = candidate.id.clone();
            (candidate, (id, danger))
        };
        let (endangered, dangers): (Vec<_>, Vec<_>) = found.into_iter().map(named).unzip();
        let mut all = deleted;
        let joins = |one: &&Candidate| !all.iter().any(|known| known.id == one.id);
        let joining: Vec<_> = endangered.iter().filter(joins).cloned().collect();
        all.extend(joining);
        let token_of_all = token(owner, &all, &dangers);
        let said = all.len() > endangered.len()
            && guard
                .refused_before
                .as_ref()
                .is_some_and(|text| text.contains(&token_of_all));
        let share = guard
            .share
            .filter(|share| share.percent < 100 && (said || share.is_exceeded_by(all.len())));
        let (mut objects, token) = match share {
            Some(_) => (all, token_of_all),
            None => {
                let token = token(owner, &endangered, &dangers);
                (endangered, token)
            }
        };
        if objects.is_empty() {
            return None;
        }
        objects.sort_by(|a, b| a.id.cmp(&b.id));
        let objects = objects.into_iter().map(|one| (one.id, one.version)).collect();
        Some(Self {
            objects,
            token,
            dangers,
            share,
        })
    }

    /// Returns whether the object stays.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.objects.iter().any(|(refused, _)| refused == id)
    }
}

/// Twelve digits tell one set of a Kustomization from its next one; no one has to guess them.
const TOKEN_LENGTH: usize = 12;

fn token(owner: &Owner, objects: &[Candidate], dangers: &[(ObjectId, Danger)]) -> String {
    let mut lines: Vec<String> = objects
        .iter()
        .map(|one| {
            let uid = one.uid.map(format_uid).unwrap_or_default();
            format!("delete {} {uid}", one.id.inventory_id())
        })
        .collect();
    for (id, danger) in dangers {
        let id = id.inventory_id();
        match danger {
            Danger::Controller => lines.push(format!("controller {id}")),
            // Not the failure's text, which may differ each time.
            Danger::Unknown(_) => lines.push(format!("unknown {id}")),
            Danger::Content(content) => lines.extend(content.ids().map(|lost| format!("lose {id} {lost}"))),
        }
    }
    lines.sort();
    let mut hash = Sha256::new();
    for line in std::iter::once(&owner.to_string()).chain(&lines) {
        hash.update(line);
        hash.update(b"\n");
    }
    let mut hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(TOKEN_LENGTH);
    hex
}

/// Names that are listed; the rest are counted.
pub(super) const LISTED: usize = 10;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused to delete {}", count(self.objects.len()))?;
        if let Some(share) = self.share {
            write!(
                f,
                " of {} at once, more than {} %: {}",
                share.of,
                share.percent,
                list(self.objects.iter().map(|(id, _)| id.to_string()))
            )?;
        }
        for (id, danger) in &self.dangers {
            write!(f, "\n{id} ")?;
            match danger {
                Danger::Controller => f.write_str("is the namespace of this controller")?,
                Danger::Content(content) => write!(f, "{content}")?,
                Danger::Unknown(failure) => write!(f, "could not be looked into: {failure}")?,
            }
        }
        Ok(())
    }
}

pub(super) fn count(objects: usize) -> String {
    format!("{objects} object{}", if objects == 1 { "" } else { "s" })
}

/// Lists the first names and counts the others.
pub(super) fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut text = names.take(LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId {
            group: String::new(),
            kind: kind.into(),
            namespace: String::new(),
            name: name.into(),
        }
    }

    fn candidate(name: &str) -> Candidate {
        Candidate {
            id: id("ConfigMap", name),
            version: "v1".into(),
            uid: Some(7),
        }
    }

    fn owner() -> Owner {
        Owner {
            namespace: "flux-system".into(),
            name: "apps".into(),
        }
    }

    fn sharing(percent: u8, of: usize) -> Guard {
        Guard {
            share: Some(Share { percent, of }),
            ..Guard::default()
        }
    }

    fn too_much(count: usize, guard: &Guard) -> Option<Refused> {
        let all = (0..count).map(|n| candidate(&format!("c{n}"))).collect();
        Refused::new(&owner(), Vec::new(), all, guard)
    }

    #[test]
    fn a_share_is_exceeded_by_more_than_it_and_never_by_a_few() {
        for (percent, of, deleted, refused) in [
            (50, 10, 5, false),
            (50, 10, 6, true),
            (50, 5, 4, false),
            (0, 100, 4, false),
            (0, 100, 5, true),
            (99, 5, 5, true),
        ] {
            let share = Share { percent, of };
            assert_eq!(
                share.is_exceeded_by(deleted),
                refused,
                "{percent} % of {of}: {deleted}"
            );
        }
    }

    #[test]
    fn what_was_refused_stays_refused_when_the_inventory_grows() {
        let refused = too_much(6, &sharing(50, 10)).unwrap();
        assert!(too_much(6, &sharing(50, 16)).is_none());
        let again = Guard {
            refused_before: Some(format!("confirm with {}", refused.token)),
            ..sharing(50, 16)
        };
        assert_eq!(too_much(6, &again).unwrap().token, refused.token);
        assert!(too_much(5, &again).is_none(), "another set is another question");
    }

    #[test]
    fn a_token_stands_for_one_set_of_one_owner() {
        let danger = || vec![(id("Namespace", "a"), Danger::Controller)];
        let first = token(&owner(), &[candidate("a"), candidate("b")], &danger());
        assert_eq!(first.len(), TOKEN_LENGTH);
        assert_eq!(
            first,
            token(&owner(), &[candidate("b"), candidate("a")], &danger())
        );
        let mut made_anew = candidate("b");
        made_anew.uid = Some(8);
        for other in [
            token(&owner(), &[candidate("a")], &danger()),
            token(&owner(), &[candidate("a"), made_anew], &danger()),
            token(&owner(), &[candidate("a"), candidate("b")], &[]),
            token(
                &Owner {
                    name: "other".into(),
                    ..owner()
                },
                &[candidate("a"), candidate("b")],
                &danger(),
            ),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn the_text_names_what_and_why_and_stays_short() {
        let text = too_much(30, &sharing(50, 40)).unwrap().to_string();
        assert!(
            text.starts_with("refused to delete 30 objects of 40 at once, more than 50 %: ConfigMap/c0, "),
            "{text}"
        );
        assert!(text.ends_with(" and 20 more"), "{text}");
        let found = vec![(candidate("a"), Danger::Controller)];
        let text = Refused::new(&owner(), found, Vec::new(), &Guard::default())
            .unwrap()
            .to_string();
        assert_eq!(
            text,
            "refused to delete 1 object\nConfigMap/a is the namespace of this controller"
        );
    }
}
