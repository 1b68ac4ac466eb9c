//! Which files an automation looks at, and where it sets images in them: its spec and its annotations. Pure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::image::ImageUpdateAutomation;
use git_writer::files::cleaned;
use kube::ResourceExt as _;
use yaml_setters::Unmarked;

/// Annotation with the places where images are set without a marker: `containers`, `kustomizations`, `values`, by commas.
pub(crate) const UNMARKED: &str = "windlass.dev/unmarked-images";
/// Annotation with more paths than `spec.update.path`, separated by commas.
pub(crate) const PATHS: &str = "windlass.dev/update-paths";

/// Paths of one automation.
const MAX_PATHS: usize = 50;

/// An annotation cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the annotation {annotation} {problem}")]
pub(crate) struct Error {
    annotation: &'static str,
    problem: String,
}

/// Where an automation sets values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Files and folders; none is the whole repository.
    pub(super) paths: Vec<String>,
    /// Where no marker is needed, without images.
    pub(super) unmarked: Unmarked,
}

impl Scope {
    /// Returns whether all of it is in the spec, whose changes are seen by its generation.
    fn is_plain(&self) -> bool {
        self.unmarked == Unmarked::default() && self.paths.len() <= 1
    }

    /// Reads the object.
    pub(super) fn read(object: &ImageUpdateAutomation) -> Result<Self, Error> {
        let words = |name: &str| -> Vec<&str> {
            let text = object
                .annotations()
                .get(name)
                .map(String::as_str)
                .unwrap_or_default();
            let words = text.split(',').map(str::trim);
            words.filter(|word| !word.is_empty()).collect()
        };
        let mut unmarked = Unmarked::default();
        for word in words(UNMARKED) {
            match word {
                "containers" => unmarked.containers = true,
                "kustomizations" => unmarked.kustomizations = true,
                "values" => unmarked.values = true,
                other => {
                    let shown: String = other.chars().filter(|c| !c.is_control()).take(60).collect();
                    return Err(Error {
                        annotation: UNMARKED,
                        problem: format!(
                            "has '{shown}', which is not one of containers, kustomizations, values"
                        ),
                    });
                }
            }
        }
        let own = object
            .spec
            .update
            .as_ref()
            .and_then(|update| update.path.as_deref());
        let own = own.filter(|path| !path.is_empty());
        let paths: Vec<String> = own.into_iter().chain(words(PATHS)).map(str::to_owned).collect();
        if paths.len() > MAX_PATHS {
            return Err(Error {
                annotation: PATHS,
                problem: format!("has more than {MAX_PATHS} paths"),
            });
        }
        Ok(Self { paths, unmarked })
    }

    /// The folders and files that are looked at; none is the whole repository.
    pub(super) fn part(&self) -> Vec<String> {
        let part: Vec<_> = self.paths.iter().map(|path| cleaned(path)).collect();
        match part.iter().any(String::is_empty) {
            true => Vec::new(),
            false => part,
        }
    }
}

/// The scopes of the last runs, by the UID of the automation: a change of annotations makes no new generation. Clones are
/// handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Scopes(Arc<Mutex<HashMap<String, Scope>>>);

impl Scopes {
    /// Returns whether the last run of an automation looked at the same. One that is unknown did, if its scope is plain.
    pub(super) fn is_known(&self, uid: Option<&str>, scope: &Scope) -> bool {
        let scopes = self.locked();
        match scopes.get(uid.unwrap_or_default()) {
            Some(known) => known == scope,
            None => scope.is_plain(),
        }
    }

    /// Remembers what a run looked at.
    pub(super) fn remember(&self, uid: Option<&str>, scope: Scope) {
        let Some(uid) = uid else { return };
        self.locked().insert(uid.to_owned(), scope);
    }

    /// Forgets an automation that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.locked().remove(uid);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Scope>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(annotations: &Value, path: Option<&str>) -> Result<Scope, String> {
        let object = json!({
            "metadata": {"name": "app", "namespace": "shop", "annotations": annotations},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h",
                "update": {"strategy": "Setters", "path": path}},
        });
        Scope::read(&serde_json::from_value(object).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn without_annotations_it_is_as_in_flux() {
        assert_eq!(read(&json!({}), None), Ok(Scope::default()));
        let scope = read(&json!({}), Some("./clusters")).unwrap();
        assert_eq!(scope.paths, ["./clusters"]);
        assert_eq!(read(&json!({}), Some("")), Ok(Scope::default()));
    }

    #[test]
    fn annotations_add_paths_and_places() {
        let scope = read(
            &json!({PATHS: "a, b/c.yaml,", UNMARKED: "values, containers"}),
            Some("own"),
        );
        let scope = scope.unwrap();
        assert_eq!(scope.paths, ["own", "a", "b/c.yaml"]);
        let Unmarked {
            containers,
            kustomizations,
            values,
            ..
        } = scope.unmarked;
        assert!(containers && values && !kustomizations);
        let error = read(&json!({UNMARKED: "all"}), None).unwrap_err();
        assert!(error.contains("'all', which is not one of containers"), "{error}");
        let many = vec!["a"; MAX_PATHS + 1].join(",");
        assert!(
            read(&json!({PATHS: many}), None)
                .unwrap_err()
                .contains("more than 50")
        );
    }

    #[test]
    fn a_change_of_annotations_is_seen() {
        let scopes = Scopes::default();
        let plain = read(&json!({}), Some("a")).unwrap();
        let more = read(&json!({PATHS: "b"}), Some("a")).unwrap();
        assert!(scopes.is_known(Some("1"), &plain));
        assert!(!scopes.is_known(Some("1"), &more), "after a restart, too");
        scopes.remember(Some("1"), more.clone());
        assert!(scopes.is_known(Some("1"), &more));
        assert!(
            !scopes.is_known(Some("1"), &plain),
            "the annotation was taken away"
        );
        scopes.forget("1");
        assert!(!scopes.is_known(Some("1"), &more));
    }
}
