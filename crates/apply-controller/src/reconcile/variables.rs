//! The ConfigMaps and Secrets that `spec.postBuild.substituteFrom` names, as they are now.
//!
//! Read anew by each run, so that no copy of a Secret is kept; between runs only the digest of what they held is. A watch
//! on their metadata tells when to look again.

use std::collections::{BTreeMap, HashMap};

use api::kustomize::{Kustomization, PostBuild, SubstituteReference};
use api::meta::ValuesKind;
use artifact::Digest;
use flux_spec::build::Data;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};

use crate::error::Error;

/// The data of what is referred to.
#[derive(Default)]
pub struct Variables {
    found: HashMap<(bool, String), Data>,
    digest: Option<Digest>,
}

impl Variables {
    /// Reads what the spec refers to, from the namespace of the object.
    pub async fn read(client: &Client, namespace: &str, object: &Kustomization) -> Result<Self, Error> {
        let references = references(object);
        let mut variables = Self::default();
        if references.is_empty() {
            return Ok(variables);
        }
        let mut seen = String::new();
        for reference in references {
            let data = get(client, namespace, reference)
                .await
                .map_err(|source| Error::ReadVariables {
                    kind: format!("{:?}", reference.kind),
                    name: reference.name.clone(),
                    source,
                })?;
            note(&mut seen, reference, data.as_ref());
            variables.found.insert(key(reference), data);
        }
        variables.digest = Some(Digest::from_content(seen.as_bytes()));
        Ok(variables)
    }

    /// Returns what a reference refers to.
    pub fn data(&self, reference: &SubstituteReference) -> Data {
        self.found.get(&key(reference)).cloned().flatten()
    }

    /// Returns the digest of all that was found; None if the spec refers to nothing.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

/// Returns what the spec refers to.
pub fn references(object: &Kustomization) -> &[SubstituteReference] {
    let post_build: Option<&PostBuild> = object.spec.post_build.as_ref();
    post_build.map_or(&[], |post_build| &post_build.substitute_from)
}

/// Returns whether the spec takes variables from this ConfigMap or Secret of the object's namespace.
pub fn refers_to(object: &Kustomization, kind: ValuesKind, name: &str) -> bool {
    let mut references = references(object).iter();
    references.any(|reference| reference.kind == kind && reference.name == name)
}

fn key(reference: &SubstituteReference) -> (bool, String) {
    (reference.kind == ValuesKind::Secret, reference.name.clone())
}

async fn get(client: &Client, namespace: &str, reference: &SubstituteReference) -> kube::Result<Data> {
    let name = &reference.name;
    controller_kit::check_name(name)
        .map_err(|problem| kube::Error::BuildRequest(kube::core::request::Error::Validation(problem)))?;
    Ok(match reference.kind {
        ValuesKind::ConfigMap => {
            let found = Api::<ConfigMap>::namespaced(client.clone(), namespace)
                .get_opt(name)
                .await?;
            let bytes = |(key, value): (String, String)| (key, value.into_bytes());
            found.map(|map| map.data.unwrap_or_default().into_iter().map(bytes).collect())
        }
        ValuesKind::Secret => {
            let found = Api::<Secret>::namespaced(client.clone(), namespace)
                .get_opt(name)
                .await?;
            let bytes = |(key, value): (String, k8s_openapi::ByteString)| (key, value.0);
            found.map(|secret| secret.data.unwrap_or_default().into_iter().map(bytes).collect())
        }
    })
}

/// Adds what a reference led to, such that no two findings read the same.
fn note(seen: &mut String, reference: &SubstituteReference, data: Option<&BTreeMap<String, Vec<u8>>>) {
    let mut add = |bytes: &[u8]| seen.push_str(&format!("{} ", Digest::from_content(bytes)));
    add(format!("{:?}/{}", reference.kind, reference.name).as_bytes());
    match data {
        None => add(b"nothing"),
        Some(data) => data.iter().for_each(|(key, value)| {
            add(key.as_bytes());
            add(value);
        }),
    }
    seen.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(data: Option<&[(&str, &str)]>) -> String {
        let reference = SubstituteReference {
            name: "a".to_owned(),
            ..SubstituteReference::default()
        };
        let data = data.map(|data| {
            let bytes = |(key, value): &(&str, &str)| ((*key).to_owned(), value.as_bytes().to_vec());
            data.iter().map(bytes).collect()
        });
        let mut seen = String::new();
        note(&mut seen, &reference, data.as_ref());
        seen
    }

    #[test]
    fn every_difference_is_seen_and_no_value_is() {
        let findings = [
            seen(None),
            seen(Some(&[])),
            seen(Some(&[("key", "secret")])),
            seen(Some(&[("key", "other")])),
            seen(Some(&[("keysecret", "")])),
        ];
        for (index, finding) in findings.iter().enumerate() {
            assert!(!findings[..index].contains(finding), "{index}");
            assert!(!finding.contains("secret"), "{finding}");
        }
        assert_eq!(seen(Some(&[("key", "secret")])), findings[2]);
    }
}
