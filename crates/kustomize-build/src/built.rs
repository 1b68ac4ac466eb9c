//! What a build gives.

use std::collections::BTreeSet;

use manifest::Object;

/// The objects of a build, in order, and what they depend on.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The objects, in the order in which kustomize prints them.
    pub objects: Vec<Object>,
    /// Every path that was looked at: files, folders, and what was looked for and not there. As long as none of them
    /// changes, the same build gives the same objects.
    pub reads: BTreeSet<String>,
    /// What kustomize says on the way and still builds: deprecated fields, one line each.
    pub warnings: Vec<String>,
}

/// What a build leaves behind whether or not it comes to an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) reads: BTreeSet<String>,
    pub(crate) warnings: Vec<String>,
}

impl Built {
    /// Writes the objects as `kustomize build` prints them.
    pub fn to_yaml(&self) -> String {
        let documents = self.objects.iter().map(|object| {
            let value = serde_json::Value::Object(object.value().clone());
            // A build refuses what cannot be written; an object that was changed since is the caller's.
            manifest::yaml::write(&value).unwrap_or_default()
        });
        documents.collect::<Vec<_>>().join("---\n")
    }
}
