//! Everything that a decision depends on, read into one value: the object, its source, its dependencies, and what is
//! remembered of earlier runs. Reads caches only; no request is made here.

use std::sync::Arc;

use api::kustomize::{Kustomization, SourceKind};
use api::meta::{ORIGIN_REVISION_KEY, condition_types};
use api::source::Source as SourceObject;
use controller_kit::{ObjectKey, access_from};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::reflector::{ObjectRef, Store};
use reconcile_kit::dependencies;
use reconcile_kit::freezes::Frozen;

use crate::confirmation::confirmation;
use crate::context::Context;
use crate::good::Record;
use crate::memory::{Attempt, Inputs, Waiting};
use crate::sources::Sources;

/// State of the world as a reconcile observes it.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The object, with the status that we wrote last.
    pub object: Arc<Kustomization>,
    /// The source as messages name it: `GitRepository/flux-system/app`.
    pub source_name: String,
    /// State of the source.
    pub source: Source,
    /// The objects that must be ready first, in the order of the spec.
    pub dependencies: Vec<Dependency>,
    /// The value of the annotation that asks for a reconcile.
    pub requested_at: Option<String>,
    /// The value of it that was handled last.
    pub handled_at: Option<String>,
    /// The newest run.
    pub attempt: Option<Attempt>,
    /// The wait that is on.
    pub waiting: Option<Waiting>,
    /// Managed objects were changed or deleted by someone else.
    pub drifted: bool,
    /// When the correction of an object is due that was put off.
    pub correct_at: Option<Timestamp>,
    /// A ConfigMap or Secret that variables are taken from was touched.
    pub variables_touched: bool,
    /// Others apply objects of ours, and the status does not say so.
    pub has_rivals_untold: bool,
    /// The namespace or definition whose deletion failed the newest run is gone.
    pub revived: bool,
    /// The newest prune was refused, and a person has confirmed it since.
    pub prune_confirmed: bool,
    /// What is kept of the last revision that was healthy, if it is to be kept.
    pub record: Record,
    /// What Freezes say of it.
    pub frozen: Frozen,
    /// What waits for the end of a Freeze.
    pub waits: Option<Inputs>,
    /// Objects wait for their heirs: whether one of those has changed, and until when they wait.
    pub handing_over: Option<(bool, Timestamp)>,
}

/// State of a source.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// There is no such object.
    Missing,
    /// Its owner does not let us refer to it.
    Denied(access_from::Denied),
    /// The object has no artifact.
    WithoutArtifact {
        /// Message of its Ready condition, if it is not ready.
        why: Option<String>,
    },
    /// The object's current artifact.
    Artifact(SourceArtifact),
}

/// As much of an artifact as a run needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceArtifact {
    /// Where the archive is.
    pub url: String,
    /// The archive's digest.
    pub digest: String,
    /// The source's revision.
    pub revision: String,
    /// The revision that the artifact was made from, if it says so.
    pub origin_revision: Option<String>,
}

/// A dependency, and what of it matters beyond being ready.
pub type Dependency = dependencies::Dependency<Lineage>;

/// Revisions from which a dependency was built and which it has applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    /// It has the same source as we have.
    pub same_source: bool,
    /// The revision that it applied last.
    pub applied_revision: Option<String>,
}

/// Reads everything about one Kustomization; None if it is gone, or in another shard.
///
/// With `--no-cross-namespace-refs`, an expression sees of objects in other namespaces only identity and conditions.
pub fn observe(context: &Context, key: &ObjectKey) -> Option<Observed> {
    let (objects, sources, memory) = (&context.base.objects, &context.sources, &context.memory);
    let locked = context.policy.no_cross_namespace_refs;
    let object = context.base.object(key)?;
    let source = &object.spec.source_ref;
    let kind = source.kind.to_string();
    let elsewhere = context
        .images
        .refuses_elsewhere(&key.namespace, &kind, source_namespace(&object));
    let observed_source = match elsewhere {
        Some(refusal) => Source::Denied(access_from::Denied::Forbidden(refusal)),
        None => source_of(sources, &object),
    };
    let source_name = format!("{}/{}/{}", source.kind, source_namespace(&object), source.name);
    let dependencies =
        dependencies::observe(objects.store(), &object, locked, |other| lineage(&object, other));
    let requested_at = annotation(&object, api::meta::RECONCILE_REQUEST_ANNOTATION);
    let handled_at = object
        .status
        .as_ref()
        .and_then(|s| s.last_handled_reconcile_at.clone());
    let now = Timestamp::now();
    let (
        attempt,
        waiting,
        drifted,
        correct_at,
        variables_touched,
        revived,
        has_rivals_untold,
        prune_refused,
        handing_over,
        waits,
    ) = memory.with(key, |entry| {
        let waiting = entry.wait.as_ref().map(|wait| Waiting {
            finished: wait.answer.is_some(),
            untold: wait.slow && !wait.told,
        });
        (
            entry.attempt.clone(),
            waiting,
            entry.drifted || entry.fights.due.is_some_and(|due| due <= now),
            entry.fights.due,
            entry.variables_touched,
            entry.revived,
            entry.rivals.untold,
            entry.prune_refused.clone(),
            entry
                .handing_over
                .as_ref()
                .map(|waits| (waits.moved, waits.until())),
            entry.waits.clone(),
        )
    });
    let prune_confirmed = prune_refused.is_some() && prune_refused.as_deref() == confirmation(&object);
    Some(Observed {
        source: observed_source,
        source_name,
        dependencies,
        requested_at,
        handled_at,
        attempt,
        waiting,
        drifted,
        correct_at,
        variables_touched,
        revived,
        has_rivals_untold,
        prune_confirmed,
        record: Record::default(),
        handing_over,
        frozen: context.freezes.of(&*object, now),
        waits,
        object,
    })
}

/// Looks at the source of a Kustomization.
pub fn source_of(sources: &Sources, object: &Kustomization) -> Source {
    let source = &object.spec.source_ref;
    let namespace = source_namespace(object);
    let from = object.metadata.namespace.as_deref().unwrap_or_default();
    match source.kind {
        SourceKind::OCIRepository => observe_source(&sources.oci_repositories, &source.name, namespace, from),
        SourceKind::GitRepository => observe_source(&sources.git_repositories, &source.name, namespace, from),
        SourceKind::Bucket => observe_source(&sources.buckets, &source.name, namespace, from),
        SourceKind::ExternalArtifact => {
            observe_source(&sources.external_artifacts, &source.name, namespace, from)
        }
    }
}

/// Returns the namespace that a Kustomization's source is in.
pub fn source_namespace(object: &Kustomization) -> &str {
    match object.spec.source_ref.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => namespace,
        _ => object.metadata.namespace.as_deref().unwrap_or_default(),
    }
}

pub(super) fn annotation(object: &Kustomization, key: &str) -> Option<String> {
    object
        .metadata
        .annotations
        .as_ref()
        .and_then(|a| a.get(key))
        .cloned()
}

fn observe_source<K: SourceObject + Clone + 'static>(
    store: &Store<K>,
    name: &str,
    namespace: &str,
    from: &str,
) -> Source {
    let Some(object) = store.get(&ObjectRef::new(name).within(namespace)) else {
        return Source::Missing;
    };
    let annotation = object.annotations().get(access_from::ANNOTATION);
    if let Err(denied) = access_from::check(annotation.map(String::as_str), from, namespace) {
        return Source::Denied(denied);
    }
    match object.artifact() {
        Some(artifact) => Source::Artifact(SourceArtifact {
            url: artifact.url.clone(),
            digest: artifact.digest.clone(),
            revision: artifact.revision.clone(),
            origin_revision: artifact.metadata.get(ORIGIN_REVISION_KEY).cloned(),
        }),
        None => {
            let ready = object.condition(condition_types::READY);
            Source::WithoutArtifact {
                why: ready.filter(|c| c.status == "False").map(|c| c.message.clone()),
            }
        }
    }
}

fn lineage(object: &Kustomization, other: &Kustomization) -> Lineage {
    Lineage {
        same_source: other.spec.source_ref.kind == object.spec.source_ref.kind
            && other.spec.source_ref.name == object.spec.source_ref.name
            && source_namespace(other) == source_namespace(object),
        applied_revision: other
            .status
            .as_ref()
            .and_then(|status| status.last_applied_revision.clone()),
    }
}
