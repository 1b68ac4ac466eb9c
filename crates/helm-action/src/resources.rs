//! From the text of a release's manifest to objects that can be addressed.
//!
//! Kinds are resolved with the discovery that all reconciles share, namespaces put right as kubectl's builder does. Nothing
//! is written here.

mod ownership;

use std::fmt;

use kube_apply::{Address, Owner, mapper};
use manifest::{GroupVersionKind, Object, ObjectId, yaml};
use serde_json::{Map, Value};

use crate::{Cluster, Error, ErrorKind};
pub(crate) use ownership::{Release, check_all, entry, existing_of};

/// An object of a release, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) object: Object,
    pub(crate) at: Address,
}

impl Resource {
    /// Returns which object it is, whatever its version.
    pub(crate) fn id(&self) -> ObjectId {
        self.at.id()
    }

    pub(crate) fn gvk(&self) -> GroupVersionKind {
        self.object.gvk()
    }

    /// Returns whether the API server is to find a name for it.
    pub(crate) fn is_named_by_server(&self) -> bool {
        self.at.name.is_empty() && self.generates_name()
    }

    fn generates_name(&self) -> bool {
        let metadata = self.object.value().get("metadata");
        let prefix = metadata.and_then(|metadata| metadata.get("generateName")?.as_str());
        prefix.is_some_and(|prefix| !prefix.is_empty())
    }

    /// Returns in whose name it is applied, as its labels say.
    pub(crate) fn owner(&self, cluster: &Cluster) -> Option<Owner> {
        let settings = cluster.engine.settings();
        Some(Owner {
            namespace: self.object.label(&settings.namespace_label())?.to_owned(),
            name: self.object.label(&settings.name_label())?.to_owned(),
        })
    }
}

/// `Deployment "web" in namespace "default"`, as Helm writes it.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address {
            resource,
            namespace,
            name,
        } = &self.at;
        write!(f, "{} {name:?} in namespace {namespace:?}", resource.api.kind)
    }
}

/// Reads the objects of a manifest, in its order.
pub(crate) async fn read(cluster: &Cluster, manifest: &str, namespace: &str) -> Result<Vec<Resource>, Error> {
    let (mut resources, mut problems) = (Vec::new(), Vec::new());
    for object in objects(manifest)? {
        match place(cluster, object, namespace).await {
            Ok(resource) => resources.push(resource),
            Err(problem) => problems.push(problem),
        }
    }
    joined(problems).map_or(Ok(resources), Err)
}

/// Reads the objects of an older revision. Kinds that are no longer served in any version have no objects, and are left
/// out: Helm fails for good where a CRD, or an API of Kubernetes, went.
pub(crate) async fn read_former(
    cluster: &Cluster,
    manifest: &str,
    namespace: &str,
) -> Result<Vec<Resource>, Error> {
    let mut resources = Vec::new();
    for object in objects(manifest)? {
        let found = cluster.engine.mapper().resolve_any_version(&object.gvk()).await;
        if let Some(resource) = found.map_err(|error| unknown(&object, &error))? {
            resources.push(placed(object, resource, namespace));
        }
    }
    Ok(resources)
}

async fn place(cluster: &Cluster, object: Object, namespace: &str) -> Result<Resource, Error> {
    match cluster.engine.mapper().resolve(&object.gvk()).await {
        Ok(resource) => Ok(placed(object, resource, namespace)),
        Err(error) => Err(unknown(&object, &error)),
    }
}

/// Puts the namespace right: the release's where there is none, none where the kind has none.
pub(crate) fn placed(
    mut object: Object,
    resource: std::sync::Arc<mapper::Resource>,
    namespace: &str,
) -> Resource {
    if !resource.namespaced {
        if let Some(Value::Object(metadata)) = object.value_mut().get_mut("metadata") {
            metadata.remove("namespace");
        }
    } else if object.namespace().is_empty() {
        object.set_namespace(namespace);
    }
    let at = Address {
        resource,
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
    };
    Resource { object, at }
}

/// In kubectl's words.
fn unknown(object: &Object, error: &mapper::Error) -> Error {
    if !matches!(error, mapper::Error::UnknownKind(_)) {
        let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        return Error::new(ErrorKind::Cluster, format!("{error}{cause}"));
    }
    let (name, namespace) = (object.name(), object.namespace());
    let text = format!(
        "resource mapping not found for name: {name:?} namespace: {namespace:?} from \"\": {error}\nensure CRDs are installed first"
    );
    Error::new(ErrorKind::Build, text)
}

/// Joins problems as Go's aggregated errors do.
fn joined(problems: Vec<Error>) -> Option<Error> {
    let first = problems.first()?;
    if let [only] = &problems[..] {
        return Some(only.clone());
    }
    let mut texts: Vec<String> = Vec::new();
    for problem in &problems {
        let text = problem.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let text = match &texts[..] {
        [only] => only.clone(),
        texts => format!("[{}]", texts.join(", ")),
    };
    Some(Error::new(first.kind(), text))
}

pub(crate) fn objects(manifest: &str) -> Result<Vec<Object>, Error> {
    let documents = yaml::read_documents(manifest, "").map_err(|error| {
        let text = format!("error parsing : error converting YAML to JSON: {}", error.problem);
        Error::new(ErrorKind::Build, text)
    })?;
    let mut objects = Vec::new();
    for document in documents {
        flatten(document.value, 0, &mut objects)?;
    }
    Ok(objects)
}

/// Lists may hold lists; so deep does no one nest them.
const DEEPEST: usize = 8;

/// Takes lists apart.
fn flatten(value: Value, depth: usize, objects: &mut Vec<Object>) -> Result<(), Error> {
    let mut fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) if fields.is_empty() => return Ok(()),
        Value::Object(fields) => fields,
        _ => return Err(undecodable("couldn't get version/kind; it is no object")),
    };
    let text = |fields: &Map<String, Value>, key: &str| {
        let text = fields.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let is_list = text(&fields, "kind").ends_with("List");
    match fields.remove("items") {
        Some(Value::Array(items)) if is_list && depth < DEEPEST => {
            return items
                .into_iter()
                .try_for_each(|item| flatten(item, depth + 1, objects));
        }
        Some(Value::Null) if is_list => return Ok(()),
        Some(other) => drop(fields.insert("items".to_owned(), other)),
        None => {}
    }
    for (key, shown) in [("kind", "Object 'Kind'"), ("apiVersion", "Object 'apiVersion'")] {
        if text(&fields, key).is_empty() {
            return Err(undecodable(&format!("{shown} is missing")));
        }
    }
    objects.push(named(Object::new(fields, None))?);
    Ok(())
}

/// Refuses objects without a name, and with two.
fn named(object: Object) -> Result<Object, Error> {
    let metadata = object.value().get("metadata");
    let refused = |text: String| Err(Error::new(ErrorKind::Build, text));
    for field in ["labels", "annotations"] {
        let value = metadata.and_then(|metadata| metadata.get(field));
        if value.is_some_and(|value| !value.is_object() && !value.is_null()) {
            let (kind, name) = (object.gvk().kind, object.name());
            return refused(format!("{kind} {name:?}: metadata.{field} is not a mapping"));
        }
    }
    let prefix = metadata.and_then(|metadata| metadata.get("generateName")?.as_str());
    match (object.name().is_empty(), prefix.unwrap_or_default().is_empty()) {
        (true, true) => refused(format!(
            "error when retrieving current configuration of {}: resource name may not be empty",
            object.gvk().kind
        )),
        (false, false) => refused("metadata.name and metadata.generateName cannot both be set".to_owned()),
        _ => Ok(object),
    }
}

fn undecodable(problem: &str) -> Error {
    Error::new(ErrorKind::Build, format!("unable to decode \"\": {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifest: &str) -> Result<Vec<String>, String> {
        let found = objects(manifest).map_err(|error| error.to_string())?;
        Ok(found
            .iter()
            .map(|object| format!("{}/{}", object.gvk().kind, object.name()))
            .collect())
    }

    #[test]
    fn documents_and_lists_are_objects() {
        let manifest = "---\n# Source: a/templates/a.yaml\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n# nothing\n---\n\
            apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n- {apiVersion: v1, kind: Pod, metadata: {generateName: c-}}\n";
        assert_eq!(names(manifest).unwrap(), ["Secret/a", "Pod/b", "Pod/"]);
        assert!(names("").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (manifest, problem) in [
            ("a: b: c", "error converting YAML to JSON"),
            ("- a", "it is no object"),
            ("kind: Pod\nmetadata: {name: a}", "'apiVersion' is missing"),
            ("apiVersion: v1\nmetadata: {name: a}", "'Kind' is missing"),
            ("apiVersion: v1\nkind: Pod", "name may not be empty"),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a, generateName: a-}",
                "cannot both be set",
            ),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [b]}",
                "metadata.labels is not a mapping",
            ),
        ] {
            let error = names(manifest).expect_err(manifest);
            assert!(error.contains(problem), "{manifest}: {error}");
        }
    }
}
