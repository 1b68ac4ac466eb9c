//! The ConfigMaps and Secrets that the values of a release come from, read once each. How they are composed is
//! `flux_spec::release`'s.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use api::helm::HelmRelease;
use api::meta::{ValuesKind, ValuesReference};
use controller_kit::check_name;
use flux_spec::release::values::{self, Found, Resources};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::{Map, Value};

/// Why there are no values.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A reference cannot be resolved.
    #[error(transparent)]
    Compose(#[from] values::Error),
    /// The API server did not answer.
    #[error("failed to read the {kind:?} '{name}'")]
    Read {
        /// ConfigMap or Secret.
        kind: ValuesKind,
        /// Its name.
        name: String,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Reads what an object refers to, and composes its values.
pub async fn values_of(client: &Client, object: &HelmRelease) -> Result<Map<String, Value>, Error> {
    let resources = read(client, object).await?;
    Ok(values::compose(object, &resources)?)
}

/// Returns whether an object takes values from this ConfigMap or Secret of its namespace.
pub fn refers_to(object: &HelmRelease, kind: ValuesKind, name: &str) -> bool {
    let mut references = object.spec.values_from.iter();
    references.any(|reference| reference.kind == kind && reference.name == name)
}

async fn read(client: &Client, object: &HelmRelease) -> Result<Resources, Error> {
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let mut resources = HashMap::new();
    for ValuesReference { kind, name, .. } in &object.spec.values_from {
        if let Entry::Vacant(place) = resources.entry((*kind, name.clone())) {
            place.insert(find(client, &namespace, *kind, name).await?);
        }
    }
    Ok(resources.into_iter().collect())
}

async fn find(client: &Client, namespace: &str, kind: ValuesKind, name: &str) -> Result<Found, Error> {
    if let Err(problem) = check_name(name) {
        return Ok(Err(problem));
    }
    let data = match kind {
        ValuesKind::Secret => {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
            secrets.get(name).await.map(|secret| {
                let data = secret.data.unwrap_or_default().into_iter();
                data.map(|(key, value)| (key, value.0)).collect()
            })
        }
        ValuesKind::ConfigMap => {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            maps.get(name).await.map(|map| {
                let data = map.data.unwrap_or_default().into_iter();
                data.map(|(key, value)| (key, value.into_bytes())).collect()
            })
        }
    };
    match data {
        Ok(data) => Ok(Ok(data)),
        Err(error @ kube::Error::Api(_)) if is_not_found(&error) => {
            Ok(Err(workload_identity::api_message(&error)))
        }
        Err(source) => Err(Error::Read {
            kind,
            name: name.to_owned(),
            source: Box::new(source),
        }),
    }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
