//! What annotations of objects take from ConfigMaps and Secrets of the cluster: data, addresses of clusters, checksums. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::flux_operator::{CHECKSUM, CHECKSUM_FROM, CONVERT_KUBECONFIG_FROM, COPY_FROM};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::Object;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// A ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// `ConfigMap` or `Secret`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// Why an annotation cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: the annotation {annotation} {problem}")]
pub struct Error {
    object: String,
    annotation: &'static str,
    problem: String,
}

impl Error {
    fn new(object: &Object, annotation: &'static str, problem: impl Into<String>) -> Self {
        Self {
            object: object.id().to_string(),
            annotation,
            problem: problem.into(),
        }
    }
}

/// Returns which ConfigMaps and Secrets the objects name.
///
/// # Errors
/// When an annotation cannot be read, or is on an object of another kind.
pub fn named(objects: &[Object]) -> Result<BTreeSet<Reference>, Error> {
    let mut all = BTreeSet::new();
    for object in objects {
        all.extend(copied(object)?);
        all.extend(converted(object)?.map(|(reference, _)| reference));
        all.extend(summed(object)?);
    }
    Ok(all)
}

fn copied(object: &Object) -> Result<Option<Reference>, Error> {
    let Some(from) = object.annotation(COPY_FROM) else {
        return Ok(None);
    };
    let kind = object.gvk().kind;
    if !is_config(object) {
        return Err(Error::new(
            object,
            COPY_FROM,
            "is for ConfigMaps and Secrets only",
        ));
    }
    let (namespace, name) = split(from)
        .ok_or_else(|| Error::new(object, COPY_FROM, format!("must be namespace/name, not '{from}'")))?;
    Ok(Some(Reference {
        kind,
        namespace,
        name,
    }))
}

fn converted(object: &Object) -> Result<Option<(Reference, Option<String>)>, Error> {
    let Some(from) = object.annotation(CONVERT_KUBECONFIG_FROM) else {
        return Ok(None);
    };
    let problem = |text: &str| Error::new(object, CONVERT_KUBECONFIG_FROM, text);
    if object.gvk().kind != "ConfigMap" || !is_config(object) {
        return Err(problem("is for ConfigMaps only"));
    }
    let (place, key) = match from.split_once(':') {
        Some((place, key)) => (place, Some(key.to_owned())),
        None => (from, None),
    };
    let (namespace, name) =
        split(place).ok_or_else(|| problem("must be namespace/name or namespace/name:key"))?;
    let reference = Reference {
        kind: "Secret".to_owned(),
        namespace,
        name,
    };
    Ok(Some((reference, key)))
}

fn summed(object: &Object) -> Result<Vec<Reference>, Error> {
    let Some(from) = object.annotation(CHECKSUM_FROM) else {
        return Ok(Vec::new());
    };
    let read = |text: &str| {
        let (kind, place) = text.trim().split_once('/')?;
        let (namespace, name) = split(place)?;
        matches!(kind, "ConfigMap" | "Secret").then(|| Reference {
            kind: kind.to_owned(),
            namespace,
            name,
        })
    };
    let all: Option<Vec<_>> = from.split(',').map(read).collect();
    all.ok_or_else(|| {
        let problem = format!(
            "must be ConfigMap/namespace/name or Secret/namespace/name, separated by commas, not '{from}'"
        );
        Error::new(object, CHECKSUM_FROM, problem)
    })
}

fn is_config(object: &Object) -> bool {
    let gvk = object.gvk();
    gvk.group.is_empty() && matches!(gvk.kind.as_str(), "ConfigMap" | "Secret")
}

fn split(text: &str) -> Option<(String, String)> {
    let (namespace, name) = text.trim().split_once('/')?;
    let is_right = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_right.then(|| (namespace.to_owned(), name.to_owned()))
}

/// Digest of the data of a ConfigMap or Secret.
#[must_use]
pub fn digest(config: &Value) -> String {
    let mut hasher = Sha256::new();
    for field in ["data", "binaryData"] {
        // Keys of JSON objects are sorted here, whatever order the API server has them in.
        let sorted: BTreeMap<_, _> = config[field].as_object().into_iter().flatten().collect();
        hasher.update(json!({ field: sorted }).to_string());
    }
    format!("sha256:{}", hex::encode(hasher.finalize()))
}

/// Puts what the annotations name into the objects. `found` has what [`named`] listed.
///
/// # Errors
/// When something is not there, or is no kubeconfig that a ConfigMap can hold.
pub fn fill(objects: &mut [Object], found: &BTreeMap<Reference, Value>) -> Result<(), Error> {
    for object in objects {
        if let Some(reference) = copied(object)? {
            let from = get(object, COPY_FROM, &reference, found)?.clone();
            copy(object, &from);
        }
        if let Some((reference, key)) = converted(object)? {
            let from = get(object, CONVERT_KUBECONFIG_FROM, &reference, found)?;
            let data = converted_kubeconfig(from, key.as_deref()).map_err(|problem| {
                Error::new(
                    object,
                    CONVERT_KUBECONFIG_FROM,
                    format!("names {reference}, {problem}"),
                )
            })?;
            let fields = object.value_mut().entry("data").or_insert_with(|| json!({}));
            if let Value::Object(fields) = fields {
                fields.extend(data);
            }
        }
        let references = summed(object)?;
        if !references.is_empty() {
            let mut hasher = Sha256::new();
            for reference in &references {
                let from = get(object, CHECKSUM_FROM, reference, found)?;
                hasher.update(format!("{reference}={}\n", digest(from)));
            }
            let sum = format!("sha256:{}", hex::encode(hasher.finalize()));
            mark(object, &sum);
        }
    }
    Ok(())
}

fn get<'a>(
    object: &Object,
    annotation: &'static str,
    reference: &Reference,
    found: &'a BTreeMap<Reference, Value>,
) -> Result<&'a Value, Error> {
    found.get(reference).ok_or_else(|| {
        Error::new(
            object,
            annotation,
            format!("names {reference}, which does not exist"),
        )
    })
}

/// Takes over the data and, of a Secret, its type. What the template says itself goes before.
fn copy(object: &mut Object, from: &Value) {
    for field in ["data", "binaryData"] {
        let Some(Value::Object(theirs)) = from.get(field) else {
            continue;
        };
        let own = object.value_mut().entry(field).or_insert_with(|| json!({}));
        if let Value::Object(own) = own {
            for (key, value) in theirs {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if let Some(kind) = from.get("type") {
        object.value_mut().entry("type").or_insert_with(|| kind.clone());
    }
}

/// Keys of kubeconfigs in Secrets, of which the first counts.
const KUBECONFIG_KEYS: [&str; 2] = ["value", "value.yaml"];

/// What of a kubeconfig is no secret: the address of the cluster and the authority of its certificate.
fn converted_kubeconfig(secret: &Value, key: Option<&str>) -> Result<Map<String, Value>, &'static str> {
    let keys: Vec<&str> = key.map_or(KUBECONFIG_KEYS.to_vec(), |key| vec![key]);
    let text = keys.iter().find_map(|key| secret["data"][*key].as_str());
    let text = text.ok_or("which has no kubeconfig under that key")?;
    let text = STANDARD
        .decode(text)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or("which is no text")?;
    // No words of the parser: they may quote what is secret.
    let documents = manifest::yaml::read_documents(&text, "kubeconfig").map_err(|_| "which is not YAML")?;
    let config = &documents.first().ok_or("which is empty")?.value;
    let named = |list: &str, name: &Value| {
        let entries = config[list].as_array().into_iter().flatten();
        let mut entries = entries.filter(|entry| entry["name"] == *name);
        entries.next().cloned()
    };
    let context =
        named("contexts", &config["current-context"]).ok_or("whose current context does not exist")?;
    let cluster = named("clusters", &context["context"]["cluster"]).ok_or("whose cluster does not exist")?;
    let server = cluster["cluster"]["server"]
        .as_str()
        .ok_or("which has no server")?;
    let mut data = Map::new();
    data.insert("address".to_owned(), server.into());
    if let Some(authority) = cluster["cluster"]["certificate-authority-data"].as_str() {
        let authority = STANDARD
            .decode(authority)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        data.insert(
            "ca.crt".to_owned(),
            authority.ok_or("whose certificate authority is no text")?.into(),
        );
    }
    Ok(data)
}

/// Writes a checksum into the Pod template of an object, or into the object itself if it has none.
fn mark(object: &mut Object, sum: &str) {
    let template = object.value().get("spec").and_then(|spec| spec.get("template"));
    if template.is_none_or(|template| !template.is_object()) {
        object.set_annotation(CHECKSUM, sum);
        return;
    }
    let mut place = &mut object.value_mut()["spec"]["template"];
    for field in ["metadata", "annotations"] {
        if !place[field].is_object() {
            place[field] = json!({});
        }
        place = &mut place[field];
    }
    place[CHECKSUM] = sum.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::new(value.as_object().unwrap().clone(), None)
    }

    fn secret(data: Value) -> Value {
        json!({"data": data, "type": "kubernetes.io/dockerconfigjson"})
    }

    fn reference(kind: &str, name: &str) -> Reference {
        Reference {
            kind: kind.to_owned(),
            namespace: "a".to_owned(),
            name: name.to_owned(),
        }
    }

    fn annotated(kind: &str, annotation: &str, value: &str) -> Object {
        object(json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {"name": "x", "namespace": "n", "annotations": {annotation: value}},
        }))
    }

    #[test]
    fn data_is_copied_and_the_templates_own_goes_before() {
        let mut objects = [annotated("Secret", COPY_FROM, "a/pull")];
        objects[0]
            .value_mut()
            .insert("data".to_owned(), json!({"own": "eA=="}));
        assert_eq!(named(&objects).unwrap(), [reference("Secret", "pull")].into());
        let found = [(
            reference("Secret", "pull"),
            secret(json!({"own": "eQ==", "more": "eg=="})),
        )]
        .into();
        fill(&mut objects, &found).unwrap();
        assert_eq!(objects[0].value()["data"], json!({"own": "eA==", "more": "eg=="}));
        assert_eq!(objects[0].value()["type"], "kubernetes.io/dockerconfigjson");
        let error = fill(&mut objects, &BTreeMap::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Secret/n/x: the annotation fluxcd.controlplane.io/copyFrom names Secret/a/pull, which does not exist"
        );
    }

    #[test]
    fn annotations_that_cannot_be_followed_are_errors() {
        for (kind, annotation, value) in [
            ("Deployment", COPY_FROM, "a/b"),
            ("Secret", COPY_FROM, "b"),
            ("Secret", COPY_FROM, "a/b/c"),
            ("Secret", CONVERT_KUBECONFIG_FROM, "a/b"),
            ("ConfigMap", CONVERT_KUBECONFIG_FROM, "b:key"),
            ("Deployment", CHECKSUM_FROM, "Pod/a/b"),
            ("Deployment", CHECKSUM_FROM, "Secret/a/b,"),
        ] {
            assert!(
                named(&[annotated(kind, annotation, value)]).is_err(),
                "{kind} {annotation} {value}"
            );
        }
    }

    #[test]
    fn a_kubeconfig_gives_its_address_and_no_secret() {
        let config = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\n\
            clusters:\n- name: other\n  cluster: {server: https://other}\n- name: k\n  cluster: {server: https://k, certificate-authority-data: UEVN}\n\
            users:\n- name: u\n  user: {token: hidden}\n";
        let found = [(
            reference("Secret", "kc"),
            secret(json!({"cfg": STANDARD.encode(config)})),
        )]
        .into();
        let mut objects = [annotated("ConfigMap", CONVERT_KUBECONFIG_FROM, "a/kc:cfg")];
        fill(&mut objects, &found).unwrap();
        assert_eq!(
            objects[0].value()["data"],
            json!({"address": "https://k", "ca.crt": "PEM"})
        );
        let mut objects = [annotated("ConfigMap", CONVERT_KUBECONFIG_FROM, "a/kc")];
        let error = fill(&mut objects, &found).unwrap_err().to_string();
        assert!(
            error.ends_with("names Secret/a/kc, which has no kubeconfig under that key"),
            "{error}"
        );
    }

    #[test]
    fn a_checksum_follows_the_data_and_rolls_pods() {
        let made = |data: Value| {
            let mut objects = [annotated(
                "Deployment",
                CHECKSUM_FROM,
                "ConfigMap/a/x, Secret/a/y",
            )];
            objects[0]
                .value_mut()
                .insert("spec".to_owned(), json!({"template": {"spec": {}}}));
            let found = [
                (reference("ConfigMap", "x"), json!({"data": data})),
                (reference("Secret", "y"), secret(json!({}))),
            ];
            fill(&mut objects, &found.into()).unwrap();
            objects[0].value()["spec"]["template"]["metadata"]["annotations"][CHECKSUM].clone()
        };
        let one = made(json!({"a": "1", "b": "2"}));
        assert_eq!(one, made(json!({"b": "2", "a": "1"})));
        assert_ne!(one, made(json!({"a": "2", "b": "2"})));
        assert!(one.as_str().unwrap().starts_with("sha256:"));
    }
}
