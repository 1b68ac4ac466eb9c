//! `status.inventory`: the objects of a release, hooks aside, and the CRDs of its chart and of those below it that take part.

use api::kustomize::{ResourceInventory, ResourceRef};
use helm_release::Release;
use helm_render::Crd;
use kube_apply::Engine;
use manifest::Object;

/// The annotation of a hook.
const HOOK: &str = "helm.sh/hook";

/// Lists the objects of a release. None if its manifest cannot be read, which the action has told.
pub(super) async fn inventory_of(
    engine: &Engine,
    release: &Release,
    crds: &[Crd],
) -> Option<ResourceInventory> {
    let mut entries: Vec<_> = objects(engine, release).await.ok()?.iter().map(entry).collect();
    for file in crds {
        let crds = manifest::read_objects(&file.content, &file.path).ok()?;
        entries.extend(crds.iter().map(entry));
    }
    Some(ResourceInventory { entries })
}

/// The objects of a release's manifest, in their namespaces.
pub(super) async fn objects(engine: &Engine, release: &Release) -> Result<Vec<Object>, String> {
    let read = manifest::read_objects(&release.manifest, "manifest");
    let mut objects = read.map_err(|error| format!("failed to parse manifest: {}", error.problem))?;
    objects.retain(|object| object.annotation(HOOK).is_none());
    for object in &mut objects {
        if !object.namespace().is_empty() {
            continue;
        }
        // A kind that no one knows (any more) has no namespace, as far as can be told.
        match engine.mapper().resolve(&object.gvk()).await {
            Ok(resource) if resource.namespaced => object.set_namespace(&release.namespace),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(object = %object.id(), %error, "failed to determine if it is namespace scoped");
            }
        }
    }
    Ok(objects)
}

fn entry(object: &Object) -> ResourceRef {
    ResourceRef {
        id: object.id().inventory_id(),
        version: object.gvk().version,
    }
}
