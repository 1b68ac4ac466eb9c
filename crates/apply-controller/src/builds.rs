//! Results of builds, kept by what they were made of: the folder, what of the spec goes into a build, and the closure of
//! files that it read. Whoever would find the same files has the same result, whichever Kustomization, source or
//! revision it comes from; a build that failed fails again.
//!
//! Nothing here must survive a restart: what is forgotten is built again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::kustomize::KustomizationSpec;
use artifact::Digest;
use artifact::client::Error;
use manifest::{Object, Origin};
use remote_base::Fetched;

use crate::error::BuildError;
use crate::reconcile::closure::{Closure, Content};

/// How many bytes of manifests (and of closures) are kept. What delivers a cluster is rarely larger than this in all.
const CAPACITY: usize = 4 << 20;

/// Result of a build, before variables are substituted.
#[derive(Debug)]
pub struct Built {
    /// The objects as JSON: a fraction of what they take when they are unpacked.
    packed: Vec<(Box<str>, Option<Origin>)>,
    /// Digest of kustomize's output.
    pub checksum: String,
}

impl Built {
    /// Packs the objects that a build gave.
    pub fn pack(objects: Vec<Object>) -> Self {
        let checksum = Digest::from_content(flux_spec::build::to_yaml(&objects).as_bytes()).to_string();
        let pack = |object: Object| {
            let origin = object.origin().cloned();
            (object.into_value().to_string().into_boxed_str(), origin)
        };
        Self {
            packed: objects.into_iter().map(pack).collect(),
            checksum,
        }
    }

    /// Unpacks the objects, in the order of kustomize's output.
    pub fn objects(&self) -> Vec<Object> {
        let unpack = |(json, origin): &(Box<str>, Option<Origin>)| {
            let value = serde_json::from_str(json).expect("it was written as JSON of an object");
            Object::new(value, origin.clone())
        };
        self.packed.iter().map(unpack).collect()
    }

    fn weight(&self) -> usize {
        self.packed.iter().map(|(json, _)| json.len()).sum()
    }
}

/// A build that was carried through, with or without success.
#[derive(Debug)]
pub struct Build {
    /// Inputs of the build other than files.
    pub key: Key,
    /// Which files it is made of.
    pub closure: Arc<Closure>,
    /// Result of the build.
    pub result: Result<Arc<Built>, Arc<BuildError>>,
    /// What was fetched for it from elsewhere. Such a build is not kept.
    pub fetched: Fetched,
}

/// Digest of the inputs of a build other than files.
#[derive(Debug, Clone, PartialEq)]
pub struct Key(Digest);

impl Key {
    /// Computes the key of a build of `folder` with what the spec says about builds. One for which nothing had to be
    /// decrypted is the same whatever the keys are, but another one than without decryption.
    pub fn new(folder: &str, spec: &KustomizationSpec) -> Self {
        let ingredients = serde_json::json!([
            folder,
            spec.target_namespace,
            spec.name_prefix,
            spec.name_suffix,
            spec.patches,
            spec.components,
            spec.ignore_missing_components,
            spec.images,
            spec.build_metadata,
            spec.decryption.is_some(),
        ]);
        Self(Digest::from_content(ingredients.to_string().as_bytes()))
    }
}

/// The results that are kept, those used last at the end.
#[derive(Debug, Default)]
pub struct Builds {
    kept: Mutex<Vec<Arc<Build>>>,
}

impl Builds {
    /// Finds the build of these ingredients from a tree that holds the same files.
    pub async fn find(&self, key: &Key, tree: &impl Content) -> Result<Option<Arc<Build>>, Error> {
        let candidates: Vec<_> = self
            .lock()
            .iter()
            .filter(|build| build.key == *key)
            .cloned()
            .collect();
        for candidate in candidates.into_iter().rev() {
            if candidate.closure.holds_in(tree).await? {
                self.keep(Arc::clone(&candidate));
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// Keeps a build, in place of one of the same key and files, and drops those that were not used for longest.
    pub fn keep(&self, build: Arc<Build>) {
        let mut kept = self.lock();
        kept.retain(|other| other.key != build.key || other.closure != build.closure);
        kept.push(build);
        let mut weight: usize = kept.iter().map(|build| build.weight()).sum();
        let superfluous = kept.iter().position(|build| {
            let fits = weight <= CAPACITY;
            weight -= build.weight();
            fits
        });
        let superfluous = superfluous.unwrap_or(kept.len());
        kept.drain(..superfluous);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Build>>> {
        // A panic while the lock is held leaves a list of builds, each of which is whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Build {
    fn weight(&self) -> usize {
        let result = match &self.result {
            Ok(built) => built.weight(),
            Err(error) => error.to_string().len(),
        };
        result + self.closure.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(key: &str, bytes: usize) -> Arc<Build> {
        let text = "x".repeat(bytes).into_boxed_str();
        let result = Ok(Arc::new(Built {
            packed: vec![(text, None)],
            checksum: key.to_owned(),
        }));
        Arc::new(Build {
            key: Key(Digest::from_content(key.as_bytes())),
            closure: Arc::default(),
            result,
            fetched: Fetched::new(),
        })
    }

    fn kept(builds: &Builds) -> Vec<String> {
        let checksum = |build: &Arc<Build>| build.result.as_ref().unwrap().checksum.clone();
        builds.lock().iter().map(checksum).collect()
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let builds = Builds::default();
        for name in ["a", "b", "c", "a"] {
            builds.keep(build(name, CAPACITY / 3));
        }
        assert_eq!(kept(&builds), ["b", "c", "a"]);
        builds.keep(build("d", CAPACITY / 2));
        assert_eq!(kept(&builds), ["a", "d"]);
        builds.keep(build("too large", CAPACITY + 1));
        assert_eq!(kept(&builds), [""; 0]);
    }

    #[test]
    fn objects_come_out_as_they_went_in() {
        let text = "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {big: 18446744073709551615, float: 0.1, text: é}\n";
        let objects = manifest::read_objects(text, "a.yaml").unwrap();
        assert_eq!(Built::pack(objects.clone()).objects(), objects);
    }

    #[test]
    fn what_does_not_go_into_a_build_does_not_go_into_its_key() {
        let spec = KustomizationSpec::default();
        let key = Key::new("app", &spec);
        let with = |change: &dyn Fn(&mut KustomizationSpec)| {
            let mut spec = spec.clone();
            change(&mut spec);
            Key::new("app", &spec)
        };
        assert_eq!(with(&|spec| spec.prune = true), key);
        assert_eq!(with(&|spec| spec.post_build = Some(Default::default())), key);
        assert_ne!(with(&|spec| spec.name_prefix = Some("x".into())), key);
        assert_ne!(with(&|spec| spec.decryption = Some(Default::default())), key);
        assert_ne!(Key::new("other", &spec), key);
    }
}
