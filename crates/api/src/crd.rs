//! The CRDs of all kinds, ready to be written to files.
//!
//! What kube-derive makes of the types is right in most places, by attributes on the types. What attributes
//! cannot say is settled here, by structure and for all kinds alike, so that the outcome equals what controller-gen
//! makes of Flux's Go types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceSubresources, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::json;

use crate::{
    delivery, flux_operator, helm, image, kustomize, meta, notification, source, source_extensions, weave,
};

/// The CRDs of all kinds of Flux and of ours, in the order of their groups and names.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        delivery::ChangePolicy::crd(),
        delivery::ChangeRequest::crd(),
        delivery::EnvironmentPolicy::crd(),
        delivery::Freeze::crd(),
        delivery::Pipeline::crd(),
        delivery::Preview::crd(),
        delivery::VerificationPolicy::crd(),
        helm::HelmRelease::crd(),
        image::ImagePolicy::crd(),
        image::ImageRepository::crd(),
        image::ImageUpdateAutomation::crd(),
        kustomize::Kustomization::crd(),
        notification::Alert::crd(),
        notification::Provider::crd(),
        notification::Receiver::crd(),
        source_extensions::ArtifactGenerator::crd(),
        source::Bucket::crd(),
        source::ExternalArtifact::crd(),
        source::GitRepository::crd(),
        source::HelmChart::crd(),
        source::HelmRepository::crd(),
        source::OCIRepository::crd(),
    ];
    crds.iter_mut().for_each(finish);
    crds
}

/// The CRDs of Weave GitOps, which are installed by choice and may be others' in the cluster.
#[must_use]
pub fn weave() -> Vec<CustomResourceDefinition> {
    of_others(vec![weave::GitopsCluster::crd(), weave::Pipeline::crd()])
}

/// The CRDs of flux-operator that we serve, which are installed by choice and may be others' in the cluster.
#[must_use]
pub fn flux_operator() -> Vec<CustomResourceDefinition> {
    of_others(vec![
        flux_operator::ResourceSetInputProvider::crd(),
        flux_operator::ResourceSet::crd(),
    ])
}

fn of_others(mut crds: Vec<CustomResourceDefinition>) -> Vec<CustomResourceDefinition> {
    crds.iter_mut().for_each(finish);
    for crd in &mut crds {
        crd.metadata.labels = None; // they are no part of Flux
    }
    crds
}

/// Settles what attributes on the types cannot say.
fn finish(crd: &mut CustomResourceDefinition) {
    // Flux marks its CRDs so that a Kustomization which applies them does not substitute variables in them: the
    // descriptions have `${…}` in them. (The attribute of kube-derive would mark the objects too.)
    let annotation = (
        meta::SUBSTITUTE_ANNOTATION.to_owned(),
        meta::DISABLED_VALUE.to_owned(),
    );
    crd.metadata
        .annotations
        .get_or_insert_default()
        .extend([annotation]);
    // `flux check` looks for definitions with this label.
    let label = ("app.kubernetes.io/part-of".to_owned(), "flux".to_owned());
    crd.metadata.labels.get_or_insert_default().extend([label]);
    crd.spec
        .names
        .list_kind
        .get_or_insert_with(|| format!("{}List", crd.spec.names.kind));
    for version in &mut crd.spec.versions {
        // An absent and an empty list of subresources mean the same; controller-gen writes the empty one.
        version
            .subresources
            .get_or_insert_with(CustomResourceSubresources::default);
        let schema = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut());
        if let Some(root) = schema {
            finish_root(root);
            forbid_null(root);
        }
    }
}

/// The root of every object: Flux demands no spec, describes what all objects have, and lets a status begin at
/// generation -1, which tells "never seen" from "seen at generation 0".
fn finish_root(root: &mut JSONSchemaProps) {
    root.required = None;
    root.title = None;
    let properties = root.properties.get_or_insert_default();
    for part in ["spec", "status"] {
        if let Some(schema) = properties.get_mut(part) {
            // The default that serde uses for an absent part is not for the API server.
            schema.default = None;
        }
    }
    if let Some(status) = properties.get_mut("status")
        && status
            .properties
            .as_ref()
            .is_some_and(|fields| fields.contains_key("observedGeneration"))
    {
        status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    }
    let text = |description: &str| JSONSchemaProps {
        type_: Some("string".to_owned()),
        description: Some(description.to_owned()),
        ..JSONSchemaProps::default()
    };
    properties.insert(
        "apiVersion".to_owned(),
        text("Group and version of the schema that this object follows."),
    );
    properties.insert(
        "kind".to_owned(),
        text("Name of the schema that this object follows."),
    );
    let metadata = JSONSchemaProps {
        type_: Some("object".to_owned()),
        ..JSONSchemaProps::default()
    };
    properties.insert("metadata".to_owned(), metadata);
}

/// An `Option` here is a field that may be absent, never one that may be null; schemars cannot know that.
fn forbid_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    if let Some(properties) = &mut schema.properties {
        properties.values_mut().for_each(forbid_null);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => forbid_null(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(forbid_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        forbid_null(value);
    }
}
