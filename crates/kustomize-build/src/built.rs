//! Result of a build.

use std::collections::{BTreeMap, BTreeSet};

use manifest::Object;

use crate::id::ResourceId;
use crate::schema::Schemas;

/// The objects of a build, in order, and what they depend on.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The objects, in the order in which kustomize prints them.
    pub objects: Vec<Object>,
    /// Every path that was looked at: files, folders, and what was looked for and not there. As long as none of them
    /// changes, the same build gives the same objects.
    pub reads: BTreeSet<String>,
    /// URLs of what was fetched: files and repositories. What they give is part of the answer too.
    pub fetched: BTreeSet<String>,
    /// Warnings of kustomize that do not stop the build: deprecated fields, one line each.
    pub warnings: Vec<String>,
}

/// Traces of a build, whether or not it succeeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) reads: BTreeSet<String>,
    pub(crate) fetched: BTreeSet<String>,
    pub(crate) warnings: Vec<String>,
}

impl Built {
    /// Writes the objects as `kustomize build` prints them.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        for object in &self.objects {
            if !text.is_empty() {
                text.push_str("---\n");
            }
            text.push_str(&to_yaml(object));
        }
        text
    }

    /// Writes each object for a file of its own, with the names that `kustomize build --output FOLDER` gives them: type
    /// and name, and in front the namespace when there is more than one. Of two objects with one name the last stays.
    pub fn to_files(&self) -> BTreeMap<String, String> {
        // A kustomization's own schemas are gone with the build; their types count as namespaced.
        let schemas = Schemas::default();
        let ids: Vec<ResourceId> = self.objects.iter().map(|object| id(&schemas, object)).collect();
        let namespaced = ids.iter().filter(|id| !id.cluster_scoped);
        let namespaces: BTreeSet<&str> = namespaced.map(ResourceId::effective_namespace).collect();
        let name = |id: &ResourceId| {
            let kind = [&id.gvk.group, &id.gvk.version, &id.gvk.kind, &id.name];
            let present = kind
                .into_iter()
                .map(String::as_str)
                .filter(|part| !part.is_empty());
            let namespace = (!id.cluster_scoped && namespaces.len() > 1).then(|| id.effective_namespace());
            let parts: Vec<&str> = namespace.into_iter().chain(present).collect();
            format!("{}.yaml", parts.join("_").to_lowercase())
        };
        ids.iter()
            .map(name)
            .zip(self.objects.iter().map(to_yaml))
            .collect()
    }
}

fn id(schemas: &Schemas, object: &Object) -> ResourceId {
    ResourceId::current(
        schemas,
        object.gvk(),
        object.name().to_owned(),
        object.namespace().to_owned(),
    )
}

fn to_yaml(object: &Object) -> String {
    // A build refuses what cannot be written; an object that was changed since is the caller's.
    manifest::yaml::write_mapping(object.value()).unwrap_or_default()
}
