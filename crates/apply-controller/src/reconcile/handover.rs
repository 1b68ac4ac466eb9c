//! Hand-over: an object that leaves one Kustomization and comes to another is not deleted on the way.
//!
//! In: what left an inventory, and all Kustomizations as the watch shows them. Out: what may be deleted now, what is left to
//! others, and what is waited for. An *heir* is a Kustomization of the same cluster that is not as far as its source yet and
//! either has the object in its inventory, or makes it from the artifact that we have: its build tells, which it would do
//! anyway and finds done. What is waited for stays in the inventory, so that a process that dies here goes on here.
//!
//! A wait ends when the heir has applied the object, which then wears its labels, or will not; or when it takes too long.
//!
//! Labels are worth as much as the account of the Kustomization that they name: one whose account may not change the object did
//! not apply it. Such an object is kept for as long as an heir is waited for, and is then deleted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{Kustomization, KustomizationSpec};
use artifact::client::{ArtifactRef, RemoteTree};
use cluster_access::targets::Target;
use controller_kit::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use kube_apply::{Guard, Owner, PruneOptions, Pruned};
use manifest::{Object, ObjectId};

use super::build::{self, Freshness, Means};
use super::decide::source_object;
use super::inventory::managed_before;
use super::observe::{self, Source, source_namespace};
use super::remote::Remote;
use super::source_tree;
use crate::context::Context;
use crate::memory::HandOver;

/// A wait that began within this time is a new one.
const JUST_BEGUN: SignedDuration = SignedDuration::from_secs(2);
/// Heirs whose builds are looked into for one prune. Those behind them are waited for without looking.
const BUILDS: usize = 64;
/// How long looking may take. What is not known by then is waited for.
const LOOKING: Duration = Duration::from_secs(60);

/// Objects that left an inventory, sorted by how they are handled.
#[derive(Debug, Default)]
pub struct Sorted {
    /// To be deleted, if they are still ours.
    pub deleted: Vec<(ObjectId, String)>,
    /// To be deleted, if they still wear the labels of these, who may not change them.
    pub usurped: Vec<(Owner, ObjectId, String)>,
    /// To be kept for now.
    pub waiting: Vec<(ObjectId, String)>,
    /// Kustomizations that are expected to adopt the objects.
    pub heirs: BTreeSet<ObjectKey>,
    /// Those of them that say that they are done, though the objects wear our labels: they have to apply once more.
    pub settled: BTreeSet<ObjectKey>,
}

impl Sorted {
    /// All that is to be deleted, whoever it belongs to by its labels.
    pub fn to_be_deleted(&self) -> Vec<(ObjectId, String)> {
        let usurped = self.usurped.iter();
        let usurped = usurped.map(|(_, id, version)| (id.clone(), version.clone()));
        self.deleted.iter().cloned().chain(usurped).collect()
    }
}

/// Another Kustomization, as far as it matters to who looks for heirs.
struct Other {
    key: ObjectKey,
    object: Arc<Kustomization>,
    settled: bool,
}

/// Sorts what left the inventory of `object`. `since` is when the wait began, if it did.
pub async fn sort(
    context: &Context,
    object: &Kustomization,
    target: &Target,
    stale: Vec<(ObjectId, String)>,
    since: Timestamp,
) -> Sorted {
    let others = others(context, object);
    let patience = since.checked_add(context.prune.handover_patience);
    let impatient = Timestamp::now() >= patience.unwrap_or(Timestamp::MAX);
    let mut heirs = in_inventories(&others, &stale);
    if !impatient {
        let unknown: Vec<_> = stale
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !heirs.contains_key(*id))
            .collect();
        let made = made_by_others(context, object, &others, &unknown).await;
        for (id, heir) in made {
            heirs.entry(id).or_default().insert((heir, false));
        }
    }
    let owner = Owner {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    };
    let mut sorted = Sorted::default();
    for (id, version) in stale {
        let keeper = target.engine.other_owner(&owner, &id, &version).await;
        if let Some(keeper) = keeper
            && !may_have(context, object, &keeper, &id, &version).await
        {
            match impatient {
                true => sorted.usurped.push((keeper, id, version)),
                false => sorted.waiting.push((id, version)),
            }
            continue;
        }
        match heirs.remove(&id) {
            // Anybody can write an inventory. Only the labels of the object itself prove that an heir has applied it, and the
            // prune reads them. Without them the object is deleted when the patience is over.
            Some(heirs) if !impatient && target.engine.would_delete(&owner, &id, &version).await => {
                let settled = heirs.iter().filter(|(_, settled)| *settled);
                sorted.settled.extend(settled.map(|(heir, _)| heir.clone()));
                sorted.heirs.extend(heirs.into_iter().map(|(heir, _)| heir));
                sorted.waiting.push((id, version));
            }
            _ => sorted.deleted.push((id, version)),
        }
    }
    sorted
}

/// Returns whether the Kustomization that an object's labels name may change it. Unless that is certainly not so, it may: what
/// another one has must not be deleted because a cluster does not answer.
async fn may_have(
    context: &Context,
    object: &Kustomization,
    keeper: &Owner,
    id: &ObjectId,
    version: &str,
) -> bool {
    let key = ObjectKey::new(&keeper.namespace, &keeper.name);
    let keeper = context.base.objects.get(&key.object_ref());
    // One that is not known here may be applied from another cluster.
    let Some(keeper) = keeper.filter(|keeper| same_cluster(keeper, object)) else {
        return true;
    };
    let placement = reconcile_kit::base::placement(&*keeper);
    if context.base.targets.account_of(placement).is_none() {
        return true;
    }
    match context.base.targets.target_of(placement).await {
        Ok(target) => target.may_change(id, version).await.unwrap_or(true),
        Err(_) => true,
    }
}

/// Deletes what is to be deleted. What is neither deleted nor skipped in the end is still there.
pub async fn delete(target: &Target, owner: &Owner, sorted: &Sorted, options: &PruneOptions) -> Pruned {
    let mut pruned = target.engine.prune(owner, &sorted.deleted, options).await;
    // Theirs by their labels alone: the share of our inventory is not theirs.
    let options = PruneOptions {
        guard: Guard {
            share: None,
            ..options.guard.clone()
        },
    };
    for (keeper, id, version) in &sorted.usurped {
        if pruned.refused.is_some() {
            break; // One confirmation at a time.
        }
        tracing::warn!(object = %id, owner = %keeper, "deleting an object whose labels name a Kustomization that may not change it");
        let ids = [(id.clone(), version.clone())];
        let more = target.engine.prune(keeper, &ids, &options).await;
        pruned.deleted.extend(more.deleted);
        pruned.skipped.extend(more.skipped);
        pruned.failed.extend(more.failed);
        pruned.refused = more.refused;
    }
    pruned
}

/// Returns what of `stale` is still there and still to be deleted.
pub fn left<'a>(
    stale: &'a [(ObjectId, String)],
    pruned: &'a Pruned,
) -> impl Iterator<Item = (ObjectId, String)> + 'a {
    let is_done = |id: &ObjectId| {
        pruned.deleted.contains(id) || pruned.skipped.iter().any(|(skipped, _)| skipped == id)
    };
    stale.iter().filter(move |(id, _)| !is_done(id)).cloned()
}

/// Notes who is waited for, so that their changes wake `key`; or that no one is.
pub fn remember(context: &Context, key: &ObjectKey, sorted: &Sorted, since: Timestamp) {
    let waits = (!sorted.waiting.is_empty()).then(|| HandOver {
        since,
        patience: context.prune.handover_patience,
        heirs: sorted.heirs.clone(),
        moved: false,
    });
    if let Some(waits) = &waits {
        let heirs: Vec<_> = waits.heirs.iter().map(ToString::to_string).collect();
        let objects = sorted.waiting.len();
        tracing::info!(
            heirs = heirs.join(", "),
            objects,
            "waiting for others to take over objects"
        );
    }
    context.memory.with(key, |entry| entry.handing_over = waits);
    // Once: an heir that cannot apply it would only fail again.
    if Timestamp::now().duration_since(since) < JUST_BEGUN {
        sorted.settled.iter().for_each(|heir| nudge(context, heir));
    }
    // Who got ready while we were looking does not change again.
    let is_settled = |heir: &ObjectKey| {
        let found = context.base.objects.get(&heir.object_ref());
        found.is_none_or(|object| is_settled(context, &object))
    };
    if sorted.heirs.difference(&sorted.settled).any(is_settled) {
        context.memory.with(key, |entry| {
            entry.handing_over.iter_mut().for_each(|waits| waits.moved = true);
        });
    }
}

/// Has an heir apply what it has: its objects wear our labels until then.
fn nudge(context: &Context, heir: &ObjectKey) {
    context.memory.with(heir, |entry| entry.drifted = true);
    context.base.queue.add(heir.clone());
}

/// The other Kustomizations of the cluster that are there to stay. A suspended one applies nothing, and keeps what it has.
fn others(context: &Context, object: &Kustomization) -> Vec<Other> {
    let own = ObjectKey::from_object(object);
    let known = context.base.objects.store().state();
    let alive = known
        .iter()
        .filter(|other| other.metadata.deletion_timestamp.is_none() && same_cluster(other, object));
    let keys = alive
        .map(|other| ObjectKey::from_object(&**other))
        .filter(|key| *key != own);
    let others = keys.filter_map(|key| {
        // With what we wrote ourselves, which the watch may not show yet.
        let object = context.base.objects.get(&key.object_ref())?;
        Some(Other {
            settled: object.spec.suspend || is_settled(context, &object),
            key,
            object,
        })
    });
    others.collect()
}

fn same_cluster(one: &Kustomization, other: &Kustomization) -> bool {
    let secret = |object: &Kustomization| {
        let reference = object.spec.kube_config.as_ref()?;
        Some((
            object.metadata.namespace.clone(),
            serde_json::to_string(reference).ok(),
        ))
    };
    secret(one) == secret(other)
}

/// Returns whether it has applied what its source has now.
fn is_settled(context: &Context, object: &Kustomization) -> bool {
    let Source::Artifact(artifact) = observe::source_of(&context.sources, object) else {
        // It cannot apply anything.
        return true;
    };
    object.status.as_ref().is_some_and(|status| {
        status.observed_generation == object.metadata.generation
            && status.last_applied_revision.as_deref() == Some(&artifact.revision)
    })
}

/// Kustomizations that have an object in their inventory, and whether that inventory is up to date.
type Heirs = HashMap<ObjectId, BTreeSet<(ObjectKey, bool)>>;

fn in_inventories(others: &[Other], stale: &[(ObjectId, String)]) -> Heirs {
    let wanted: HashMap<String, &ObjectId> = stale.iter().map(|(id, _)| (id.inventory_id(), id)).collect();
    let mut heirs = Heirs::new();
    for other in others {
        let inventory = other
            .object
            .status
            .as_ref()
            .and_then(|status| status.inventory.as_ref());
        for entry in inventory.into_iter().flat_map(|inventory| &inventory.entries) {
            if let Some(id) = wanted.get(&entry.id) {
                let heir = (other.key.clone(), other.settled);
                heirs.entry((*id).clone()).or_default().insert(heir);
            }
        }
    }
    heirs
}

/// Finds out who makes the objects from the artifact that `object` has.
async fn made_by_others(
    context: &Context,
    object: &Kustomization,
    others: &[Other],
    stale: &[&ObjectId],
) -> Vec<(ObjectId, ObjectKey)> {
    let source = &object.spec.source_ref;
    let candidates: Vec<_> = others
        .iter()
        .filter(|other| {
            let theirs = &other.object.spec.source_ref;
            !other.settled
                && theirs.kind == source.kind
                && theirs.name == source.name
                && source_namespace(&other.object) == source_namespace(object)
        })
        .collect();
    let Source::Artifact(artifact) = observe::source_of(&context.sources, object) else {
        return Vec::new();
    };
    if candidates.is_empty() || stale.is_empty() {
        return Vec::new();
    }
    let artifact = ArtifactRef {
        object: source_object(object),
        url: artifact.url,
        digest: artifact.digest,
        revision: artifact.revision,
    };
    let deadline = tokio::time::Instant::now() + LOOKING;
    let tree = tokio::time::timeout_at(deadline, source_tree::fetch(context, &artifact)).await;
    let tree = tree.ok().and_then(Result::ok).map(Arc::new);
    let mut made = Vec::new();
    for (number, other) in candidates.into_iter().enumerate() {
        let objects = match &tree {
            Some(tree) if number < BUILDS => {
                let built = objects_of(context, tree, &other.object, &artifact);
                tokio::time::timeout_at(deadline, built).await.ok().flatten()
            }
            _ => None,
        };
        let makes = |id: &ObjectId| match &objects {
            Some(objects) => contains(objects, &other.object.spec, id),
            // No one knows; it has to be waited for.
            None => true,
        };
        let found = stale.iter().filter(|id| makes(id));
        made.extend(found.map(|id| ((*id).clone(), other.key.clone())));
    }
    made
}

/// The objects that a Kustomization makes from the tree, before variables; none if it cannot make any. None if that cannot be
/// found out.
async fn objects_of(
    context: &Context,
    tree: &Arc<RemoteTree>,
    object: &Kustomization,
    artifact: &ArtifactRef,
) -> Option<Vec<Object>> {
    let folder = match source_tree::folder(tree, object, artifact).await {
        Ok(folder) => folder,
        Err(crate::error::Error::PathNotFound { .. }) => return Some(Vec::new()),
        Err(_) => return None,
    };
    let spec = Arc::new(object.spec.clone());
    let keys = context.decryption.keys_of(object).await.ok()?;
    let means = Means {
        keys: keys.as_ref(),
        freshness: Freshness::MayBeKept,
        remote: Remote::of(context, object.metadata.namespace.as_deref().unwrap_or_default()),
    };
    let built = build::build(&context.builds, tree, &folder, &spec, artifact, means)
        .await
        .ok()?;
    // What could not be fetched may be there the next time.
    if built.result.is_err() && built.closure.is_open() {
        return None;
    }
    Some(
        built
            .result
            .as_ref()
            .map(|built| built.objects())
            .unwrap_or_default(),
    )
}

/// Returns whether an object is among those of a build. One without a namespace may be in any, and one with a variable in its name
/// may have any.
fn contains(objects: &[Object], spec: &KustomizationSpec, id: &ObjectId) -> bool {
    let has_variables = spec.post_build.is_some();
    let matches = |made: &str, wanted: &str| made == wanted || (has_variables && made.contains('$'));
    objects.iter().any(|object| {
        let made = object.id();
        made.kind == id.kind
            && made.group == id.group
            && matches(&made.name, &id.name)
            && (made.namespace.is_empty() || matches(&made.namespace, &id.namespace))
    })
}

/// Everything that a Kustomization which is being deleted has to hand over or to delete. None while it is waited for.
pub async fn at_the_end(
    context: &Context,
    key: &ObjectKey,
    object: &Kustomization,
    target: &Target,
) -> Option<Sorted> {
    // By the server's clock, so that a new process does not wait anew.
    let since = object
        .metadata
        .deletion_timestamp
        .as_ref()
        .map_or(Timestamp::now(), |time| time.0);
    let sorted = sort(context, object, target, managed_before(object).sorted(), since).await;
    remember(context, key, &sorted, since);
    sorted.waiting.is_empty().then_some(sorted)
}

#[cfg(test)]
mod tests {
    use api::kustomize::PostBuild;
    use serde_json::json;

    use super::*;

    fn object(value: serde_json::Value) -> Object {
        let serde_json::Value::Object(map) = value else {
            panic!("no object")
        };
        Object::new(map, None)
    }

    fn id(name: &str) -> ObjectId {
        ObjectId {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: "team".into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_build_holds_what_it_names_and_what_it_may_name() {
        let made = |namespace: &str, name: &str, variables: bool| {
            let made = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": namespace}});
            let spec = KustomizationSpec {
                post_build: variables.then(PostBuild::default),
                ..KustomizationSpec::default()
            };
            contains(&[object(made)], &spec, &id("web"))
        };
        assert!(made("team", "web", false));
        assert!(made("", "web", false));
        assert!(!made("other", "web", false));
        assert!(!made("team", "api", true));
        assert!(made("team", "${app}", true));
        assert!(made("${where}", "web", true));
        assert!(!made("team", "${app}", false));
    }

    #[test]
    fn patience_counts_from_the_beginning_of_the_wait() {
        let waits = HandOver {
            patience: SignedDuration::from_mins(5),
            since: Timestamp::UNIX_EPOCH,
            heirs: BTreeSet::new(),
            moved: false,
        };
        assert_eq!(waits.until(), Timestamp::from_second(300).unwrap());
    }
}
