//! Drift: which objects of a release are not as its manifest has them, and putting that right.
//!
//! What a metadata watch has seen untouched since we applied it is not asked about. Everything else is compared by a dry run.
//! Objects may be left out by an annotation or label, in the manifest or in the cluster, and fields by rules of the spec.

use api::helm::HelmRelease;
use helm_release::Release;
use kube_apply::{
    Address, Applied, ApplyOptions, CommonMetadata, Difference, Differs, Engine, Owner, Prepared,
};
use manifest::Object;

use super::inventory::objects;
use crate::drift_rules;
use crate::release::{Change, Drift, Failure};

/// The annotation or label that leaves an object out, and its value.
const EXCLUDED: (&str, &str) = ("helm.toolkit.fluxcd.io/driftDetection", "disabled");

/// Finds the objects that differ.
pub(super) async fn find(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
) -> Result<Vec<Drift>, Failure> {
    let prepared = prepare(engine, owner, object, release, |_| true).await?;
    let found = engine.differences(&prepared).await;
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    let mut drift = Vec::new();
    for found in found {
        let change = match found.how {
            Differs::Missing => Change::Removed,
            Differs::InFields { .. } if is_excluded_live(engine, &found).await? => Change::Excluded,
            Differs::InFields {
                additions,
                changes,
                removals,
            } => Change::Changed {
                additions,
                changes,
                removals,
            },
        };
        drift.push(Drift {
            kind: found.gvk.kind,
            namespace: Some(found.id.namespace).filter(|namespace| !namespace.is_empty()),
            name: found.id.name,
            change,
        });
    }
    Ok(drift)
}

/// Applies the manifest to the objects that were found to differ, and to no others.
pub(super) async fn correct(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
    drift: &[Drift],
) -> Result<Applied, Failure> {
    let has_drifted = |object: &Object| {
        let mut drifted = drift.iter().filter(|drift| drift.change.is_drift());
        drifted.any(|drift| {
            drift.kind == object.gvk().kind
                && drift.name == object.name()
                && drift.namespace.as_deref().unwrap_or_default() == object.namespace()
        })
    };
    let prepared = prepare(engine, owner, object, release, has_drifted).await?;
    let options = ApplyOptions {
        partial: true,
        want_changes: true,
        ..ApplyOptions::default()
    };
    let applied = engine.apply(prepared, &options).await;
    applied.map_err(|error| Failure::new(error.to_string()))
}

async fn prepare(
    engine: &Engine,
    owner: &Owner,
    object: &HelmRelease,
    release: &Release,
    is_meant: impl Fn(&Object) -> bool,
) -> Result<Prepared, Failure> {
    let rules = drift_rules::rules_of(object).map_err(|error| Failure::new(error.to_string()))?;
    let whole = drift_rules::of_whole_objects(object).map_err(|error| Failure::new(error.to_string()))?;
    let mut objects = objects(engine, release).await.map_err(Failure::new)?;
    for object in &mut objects {
        mark(object, release);
    }
    objects.retain(|object| is_meant(object) && !is_excluded(object) && !whole.select(object));
    let prepared = engine.prepare(owner, objects, &CommonMetadata::default()).await;
    let prepared = prepared.map_err(|error| Failure::new(error.to_string()))?;
    Ok(prepared.ignoring(&rules))
}

fn is_excluded(object: &Object) -> bool {
    let (key, value) = EXCLUDED;
    object.annotation(key) == Some(value) || object.label(key) == Some(value)
}

/// Returns whether someone excluded the object in the cluster. Asked only about those that differ.
async fn is_excluded_live(engine: &Engine, found: &Difference) -> Result<bool, Failure> {
    let failed = |error: String| Failure::new(format!("{}: {error}", found.id));
    let resource = engine.mapper().resolve(&found.gvk).await;
    let at = Address {
        resource: resource.map_err(|error| failed(error.to_string()))?,
        namespace: found.id.namespace.clone(),
        name: found.id.name.clone(),
    };
    let live = engine.read_metadata_one(&at).await;
    let live = live.map_err(|error| failed(error.to_string()))?;
    let (key, value) = EXCLUDED;
    let says = |kind: &str| {
        let metadata = live.as_ref()?.get("metadata")?;
        metadata.get(kind)?.get(key)?.as_str()
    };
    Ok(says("annotations") == Some(value) || says("labels") == Some(value))
}

/// Sets what Helm sets on objects as it makes them.
fn mark(object: &mut Object, release: &Release) {
    object.set_label("app.kubernetes.io/managed-by", "Helm");
    object.set_annotation("meta.helm.sh/release-name", &release.name);
    object.set_annotation("meta.helm.sh/release-namespace", &release.namespace);
}
