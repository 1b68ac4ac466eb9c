//! The ExternalArtifacts of a generator in the cluster: server-side apply of what is not as it should be, and deletion of
//! what is not wanted any more.
//!
//! The field manager is source-watcher's, so that either controller can take over from the other. An object that another
//! generator or another maker keeps is left to them: two that write the same object would never end.

use std::collections::{BTreeMap, HashSet};

use api::meta::{Artifact, Condition, NamespacedObjectKindReference, TRUE, reasons};
use api::source::{self, ExternalArtifact, Source as _};
use api::source_extensions::{self, ArtifactGenerator, GENERATOR_LABEL};
use controller_kit::ObjectKey;
use controller_kit::conditions::READY;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::context::{Context, MANAGER};

const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const ARTIFACT_IS_READY: &str = "Artifact is ready";

/// An ExternalArtifact as it should be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Desired {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) source_ref: NamespacedObjectKindReference,
    pub(super) artifact: Artifact,
}

/// An operation on an ExternalArtifact that failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to apply ExternalArtifact")]
    Apply(#[source] Box<kube::Error>),
    #[error("failed to patch ExternalArtifact status")]
    Status(#[source] Box<kube::Error>),
    #[error("failed to delete ExternalArtifact")]
    Delete(#[source] Box<kube::Error>),
}

impl Desired {
    pub(super) fn new(
        generator: &ArtifactGenerator,
        name: &str,
        captures: &BTreeMap<String, String>,
        artifact: Artifact,
    ) -> Self {
        let common = generator.spec.common_metadata.clone().unwrap_or_default();
        let mut labels = common.labels;
        labels.extend(captures.clone());
        labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
        labels.insert(GENERATOR_LABEL.to_owned(), generator.uid().unwrap_or_default());
        Self {
            name: name.to_owned(),
            labels,
            annotations: common.annotations,
            source_ref: own_reference(generator),
            artifact,
        }
    }

    /// Returns whether the object says all of this. With `exactly`, it has no other labels and annotations either.
    pub(super) fn holds_for(&self, object: &ExternalArtifact, exactly: bool) -> bool {
        let (labels, annotations) = (object.labels(), object.annotations());
        let has = |all: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>| {
            wanted.iter().all(|(key, value)| all.get(key) == Some(value))
        };
        let as_told = if exactly {
            *labels == self.labels && *annotations == self.annotations
        } else {
            has(labels, &self.labels) && has(annotations, &self.annotations)
        };
        as_told
            && object.spec.source_ref.as_ref() == Some(&self.source_ref)
            && object.artifact() == Some(&self.artifact)
            && ready(object).is_some()
    }
}

fn own_reference(generator: &ArtifactGenerator) -> NamespacedObjectKindReference {
    NamespacedObjectKindReference {
        api_version: Some(format!(
            "{}/{}",
            source_extensions::GROUP,
            source_extensions::VERSION
        )),
        kind: "ArtifactGenerator".to_owned(),
        name: generator.name_any(),
        namespace: generator.namespace(),
    }
}

fn ready(object: &ExternalArtifact) -> Option<&Condition> {
    let status = object.status.as_ref()?;
    status.conditions.iter().find(|condition| {
        condition.type_ == READY && condition.status == TRUE && condition.message == ARTIFACT_IS_READY
    })
}

/// Makes the object in the cluster what it should be, if it is not: two requests, or none.
pub(super) async fn apply(
    generator: &ArtifactGenerator,
    desired: &Desired,
    is_known: bool,
    context: &Context,
) -> Result<bool, Error> {
    let namespace = generator.namespace().unwrap_or_default();
    let existing = context
        .artifacts
        .get(&ObjectKey::new(&*namespace, &*desired.name).object_ref());
    if existing.is_some_and(|existing| desired.holds_for(&existing, !is_known)) {
        return Ok(false);
    }
    let api: Api<ExternalArtifact> = Api::namespaced(context.client.clone(), &namespace);
    let parameters = PatchParams::apply(MANAGER).force();
    let api_version = format!("{}/{}", api::meta::SOURCE_GROUP, source::VERSION);
    let mut metadata = json!({ "name": desired.name, "namespace": namespace, "labels": desired.labels });
    if !desired.annotations.is_empty() {
        metadata["annotations"] = json!(desired.annotations);
    }
    let object = json!({
        "apiVersion": api_version, "kind": "ExternalArtifact", "metadata": metadata,
        "spec": { "sourceRef": desired.source_ref },
    });
    let applied = api
        .patch(&desired.name, &parameters, &Patch::Apply(object))
        .await
        .map_err(|error| Error::Apply(Box::new(error)))?;
    let since = ready(&applied).map_or_else(
        || Time(whole_seconds(Timestamp::now())),
        |condition| condition.last_transition_time.clone(),
    );
    let condition = Condition {
        type_: READY.to_owned(),
        status: TRUE.to_owned(),
        observed_generation: applied.metadata.generation,
        last_transition_time: since,
        reason: reasons::SUCCEEDED.to_owned(),
        message: ARTIFACT_IS_READY.to_owned(),
    };
    let object = json!({
        "apiVersion": api_version, "kind": "ExternalArtifact",
        "metadata": { "name": desired.name, "namespace": namespace },
        "status": { "artifact": desired.artifact, "conditions": [condition] },
    });
    let applied = api
        .patch_status(&desired.name, &parameters, &Patch::Apply(object))
        .await
        .map_err(|error| Error::Status(Box::new(error)))?;
    context.artifacts.remember(applied);
    Ok(true)
}

/// The ExternalArtifacts in the namespace that others keep, with who does.
pub(super) fn foreign(generator: &ArtifactGenerator, context: &Context) -> BTreeMap<String, String> {
    let generators = context.generators.store().state();
    let living: HashSet<String> = generators.iter().filter_map(|other| other.uid()).collect();
    let objects = context.artifacts.store().state();
    let objects = objects
        .iter()
        .filter(|object| object.namespace() == generator.namespace());
    objects
        .filter_map(|object| Some((object.name_any(), other_owner(object, generator, &living)?)))
        .collect()
}

/// Returns the owner of the object, if it is not this generator. An object whose generator is gone may be
/// adopted.
fn other_owner(
    existing: &ExternalArtifact,
    generator: &ArtifactGenerator,
    living: &HashSet<String>,
) -> Option<String> {
    let label = existing.labels().get(GENERATOR_LABEL);
    if label.is_some() && label == generator.uid().as_ref() {
        return None;
    }
    let source = existing.spec.source_ref.as_ref();
    let shown = || match source {
        Some(source) => {
            let namespace = source.namespace.clone().or(existing.namespace());
            format!(
                "{}/{}/{}",
                source.kind,
                namespace.unwrap_or_default(),
                source.name
            )
        }
        None => "another ArtifactGenerator".to_owned(),
    };
    if label.is_some_and(|uid| living.contains(uid)) {
        return Some(shown());
    }
    let inventory = generator.status.iter().flat_map(|status| &status.inventory);
    let is_known = inventory
        .map(|reference| &reference.name)
        .any(|name| Some(name) == existing.metadata.name.as_ref());
    let of_generator = source.is_none_or(|source| source.kind == "ArtifactGenerator");
    (!is_known && !of_generator).then(shown)
}

/// Names of this generator's objects that are not wanted: what the inventory says and what has its label, in its own
/// namespace only.
pub(super) fn unwanted(generator: &ArtifactGenerator, wanted: &[&str], context: &Context) -> Vec<String> {
    let (namespace, uid) = (generator.namespace(), generator.uid());
    let is_own = |object: &ExternalArtifact| {
        object.namespace() == namespace && object.labels().get(GENERATOR_LABEL) == uid.as_ref()
    };
    let mut names: Vec<String> = context
        .artifacts
        .store()
        .state()
        .iter()
        .filter(|object| is_own(object))
        .map(|object| object.name_any())
        .collect();
    let inventory = generator.status.iter().flat_map(|status| &status.inventory);
    let inventory = inventory.filter(|reference| Some(&reference.namespace) == namespace.as_ref());
    names.extend(inventory.map(|reference| reference.name.clone()));
    names.retain(|name| !wanted.contains(&name.as_str()));
    names.sort();
    names.dedup();
    names
}

/// Deletes an object of this generator, if it is one.
pub(super) async fn delete(
    generator: &ArtifactGenerator,
    name: &str,
    context: &Context,
) -> Result<bool, Error> {
    let namespace = generator.namespace().unwrap_or_default();
    let api: Api<ExternalArtifact> = Api::namespaced(context.client.clone(), &namespace);
    let failed = |error| Error::Delete(Box::new(error));
    let Some(object) = api.get_opt(name).await.map_err(failed)? else {
        return Ok(true);
    };
    if object.labels().get(GENERATOR_LABEL) != generator.uid().as_ref() {
        // Someone else has it now.
        return Ok(false);
    }
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(name, &parameters).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(true),
        Err(error) => Err(failed(error)),
    }
}

fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
