//! Maps changes in the cluster to keys in the queue. The only file that knows how events reach the queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::{StatusObject as _, ValuesKind, condition_types, reasons};
use controller_kit::runtime::ReconcileTrigger;
use controller_kit::{ObjectKey, conditions};
use futures::stream::{Stream, StreamExt as _};
use helm_release::history::Revision;
use helm_release::record::OWNER;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use kube_apply::Drift;
use reconcile_kit::base;
use reconcile_kit::dependencies::{self, is_ready};
use reconcile_kit::references::Target;
use reconcile_kit::{freezes, patience};

use crate::context::Context;
use crate::memory::{self, Seen};
use crate::reconcile::decide::wishes;
use crate::{drift_rules, release, source};

/// Time for the watch to deliver the writes of our own actions, before or after these end.
const SETTLING: Duration = Duration::from_millis(500);

/// Facts of a HelmRelease that concern it and its dependents. Our own progress concerns no one.
#[derive(PartialEq)]
pub struct Facts {
    own: ReconcileTrigger,
    /// How a person has it rolled back.
    rollback: [Option<String>; 2],
    /// What decides which Freezes apply to it.
    freezes: u64,
    ready: bool,
    /// All that an expression of a dependent may look at.
    whole: u64,
}

impl Facts {
    /// Reads them off an object.
    pub fn from_object(object: &HelmRelease) -> Self {
        Self {
            own: ReconcileTrigger::from_object(object),
            rollback: wishes(object),
            freezes: freezes::marks(object),
            ready: is_ready(object),
            whole: base::digest(object),
        }
    }
}

/// Trigger of an object's own reconciliation, how a person has it rolled back, and whether it is in our shard.
type Own = (ReconcileTrigger, [Option<String>; 2], bool);

/// Tries those again whose images were refused, if another policy applies to them now. What was delivered stays as it is.
pub fn ruled_anew(context: &Context, concerns: &dyn Fn(&str, &[&str]) -> bool) {
    context.enqueue(|object| {
        let own = ObjectKey::from_object(object);
        let to = release::release_namespace(object);
        let ready = conditions::get(object.conditions(), condition_types::READY);
        let is_refused = ready.is_some_and(|ready| ready.reason == reasons::IMAGE_VERIFICATION_FAILED);
        let concerned = is_refused && concerns(&own.namespace, &[&to]);
        if concerned {
            context.memory.with(&own, |entry| entry.attempt = None);
        }
        concerned
    });
}

/// Enqueues HelmReleases as they change, and those that depend on them.
pub async fn releases(context: Arc<Context>, changes: impl Stream<Item = ObjectRef<HelmRelease>>) {
    let mut changes = std::pin::pin!(changes);
    let mut before: HashMap<ObjectKey, (Own, bool)> = HashMap::new();
    while let Some(changed) = changes.next().await {
        let key = ObjectKey::from(changed);
        let now = context.base.objects.get(&key.object_ref());
        let (changed_itself, became_ready) = match &now {
            Some(object) => {
                // A label moves it from one shard to another, and changes nothing else.
                let own = (
                    ReconcileTrigger::from_object(&**object),
                    wishes(object),
                    context.base.is_ours(object),
                );
                let facts = (own, is_ready(&**object));
                let old = before.insert(key.clone(), facts.clone());
                let changed = old.as_ref().is_none_or(|old| old.0 != facts.0);
                (changed, old.as_ref().is_none_or(|old| old.1 != facts.1))
            }
            None => {
                before.remove(&key);
                (true, true)
            }
        };
        if let Some(object) = &now
            && object.metadata.deletion_timestamp.is_some()
        {
            // What is to be uninstalled need not become ready.
            memory::stop(&context.memory, &key);
        }
        let source = now.as_ref().and_then(|object| source::reference(object));
        let source = source.map(|source| Target::Source(kind_name(source.kind), source.key));
        context.base.note(&key, now.as_deref(), source);
        if changed_itself && now.as_ref().is_some_and(|object| context.base.is_ours(object)) {
            context.wake(key.clone());
        }
        let dependents = context.base.users(&Target::Object(key.clone())).into_iter();
        dependents
            .filter(|object| dependencies::is_concerned(&**object, &key, became_ready))
            .for_each(|object| context.wake(ObjectKey::from_object(&*object)));
        if now.is_none() {
            context.forget(&key);
        }
    }
}

/// Enqueues the HelmReleases of a source that changed. A HelmChart also wakes the one that it was made for.
pub async fn source<K>(
    context: Arc<Context>,
    kind: ChartArtifactKind,
    changes: impl Stream<Item = ObjectRef<K>>,
) where
    K: kube::Resource<DynamicType = ()>,
{
    let mut changes = std::pin::pin!(changes);
    while let Some(changed) = changes.next().await {
        let key = ObjectKey::from(changed);
        let users = context.base.users(&Target::Source(kind_name(kind), key));
        users
            .iter()
            .for_each(|object| context.wake(ObjectKey::from_object(&**object)));
    }
}

fn kind_name(kind: ChartArtifactKind) -> &'static str {
    match kind {
        ChartArtifactKind::OCIRepository => "OCIRepository",
        ChartArtifactKind::HelmChart => "HelmChart",
        ChartArtifactKind::ExternalArtifact => "ExternalArtifact",
    }
}

/// Enqueues HelmReleases whose objects someone else changed or deleted, if they look for that.
pub async fn drift(context: Arc<Context>, drifts: impl Stream<Item = Drift>) {
    let mut drifts = std::pin::pin!(drifts);
    while let Some(drift) = drifts.next().await {
        let key = ObjectKey::new(drift.owner.namespace, drift.owner.name);
        let Some(object) = context.base.objects.get(&key.object_ref()) else {
            continue;
        };
        // What another owner applied is left to the interval: both would take it back without end.
        if drift.by.is_none() && drift_rules::is_on(&object) && context.base.is_ours(&object) {
            tracing::info!(namespace = key.namespace, name = key.name, object = %drift.object, what = ?drift.what, "drift");
            let put_off = |entry: &mut memory::Entry| {
                let until = entry.fights.wait(&drift.object, Timestamp::now());
                entry.drifted |= until.is_none();
                until
            };
            match context.memory.with(&key, put_off) {
                Some(until) => context.base.queue.add_after(key, patience::until(until)),
                None => context.base.queue.add(key),
            }
        }
    }
}

/// Enqueues HelmReleases that take values or a kubeconfig from a ConfigMap or Secret that was touched.
pub fn touched(context: &Context, kind: ValuesKind, config: &ObjectKey) {
    context.enqueue(|object| {
        let refers = context.reads(object, kind, config);
        if refers {
            let own = ObjectKey::from_object(object);
            context.memory.with(&own, |entry| entry.inputs_touched = true);
        }
        refers
    });
}

/// Has HelmReleases looked at whose records in Helm's storage someone else wrote or deleted. Only metadata is watched:
/// labels say which revision of which release it is, and what became of it.
pub async fn records(context: Arc<Context>, api: Api<PartialObjectMeta<Secret>>) {
    let (label, value) = OWNER;
    let config = watcher::Config::default().labels(&format!("{label}={value}"));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(record) | Event::InitApply(record)) => {
                note(&context, &record, Seen::written);
            }
            Ok(Event::Delete(record)) => {
                note(&context, &record, |seen, revision| seen.deleted(revision.version));
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => tracing::warn!(%error, "failed to watch the records of releases"),
        }
    }
}

fn note(context: &Context, record: &PartialObjectMeta<Secret>, change: impl Fn(&mut Seen, Revision)) {
    let labels = record.labels();
    let (Some(revision), Some(name)) = (Revision::from_labels(labels), labels.get("name")) else {
        return;
    };
    let namespace = record.namespace().unwrap_or_default();
    for object in context.base.objects.store().state() {
        // The records of remote clusters are not here.
        if object.spec.kube_config.is_some()
            || release::storage_namespace(&object) != namespace
            || release::release_name(&object) != *name
        {
            continue;
        }
        let key = ObjectKey::from_object(&*object);
        let newest = object.status.as_ref().and_then(|status| status.history.first());
        let newest = newest.map(|newest| (newest.version, newest.status.as_str()));
        let differs = context.memory.with(&key, |entry| {
            change(&mut entry.seen, revision.clone());
            entry.attempt.is_some() && entry.seen.differs(newest)
        });
        if differs && context.base.is_ours(&object) {
            context.base.queue.add_after(key, SETTLING);
        }
    }
}
