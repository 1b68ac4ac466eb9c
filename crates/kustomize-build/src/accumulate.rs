//! The walk through a kustomization with its bases and components, and the steps that end a build.

mod accumulated;
mod go_syntax;
mod refusal;
mod target;

use std::panic::{self, AssertUnwindSafe};

use manifest::yaml::{self, Exhausted};
use manifest::{Object, json};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{Fetch, NoFetch};
use crate::field_spec::FieldSpec;
use crate::fs::FileSystem;
use crate::kustomization::Kustomization;
use crate::load::{Loader, Source};
use crate::nodes::Nodes;
use crate::resource::{self, BuildOrigin, Resource};
use crate::resource_map::ResourceMap;
use crate::schema::Schemas;
use crate::{Built, Options, generate, name_reference, transform};
use accumulated::Accumulated;
use target::Target;

/// Builds the kustomization in a folder of a tree.
///
/// Fails with the first thing that is wrong; nothing is printed and nothing outside of the tree is read: remote
/// resources are refused.
pub fn build(fs: &dyn FileSystem, folder: &str, options: &Options) -> Result<Built> {
    build_fetching(fs, folder, options, &NoFetch)
}

/// Builds as [`build`] does, and gets remote resources from `fetch`.
pub fn build_fetching(
    fs: &dyn FileSystem,
    folder: &str,
    options: &Options,
    fetch: &dyn Fetch,
) -> Result<Built> {
    let source = Source::new(fs, options, fetch);
    let mut nodes = Nodes::new(Schemas::new(options.built_in_schema), options.budget);
    let built = within_budget(|| build_objects(&mut nodes, &source, folder, options));
    let trace = source.into_trace();
    match built {
        Ok(objects) => Ok(Built {
            objects,
            reads: trace.reads,
            fetched: trace.fetched,
            warnings: trace.warnings,
        }),
        Err(error) => Err(error.after(trace)),
    }
}

/// Converts an exhausted budget into an error.
fn within_budget<T>(build: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: the partial result is discarded with the error.
    panic::catch_unwind(AssertUnwindSafe(build)).unwrap_or_else(|cause| match cause.downcast_ref() {
        Some(Exhausted { bytes }) => Err(Error::new(
            ErrorKind::Limit,
            format!("the build makes more than {} MiB of objects", bytes >> 20),
        )),
        None => panic::resume_unwind(cause),
    })
}

fn build_objects(
    nodes: &mut Nodes,
    source: &Source<'_>,
    folder: &str,
    options: &Options,
) -> Result<Vec<Object>> {
    let loader = Loader::open(source, folder)?;
    let mut target = Target::load(loader)?;
    target.choose_schemas(nodes)?;
    let metadata = target.kustomization().build_metadata.clone();
    if !metadata.is_empty() {
        target.track_origin(BuildOrigin::default());
    }
    let mut built = target.accumulate(nodes, Accumulated::default())?;
    add_hashes(nodes, &mut built.map)?;
    name_reference::repair(nodes, &built.map, &built.config.name_reference)?;
    built
        .variables
        .resolve(nodes, &built.map, &built.config.var_reference)?;
    built.map.drop_local(nodes)?;
    // kustomize panics here when a patch or replacement gave two objects one id.
    built.map.refuse_duplicates(nodes)?;
    let kustomization = target.kustomization();
    transform::order::apply(
        nodes,
        &mut built.map,
        kustomization.sort_options.as_ref(),
        options.default_order,
    )?;
    if options.managed_by_label || kustomization.has_build_metadata("managedByLabel") {
        let label = format!("kustomize-{}", options.version.0);
        let labels = [("app.kubernetes.io/managed-by".to_owned(), label)].into();
        let fields = [FieldSpec::new("metadata/labels", true)];
        transform::text::apply(nodes, &mut built.map, &labels, &fields)?;
    }
    finish(nodes, built.map, kustomization)
}

pub(crate) fn add_hashes(nodes: &mut Nodes, map: &mut ResourceMap) -> Result<()> {
    for resource in map
        .list_mut()
        .iter_mut()
        .filter(|resource| resource.history.adds_hash)
    {
        let Some(root) = resource.root else { continue };
        let hash = generate::hash::of_object(nodes, root)?;
        resource.store_previous_id(nodes);
        let name = format!("{}-{hash}", resource::name(nodes, root));
        resource::set_name(nodes, root, &name)?;
    }
    Ok(())
}

/// Turns trees into objects.
fn finish(nodes: &mut Nodes, map: ResourceMap, kustomization: &Kustomization) -> Result<Vec<Object>> {
    let origins = kustomization.has_build_metadata("originAnnotations");
    let transformations = kustomization.has_build_metadata("transformerAnnotations");
    let mut objects = Vec::with_capacity(map.list().len());
    for resource in map.into_list() {
        let Some(root) = resource.root else { continue };
        set_final_annotations(nodes, root, &resource, origins, transformations)?;
        let object = to_object(nodes, root, &resource)?;
        // In the object, aliases are expanded.
        let values = object.value().values().map(json::count).sum::<usize>();
        nodes.charge(values * size_of::<Value>());
        objects.push(object);
    }
    Ok(objects)
}

/// kustomize writes all annotations anew when it removes its own, as strings, and drops the field when none is left.
fn set_final_annotations(
    nodes: &mut Nodes,
    root: yaml::NodeId,
    resource: &Resource,
    origins: bool,
    transformations: bool,
) -> Result<()> {
    const ORIGIN: &str = "config.kubernetes.io/origin";
    const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";
    const INTERNAL: [&str; 8] = [
        "internal.config.kubernetes.io/path",
        "internal.config.kubernetes.io/index",
        "internal.config.kubernetes.io/seqindent",
        "internal.config.kubernetes.io/id",
        "internal.config.kubernetes.io/annotations-migration-resource-id",
        "config.kubernetes.io/path",
        "config.kubernetes.io/index",
        "config.k8s.io/id",
    ];
    let mut annotations = resource::annotations(nodes, root);
    annotations.retain(|key, _| !INTERNAL.contains(&key.as_str()));
    annotations.remove(ORIGIN);
    annotations.remove(TRANSFORMATIONS);
    if let Some(origin) = resource.origin.as_ref().filter(|_| origins) {
        annotations.insert(ORIGIN.to_owned(), origin.to_annotation());
    }
    if transformations && !resource.transformations.is_empty() {
        let text = BuildOrigin::list_to_annotation(&resource.transformations);
        annotations.insert(TRANSFORMATIONS.to_owned(), text);
    }
    resource::set_texts(nodes, root, "annotations", &annotations)
}

fn to_object(nodes: &Nodes, root: yaml::NodeId, resource: &Resource) -> Result<Object> {
    let at = |error: Error| match &resource.source {
        Some(source) => error.in_file(&source.file, source.line),
        None => error,
    };
    let value = yaml::json::decode_kyaml(nodes, root)
        .map_err(|problem| at(Error::invalid(refusal::of_object(nodes, root, &problem))))?;
    if let Err(error) = yaml::check(&value) {
        return Err(at(Error::invalid(format!(
            "{}: {error}",
            go_syntax::of_object(nodes, root)
        ))));
    }
    match value {
        Value::Object(fields) => Ok(Object::new(fields, resource.source.clone())),
        _ => Err(at(Error::invalid(format!("{} is no object", resource.id(nodes))))),
    }
}
