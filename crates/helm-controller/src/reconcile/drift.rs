//! Drift: which objects of a release are not as its manifest has them, and putting that right.
//!
//! What a metadata watch has seen untouched since we applied it is not asked about. Everything else is compared by a dry run.
//! Objects may be left out by an annotation, and fields by rules of the spec.

use api::helm::HelmRelease;
use helm_release::Release;
use kube_apply::{ApplyOptions, CommonMetadata, Differs, Engine, Owner, Prepared};
use manifest::Object;

use super::inventory::objects;
use crate::drift_rules;
use crate::release::{Change, Drift, Failure};

/// The annotation that leaves an object out, and its value.
const EXCLUDED: (&str, &str) = ("helm.toolkit.fluxcd.io/driftDetection", "disabled");

/// Finds the objects that differ.
pub(super) async fn find(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
) -> Result<Vec<Drift>, Failure> {
    let prepared = prepare(engine, owner, object, release).await?;
    let found = engine.differences(&prepared).await;
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    let drift = found.into_iter().map(|found| Drift {
        kind: found.gvk.kind,
        namespace: Some(found.id.namespace).filter(|namespace| !namespace.is_empty()),
        name: found.id.name,
        change: match found.how {
            Differs::Missing => Change::Removed,
            Differs::InFields {
                additions,
                changes,
                removals,
            } => Change::Changed {
                additions,
                changes,
                removals,
            },
        },
    });
    Ok(drift.collect())
}

/// Applies the manifest where it differs; one line for each object that was changed.
pub(super) async fn correct(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
) -> Result<Vec<String>, Failure> {
    let prepared = prepare(engine, owner, object, release).await?;
    let applied = engine.apply(prepared, &ApplyOptions::default()).await;
    let applied = applied.map_err(|error| Failure::new(error.to_string()))?;
    Ok(applied.changed().map(ToString::to_string).collect())
}

async fn prepare(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
) -> Result<Prepared, Failure> {
    let rules = drift_rules::of(object).map_err(|error| Failure::new(error.to_string()))?;
    let whole = drift_rules::of_whole_objects(object).map_err(|error| Failure::new(error.to_string()))?;
    let mut objects = objects(engine, release).await.map_err(Failure::new)?;
    objects.retain(|object| !is_excluded(object) && !whole.names(object));
    for object in &mut objects {
        mark(object, release);
    }
    let prepared = engine.prepare(owner, objects, &CommonMetadata::default()).await;
    let prepared = prepared.map_err(|error| Failure::new(error.to_string()))?;
    Ok(prepared.ignoring(&rules))
}

fn is_excluded(object: &Object) -> bool {
    object.annotation(EXCLUDED.0) == Some(EXCLUDED.1)
}

/// Sets what Helm sets on objects as it makes them.
fn mark(object: &mut Object, release: &Release) {
    object.set_label("app.kubernetes.io/managed-by", "Helm");
    object.set_annotation("meta.helm.sh/release-name", &release.name);
    object.set_annotation("meta.helm.sh/release-namespace", &release.namespace);
}
