//! What `helm template --dry-run=server` asks a cluster: what its templates see of it, and whether it would take what they
//! render. Nothing is written.

use std::sync::Arc;

use helm_chart::Helm;
use helm_render::capabilities::Capabilities;
use helm_render::{Lookup, Rendered};
use kube::core::DynamicObject;
use kube::core::Request;
use kube::core::params::{Patch, PatchParams};
use kube_apply::mapper;
use serde_json::Value;

use crate::lookup::ClusterLookup;
use crate::resources::{self, Release, Resource};
use crate::{Cluster, Error, ErrorKind, apply, render};

/// What templates see of a cluster.
#[derive(Debug)]
pub struct Seen {
    /// `.Capabilities`.
    pub capabilities: Capabilities,
    /// Answers `lookup`, and `getHostByName` where that is allowed. It asks on the runtime that [`seen`] was called in, so
    /// templates must be rendered on another thread.
    pub lookup: Arc<dyn Lookup>,
}

/// Asks a cluster for what templates see of it.
///
/// # Errors
/// When the API server does not say which version it has, or what it serves.
pub async fn seen(cluster: &Cluster, helm: Helm, with_dns: bool) -> Result<Seen, Error> {
    let lookup = ClusterLookup::new(cluster.client.clone(), cluster.engine.clone(), with_dns);
    Ok(Seen {
        capabilities: render::capabilities(&cluster.engine, helm, true).await?,
        lookup: Arc::new(lookup),
    })
}

/// How strictly a cluster is asked whether it would take a release.
#[derive(Clone, Copy, Debug)]
pub struct Strictness {
    /// The CRDs of crds/ count as objects of the release, as in Helm with `--include-crds`.
    pub with_crds: bool,
    /// Objects that exist must be the release's.
    pub owned: bool,
    /// Each object is sent as a dry run of a server-side apply with strict validation of its fields. Helm does not do
    /// this: it leaves the validation to the API server, and sends nothing.
    pub applied: bool,
}

/// Asks whether a cluster would take a release: whether it serves all kinds, and what else [`Strictness`] says.
///
/// # Errors
/// In Helm's words, for all objects at once: what is no object, kinds that are not served, objects of others, and what the
/// API server refuses.
pub async fn check(
    cluster: &Cluster,
    rendered: &Rendered,
    (name, namespace): (&str, &str),
    strictness: Strictness,
) -> Result<(), Error> {
    let crds = rendered.crds.iter().filter(|_| strictness.with_crds);
    let crds = crds.map(|crd| &crd.content);
    let manifests = rendered.manifests.iter().map(|manifest| &manifest.content);
    let mut manifest = String::new();
    for content in crds.chain(manifests) {
        manifest.push_str("---\n");
        manifest.push_str(content);
        manifest.push('\n');
    }
    let mut resources = resources::read(cluster, &manifest, namespace)
        .await
        .map_err(|error| error.within("unable to build kubernetes objects from release manifest"))?;
    let release = Release { name, namespace };
    apply::mark(&mut resources, release);
    if strictness.owned {
        let all: Vec<&Resource> = resources.iter().collect();
        resources::check_all(cluster, &all, release)
            .await
            .map_err(|error| error.within("unable to continue with install"))?;
    }
    if strictness.applied {
        apply_dry(cluster, &resources).await?;
    }
    Ok(())
}

/// Sends each object as a dry run; all refusals are reported.
async fn apply_dry(cluster: &Cluster, resources: &[Resource]) -> Result<(), Error> {
    let mut problems = Vec::new();
    for resource in resources.iter().filter(|resource| !resource.is_named_by_server()) {
        let Err(problem) = send_dry(cluster, resource).await else {
            continue;
        };
        problems.push(format!("{resource}: {problem}"));
    }
    match problems.len() {
        0 => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Cluster,
            format!("the cluster refuses:\n- {}", problems.join("\n- ")),
        )),
    }
}

async fn send_dry(cluster: &Cluster, resource: &Resource) -> Result<(), String> {
    let mapper::Resource { api, namespaced, .. } = &*resource.at.resource;
    let namespace = Some(resource.at.namespace.as_str()).filter(|_| *namespaced);
    let collection = Request::new(<DynamicObject as kube::Resource>::url_path(api, namespace));
    let mut params = PatchParams::apply(&cluster.field_manager)
        .force()
        .validation_strict();
    params.dry_run = true;
    let patch = Patch::Apply(resource.object.value());
    let request = collection
        .patch(&resource.at.name, &params, &patch)
        .map_err(|error| error.to_string())?;
    match cluster.client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => Err(error.to_string()),
    }
}
