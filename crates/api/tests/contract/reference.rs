//! The CRDs of the types are those of Flux, but for the descriptions.
//!
//! Flux's CRDs are not part of this repository. Where they lie beside it, every difference is a failure.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::trees;

/// Where Flux's CRDs are, if they are.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/crds");
/// Groups of Flux end so. Other projects' definitions may lie beside them.
const FLUX_GROUPS: &str = ".fluxcd.io_";
/// Kinds of Flux's source-watcher, whose CRDs need not lie with those of the other controllers.
const EXTENSIONS: &str = "source.extensions.fluxcd.io_";
/// By which `flux check` finds definitions. Flux's own get it from its manifests.
const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// Kinds of ours and of others that Alerts and Receivers know beside those of Flux.
const OWN_KINDS: [&str; 6] = [
    "ChangeRequest",
    "EnvironmentPolicy",
    "Pipeline",
    "Preview",
    "ResourceSet",
    "ResourceSetInputProvider",
];
/// Says which tool wrote the file.
const GENERATOR_ANNOTATION: &str = "controller-gen.kubebuilder.io/version";

#[test]
fn the_crds_are_those_of_flux() {
    if !Path::new(REFERENCE).is_dir() {
        println!("skipped: Flux's CRDs are not beside the repository");
        return;
    }
    let mut reference = trees::in_folder(Path::new(REFERENCE));
    reference.retain(|name, _| name.contains(FLUX_GROUPS));
    assert!(!reference.is_empty(), "no definition of Flux in {REFERENCE}");
    let mut ours = trees::of_the_types();
    ours.retain(|name, _| !name.starts_with(EXTENSIONS) || reference.contains_key(name));
    // Flux has nothing like it.
    ours.retain(|name, _| !name.starts_with(api::delivery::GROUP));
    let differences = differences(reference, ours);
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// Files of Weave's definitions, and Git services that only ours has.
const WEAVE: [&str; 2] = [
    "gitops.weave.works_gitopsclusters.yaml",
    "pipelines.weave.works_pipelines.newest.yaml",
];
const OWN_GIT_SERVICES: [&str; 2] = ["gitea", "azure-devops"];

#[test]
fn the_crds_of_weave_are_weaves() {
    if !Path::new(REFERENCE).is_dir() {
        println!("skipped: Weave's CRDs are not beside the repository");
        return;
    }
    let reference = trees::in_folder(Path::new(REFERENCE)).into_iter();
    let reference = reference.filter(|(name, _)| WEAVE.contains(&&**name));
    let mut reference: BTreeMap<_, _> = reference
        .map(|(name, crd)| (name.replace(".newest", ""), crd))
        .collect();
    assert_eq!(
        reference.len(),
        WEAVE.len(),
        "no definitions of Weave in {REFERENCE}"
    );
    let mut ours = trees::of_weave();
    for crd in reference.values_mut().chain(ours.values_mut()) {
        // How they are kept and substituted is the chart's.
        crd["metadata"].as_object_mut().unwrap().remove("annotations");
        crd["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("creationTimestamp");
    }
    let differences = differences(reference, ours);
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

fn differences(mut reference: BTreeMap<String, Value>, mut ours: BTreeMap<String, Value>) -> Vec<String> {
    let mut lines = Vec::new();
    reference
        .values_mut()
        .chain(ours.values_mut())
        .for_each(normalise);
    for (name, theirs) in &reference {
        let own = ours.get(name).unwrap_or(&Value::Null);
        lines.extend(
            trees::differences(theirs, own)
                .iter()
                .map(|line| format!("{name} {line}")),
        );
    }
    let extra = ours.keys().filter(|name| !reference.contains_key(*name));
    lines.extend(extra.map(|name| format!("{name} is not in the reference")));
    lines
}

/// Takes away what may differ: descriptions, the generator's name, and orders that mean nothing.
fn normalise(crd: &mut Value) {
    if let Some(metadata) = crd["metadata"].as_object_mut()
        && metadata
            .get("labels")
            .is_some_and(|labels| *labels == serde_json::json!({PART_OF_LABEL: "flux"}))
    {
        metadata.remove("labels");
    }
    if let Some(annotations) = crd["metadata"]["annotations"].as_object_mut() {
        annotations.remove(GENERATOR_ANNOTATION);
    }
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        normalise_schema(&mut version["schema"]["openAPIV3Schema"]);
    }
}

fn normalise_schema(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    fields.remove("description");
    for set in ["required", "enum"] {
        if let Some(values) = fields.get_mut(set).and_then(Value::as_array_mut) {
            values.sort_by_key(ToString::to_string);
            // The kinds that Alerts and Receivers know: ours is one more.
            if values.iter().any(|value| value == "Kustomization") {
                values.retain(|value| !OWN_KINDS.iter().any(|own| value == own));
            }
            if values.iter().any(|value| value == "bitbucket-server") {
                values.retain(|value| value.as_str().is_none_or(|one| !OWN_GIT_SERVICES.contains(&one)));
            }
        }
    }
    for properties in fields
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
    {
        properties.values_mut().for_each(normalise_schema);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(below) {
            normalise_schema(schema);
        }
    }
}
