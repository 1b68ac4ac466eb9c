//! Previews an apply and a prune, object by object.
//!
//! Nothing is written, nothing is watched and nothing is remembered: who asks may have no more rights than to read an
//! object and to send it. An object that is refused holds up no other.

use std::fmt;

use futures::{FutureExt as _, StreamExt as _};
use manifest::{GroupVersionKind, Object, ObjectId, Origin};
use serde_json::{Map, Value};

use crate::changes::{FieldChanges, plain};
use crate::failure::{Class, Failure, ObjectError, Step};
use crate::fingerprint::Facts;
use crate::ignore::{self, Pointer};
use crate::plan::Pending;
use crate::prepare::{Item, Prepared};
use crate::prune::SkipReason;
use crate::request::{Address, MadePatch, Mode};
use crate::stage::{is_crd, is_namespace};
use crate::takeover::dropped;
use crate::{Engine, mapper};

/// So many fields of one object are told one by one.
const FIELDS: usize = 500;

/// Preview of an apply for one object.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The object.
    pub id: ObjectId,
    /// Its kind, in the version of the manifest.
    pub gvk: GroupVersionKind,
    /// Where its manifest is; None when no file holds it.
    pub origin: Option<Origin>,
    /// True if its values are not to be told, beyond those of Secrets.
    pub is_confidential: bool,
    /// Expected action, or why it is unknown.
    pub expected: Result<Expected, ObjectError>,
}

/// Expected action on an object.
#[derive(Clone, Debug)]
pub enum Expected {
    /// It would be created as this, as far as the server could be asked.
    Created(Value),
    /// Fields of it would change. What rules leave to others is in both states as it is.
    Changed {
        /// Which; values that are no one's business are masked.
        fields: FieldChanges,
        /// The object as it is. Nothing is masked.
        before: Value,
        /// The object as it would be. Nothing is masked.
        after: Value,
        /// Managers whose fields would be taken over, so that those go that the manifest does not have.
        taken_from: Vec<String>,
    },
    /// It would be deleted and created anew, because a field cannot change.
    Recreated {
        /// The server's words.
        why: String,
        /// The object as it is. Nothing is masked.
        before: Value,
        /// Its manifest. Nothing is masked.
        after: Value,
    },
    /// Nothing would be done. The object as it is.
    Unchanged(Value),
    /// It asks to be left alone.
    LeftAlone,
    /// It is there, and what would be done cannot be asked before something else is applied.
    Unasked(String),
}

/// How objects that are there would be written.
#[derive(Clone, Copy)]
pub enum Means<'a> {
    /// Applied on the server; fields of kubectl and its like are taken over.
    Apply,
    /// Applied on the server; fields of these managers are taken over.
    ApplyOver(&'a [&'a str]),
    /// Patched with what the client makes of the manifest and the live object. None changes nothing, and an error says why
    /// that cannot be known.
    Patch(&'a Patcher<'a>),
}

/// Makes a patch for an object.
pub type Patcher<'a> = dyn Fn(&ObjectId, &Object, &Value) -> Result<Option<MadePatch>, String> + Sync + 'a;

/// Expected result of pruning an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It would be deleted.
    Deleted,
    /// It is gone already.
    Missing,
    /// It would stay.
    Kept(SkipReason),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PruneDisabled => f.write_str("it asks not to be pruned"),
            Self::Excluded => f.write_str("it asks to be left alone"),
            Self::OwnedBy(owner) => write!(f, "it is of {owner} now"),
            Self::NotOwned => f.write_str("its labels do not say whose it is"),
        }
    }
}

impl Engine {
    /// Says what an apply would do, in the order of the apply. `force` recreates what cannot be changed.
    pub async fn preview(&self, prepared: &Prepared, force: bool, means: Means<'_>) -> Vec<Preview> {
        let how = How { force, means };
        let (definitions, rest): (Vec<_>, Vec<_>) = prepared
            .items
            .iter()
            .enumerate()
            .partition(|(_, item)| defines(item));
        let nothing = Pending::default();
        let mut found = self.previews(definitions, &nothing, how).await;
        let pending = pending(found.iter().map(|(_, preview)| preview), prepared);
        found.extend(self.previews(rest, &pending, how).await);
        found.sort_by_key(|(index, _)| *index);
        found.into_iter().map(|(_, preview)| preview).collect()
    }

    async fn previews(
        &self,
        items: Vec<(usize, &Item)>,
        pending: &Pending,
        how: How<'_>,
    ) -> Vec<(usize, Preview)> {
        let asked = items.into_iter().map(|(index, item)| {
            async move {
                let preview = Preview {
                    id: item.id.clone(),
                    gvk: item.gvk.clone(),
                    origin: item.object.origin().cloned(),
                    is_confidential: item.is_confidential,
                    expected: self.expected(item, pending, how).await,
                };
                (index, preview)
            }
            .boxed()
        });
        let asked: Vec<_> = asked.collect();
        let width = self.settings().concurrency.max(1);
        futures::stream::iter(asked)
            .buffer_unordered(width)
            .collect()
            .await
    }

    async fn expected(&self, item: &Item, pending: &Pending, how: How<'_>) -> Result<Expected, ObjectError> {
        if item.policy.excluded {
            return Ok(Expected::LeftAlone);
        }
        let manifest = || Value::Object(item.object.value().clone());
        // Neither the kind nor anything of it is there.
        if !item.is_served {
            return Ok(Expected::Created(manifest()));
        }
        let failed = |failure: Failure| item.error(Step::DryRun, failure);
        let at = item.address();
        let live = self.requests().whole(&at).await.map_err(failed)?;
        let is_blocked = pending.blocks(&item.gvk, &item.id, item.object.value()).is_some();
        let Some(live) = live else {
            if is_blocked {
                return Ok(Expected::Created(manifest()));
            }
            let answer = self.requests().apply(&at, item.object.value(), DRY);
            let answer = answer.await.map_err(failed)?;
            return Ok(Expected::Created(answer.whole.unwrap_or_else(manifest)));
        };
        let facts = Facts::new(&live.glimpse, self.settings());
        if facts.policy.excluded || item.policy.if_not_present {
            return Ok(Expected::LeftAlone);
        }
        let before = live.whole.unwrap_or_default();
        let answer = match how.means {
            Means::Patch(make) => match make(&item.id, &item.object, &before) {
                Ok(Some(patch)) => self.requests().try_patch(&at, &patch).await,
                Ok(None) => return Ok(Expected::Unchanged(before)),
                Err(why) => return Ok(Expected::Unasked(why)),
            },
            _ => self.requests().apply(&at, item.object.value(), DRY).await,
        };
        match answer {
            Ok(answer) => {
                let after = answer.whole.unwrap_or_default();
                let from = match how.means {
                    Means::Apply if item.policy.merge || facts.policy.merge => None,
                    Means::Apply => Some(dropped::From::Leftovers),
                    Means::ApplyOver(managers) => Some(dropped::From::Named(managers)),
                    Means::Patch(_) => None,
                };
                let (after, taken_from) = match from {
                    Some(from) => self.taken_over(&at, &before, after, from).await,
                    None => (after, Vec::new()),
                };
                Ok(self.compared(item, before, after, taken_from))
            }
            Err(failure) if failure.class == Class::Immutable => {
                match how.force || item.policy.force || facts.policy.force {
                    true => Ok(Expected::Recreated {
                        why: item.error(Step::DryRun, failure).reason,
                        before,
                        after: manifest(),
                    }),
                    false => Err(failed(failure)),
                }
            }
            Err(failure) if is_blocked => Ok(Expected::Unasked(format!(
                "it cannot be asked about before what it needs is applied: {}",
                failed(failure).reason
            ))),
            Err(failure) => Err(failed(failure)),
        }
    }

    /// Previews an apply that takes over fields, with their previous owners. The server cannot answer both at
    /// once, so it gets a patch with the same outcome, for the sake of its defaults.
    async fn taken_over(
        &self,
        at: &Address,
        before: &Value,
        after: Value,
        from: dropped::From<'_>,
    ) -> (Value, Vec<String>) {
        let Some(left) = dropped::left(&after, from, self.settings()) else {
            return (after, Vec::new());
        };
        let patch = MadePatch::Merge(changes_of(before, &left.object));
        let answer = match self.requests().try_patch(at, &patch).await {
            Ok(answer) => answer.whole,
            Err(error) => {
                tracing::debug!(object = %at.id(), %error, "the server does not say what a take-over leaves");
                None
            }
        };
        (answer.unwrap_or(left.object), left.managers)
    }

    /// Compares as an apply does: what only changes owners of fields, and what rules leave to others, is no change.
    fn compared(&self, item: &Item, before: Value, mut after: Value, taken_from: Vec<String>) -> Expected {
        let manifest = Value::Object(item.object.value().clone());
        let pointers: Vec<&Pointer> = match &item.ignore {
            Some(candidates) => candidates.pointers_of(&after),
            None => Vec::new(),
        };
        let spots = ignore::spots(&pointers, &manifest, &before, &after);
        let ignored = || spots.iter().map(|spot| spot.steps.as_slice());
        if ignore::same_but(&before, &after, ignored()) {
            return Expected::Unchanged(before);
        }
        let without = |object: &Value| {
            let mut object = object.clone();
            ignored().for_each(|steps| ignore::remove(&mut object, steps));
            object
        };
        let (old, new) = (without(&before), without(&after));
        ignore::keep(&mut after, &before, &spots);
        let manager = &self.settings().field_manager;
        Expected::Changed {
            fields: FieldChanges::up_to(FIELDS, &old, &new, manager, item.is_confidential),
            before,
            after,
            taken_from,
        }
    }
}

#[derive(Clone, Copy)]
struct How<'a> {
    force: bool,
    means: Means<'a>,
}

/// The JSON merge patch from one state of an object to another, without what only the server writes.
fn changes_of(before: &Value, after: &Value) -> Value {
    merge_patch(&plain(before), &plain(after)).unwrap_or_else(|| Value::Object(Map::new()))
}

fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for field in old.keys().filter(|field| !new.contains_key(*field)) {
        patch.insert(field.clone(), Value::Null);
    }
    for (field, value) in new {
        let changes = match old.get(field) {
            Some(was) => merge_patch(was, value),
            None => Some(value.clone()),
        };
        patch.extend(changes.map(|changes| (field.clone(), changes)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

const DRY: Mode = Mode {
    dry_run: true,
    whole: true,
};

/// Returns whether others may need the object before they can be asked about.
fn defines(item: &Item) -> bool {
    is_namespace(&item.gvk)
        || is_crd(&item.gvk)
        || (item.gvk.group == "rbac.authorization.k8s.io" && item.gvk.kind.ends_with("Role"))
}

/// Collects objects that do not exist yet, or change, and that others may need.
fn pending<'p>(previews: impl Iterator<Item = &'p Preview>, prepared: &Prepared) -> Pending {
    let mut pending = Pending::default();
    for preview in previews {
        let (is_new, is_changing) = match &preview.expected {
            Ok(Expected::Created(_)) => (true, true),
            Ok(Expected::Unchanged(_) | Expected::LeftAlone) => (false, false),
            _ => (false, true),
        };
        if is_new && is_namespace(&preview.gvk) {
            pending.add_namespace(&preview.id.name);
        }
        if is_changing {
            pending.add_role(&preview.id);
            let item = prepared.items.iter().find(|item| item.id == preview.id);
            let definition = item.and_then(|item| mapper::definition(&item.object));
            if let Some(definition) = definition {
                pending.add_kind(&definition.group, &definition.kind);
            }
        }
    }
    pending
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_says_what_goes_and_what_comes() {
        let before = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
            "data": {"a": "1", "b": "2"}, "status": {"x": 1}});
        let after = json!({"metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "1"}},
            "data": {"a": "2", "c": {"d": 1}}});
        assert_eq!(
            changes_of(&before, &after),
            json!({"data": {"a": "2", "b": null, "c": {"d": 1}}})
        );
        assert_eq!(changes_of(&before, &before), json!({}));
    }
}
