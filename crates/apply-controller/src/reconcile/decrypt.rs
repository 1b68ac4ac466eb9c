//! Decryption on both sides of the build, as Flux does it: before it the files that the kustomizations name, after it the
//! objects that came out.
//!
//! Whoever reads an error, a status or a log may not be allowed to read what was encrypted. kustomize and the variables
//! quote what they choke on, so such words are told only where they come from what everybody can read in the artifact.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use artifact::client::RemoteTree;
use kustomize_build::{Fetch, FileSystem, MemoryFs, OverlayFs};
use manifest::Object;
use remote_base::Fetched;
use secret_mask::Mask;
use sops::flux::object;
use sops::flux::sources::{self, EncryptedFile};
use tokio::runtime::Handle;

use super::closure::Looks;
use super::remote::{Fetching, Remote};
use super::tree_fs::TreeFs;
use crate::builds::Built;
use crate::decryption::Keyring;
use crate::error::BuildError;

/// Builds with the encrypted files of generators and patches decrypted.
pub(super) async fn run(
    tree: &Arc<RemoteTree>,
    folder: &str,
    spec: &Arc<KustomizationSpec>,
    keys: &Keyring,
    remote: &Remote,
    afresh: bool,
) -> Result<Ran, BuildError> {
    let fetching = remote.begin(Handle::current(), afresh);
    let (files, looks) = match look(tree, folder, spec, fetching).await? {
        Looked::Done(ran) => return Ok(ran),
        Looked::Encrypted(files, looks) => (files, looks),
    };
    // Not on the thread that blocks: the end of the run's time ends it.
    let plain = sources::decrypt(&keys.decryptor, &files).await;
    let plain = plain.map_err(|error| BuildError::DecryptSources(error, keys.hint))?;
    let paths: Vec<String> = plain.keys().cloned().collect();
    let mut overlay = MemoryFs::default();
    for (path, content) in plain {
        overlay.insert(path, content);
    }
    let (runtime, tree) = (Handle::current(), Arc::clone(tree));
    let (folder, spec) = (folder.to_owned(), Arc::clone(spec));
    let fetching = remote.begin(Handle::current(), afresh);
    let ran = tokio::task::spawn_blocking(move || {
        let fs = TreeFs::new(&tree, runtime);
        let result = build(&fs, overlay, &folder, &spec, &fetching).map_err(|public| match public {
            Some(error) => BuildError::Content(error),
            None => BuildError::Withheld(paths),
        });
        Ran {
            result,
            looks: looks.and_then(|looks| Ok(joined(looks, fs.into_looks()?))),
            is_secret: true,
            fetched: fetching.into_fetched(),
        }
    });
    Ok(ran.await?)
}

/// The error is None when its words may come of what was decrypted.
fn build(
    fs: &dyn FileSystem,
    plain: MemoryFs,
    folder: &str,
    spec: &KustomizationSpec,
    fetch: &dyn Fetch,
) -> Result<Built, Option<flux_spec::build::Error>> {
    let overlay = OverlayFs::new(fs, plain);
    let error = match flux_spec::build::build_fetching(&overlay, folder, spec, fetch) {
        Ok(objects) => return Ok(Built::pack(objects)),
        Err(error) => error,
    };
    // If the files as they are in the artifact fail alike, the words are made of what everybody can read.
    match flux_spec::build::build_fetching(fs, folder, spec, fetch) {
        Err(public) if error_chain::chain(&public) == error_chain::chain(&error) => Err(Some(public)),
        _ => Err(None),
    }
}

fn joined(mut one: Looks, other: Looks) -> Looks {
    for (path, looks) in other {
        one.entry(path).or_default().extend(looks);
    }
    one
}

enum Looked {
    /// Nothing was encrypted: this is the build.
    Done(Ran),
    /// These have to be decrypted first.
    Encrypted(Vec<EncryptedFile>, Result<Looks, artifact::client::Error>),
}

async fn look(
    tree: &Arc<RemoteTree>,
    folder: &str,
    spec: &Arc<KustomizationSpec>,
    fetching: Fetching,
) -> Result<Looked, BuildError> {
    let (runtime, tree) = (Handle::current(), Arc::clone(tree));
    let (folder, spec) = (folder.to_owned(), Arc::clone(spec));
    let looked = tokio::task::spawn_blocking(move || {
        let fs = TreeFs::new(&tree, runtime);
        let result = match encrypted_files(&fs, &folder, &spec) {
            Ok(files) if !files.is_empty() => return Looked::Encrypted(files, fs.into_looks()),
            Ok(_) => flux_spec::build::build_fetching(&fs, &folder, &spec, &fetching)
                .map(Built::pack)
                .map_err(BuildError::from),
            Err(error) => Err(error),
        };
        Looked::Done(Ran {
            result,
            looks: fs.into_looks(),
            is_secret: false,
            fetched: fetching.into_fetched(),
        })
    });
    Ok(looked.await?)
}

/// As Flux, looks for them from the kustomization that the build will start from.
fn encrypted_files(
    fs: &dyn FileSystem,
    folder: &str,
    spec: &KustomizationSpec,
) -> Result<Vec<EncryptedFile>, BuildError> {
    let generated = flux_spec::build::generate(fs, folder, spec)?;
    let mut added = MemoryFs::default();
    added.insert(generated.path, generated.contents);
    sources::read(&OverlayFs::new(fs, added), folder).map_err(|error| BuildError::DecryptSources(error, ""))
}

/// Secret values of the objects of a run.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// The objects that were decrypted, as kustomize names them.
    objects: BTreeSet<String>,
    /// Texts that only the decryption brought.
    texts: BTreeSet<String>,
}

/// Shorter texts are not searched for: they would hit everywhere and say nothing.
const SHORTEST: usize = 3;

impl Hidden {
    /// Texts that were decrypted once.
    pub(super) fn of_texts(texts: BTreeSet<String>) -> Self {
        Self {
            objects: BTreeSet::new(),
            texts,
        }
    }

    /// The texts that only the decryption brought.
    pub(super) fn texts(&self) -> &BTreeSet<String> {
        &self.texts
    }

    /// Returns whether nothing was decrypted.
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Masks decrypted values in an error of the API server, which quotes what it rejects.
    pub(super) fn masked(&self, error: kube_apply::ApplyError) -> crate::error::Error {
        let text = error_chain::chain(&error);
        let mask = self.mask();
        if !mask.finds_in(&text) {
            return crate::error::Error::Apply(error);
        }
        crate::error::Error::ApplyMasked(mask.without_secrets(&text))
    }

    /// Masks decrypted values in a text that quotes objects.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        self.mask().without_secrets(text)
    }

    fn mask(&self) -> Mask {
        let mut mask = Mask::default();
        self.texts
            .iter()
            .for_each(|secret| mask.add_spellings(secret, SHORTEST));
        mask
    }
}

fn texts(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::String(text) if text.len() >= SHORTEST => {
            found.insert(text.clone());
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

fn texts_of(object: &Object) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    object.value().values().for_each(|value| texts(value, &mut found));
    found
}

/// Decrypts objects in place. Returns what is secret now.
pub(super) async fn objects(keys: &Keyring, objects: &mut [Object]) -> Result<Hidden, BuildError> {
    let mut hidden = Hidden::default();
    for object in objects
        .iter_mut()
        .filter(|object| object::is_encrypted(object.value()))
    {
        let name = flux_spec::build::resource_name(object);
        let failed = |problem: String| BuildError::DecryptObject {
            object: name.clone(),
            problem,
        };
        let decrypted = object::decrypt(&keys.decryptor, object.value()).await;
        let Some(decrypted) = decrypted.map_err(|error| failed(format!("{error}{}", keys.hint)))? else {
            continue;
        };
        let (id, gvk, public) = (object.id(), object.gvk(), texts_of(object));
        *object.value_mut() = decrypted;
        if (object.id(), object.gvk()) != (id, gvk) {
            let problem = "apiVersion, kind and metadata must be left in plain text";
            return Err(failed(problem.to_owned()));
        }
        hidden.objects.insert(name);
        hidden.texts.extend(texts_of(object).difference(&public).cloned());
    }
    Ok(hidden)
}

/// Keeps what was decrypted out of the words of an error about variables.
pub(super) fn without_secrets(error: flux_spec::build::Error, hidden: &Hidden) -> BuildError {
    match error {
        flux_spec::build::Error::PostBuild { object, .. } if hidden.objects.contains(&object) => {
            BuildError::WithheldPostBuild(object)
        }
        error => BuildError::Content(error),
    }
}

/// Result of a build, with its traces.
pub(super) struct Ran {
    /// The objects, or why there are none.
    pub(super) result: Result<Built, BuildError>,
    /// Paths that the build looked at, or why a part of the tree could not be fetched.
    pub(super) looks: Result<Looks, artifact::client::Error>,
    /// True if files were decrypted for it.
    pub(super) is_secret: bool,
    /// What was fetched from elsewhere; None if nothing was asked for.
    pub(super) fetched: Option<Fetched>,
}

#[cfg(test)]
mod tests {
    use api::kustomize::KustomizationSpec;
    use kustomize_build::NoFetch;

    use super::*;

    const GENERATOR: &str = "secretGenerator: [{name: s, envs: [a.env]}]\n";

    fn tree(files: &[(&str, &str)]) -> MemoryFs {
        let mut tree = MemoryFs::default();
        for (path, text) in files {
            tree.insert(*path, *text);
        }
        tree
    }

    fn failure(files: &[(&str, &str)], plain: &[(&str, &str)]) -> Option<String> {
        let error = build(
            &tree(files),
            tree(plain),
            "",
            &KustomizationSpec::default(),
            &NoFetch,
        )
        .unwrap_err();
        error.map(|error| error_chain::chain(&error))
    }

    #[test]
    fn an_error_that_everybody_could_see_is_told_and_no_other() {
        let files = [
            ("kustomization.yaml", GENERATOR),
            ("a.env", "A=ENC[AES256_GCM,data:x]\n"),
        ];
        assert_eq!(failure(&files, &[("a.env", "hunter2=1\nhunter2=2\n")]), None);

        let missing = format!("{GENERATOR}resources: [gone.yaml]\n");
        let files = [
            ("kustomization.yaml", missing.as_str()),
            ("a.env", "A=ENC[AES256_GCM,data:x]\n"),
        ];
        let told = failure(&files, &[("a.env", "A=hunter2\n")]).unwrap();
        assert!(told.contains("gone.yaml") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn decrypted_files_take_the_place_of_encrypted_ones() {
        let files = tree(&[
            ("kustomization.yaml", GENERATOR),
            ("a.env", "A=ENC[AES256_GCM,data:x]\n"),
        ]);
        let plain = tree(&[("a.env", "A=hunter2\n")]);
        let built = build(&files, plain, "", &KustomizationSpec::default(), &NoFetch).unwrap();
        assert_eq!(built.objects()[0].value()["data"]["A"], "aHVudGVyMg==");
    }

    #[test]
    fn what_variables_say_about_a_decrypted_object_is_withheld() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 'pass${word'}\n";
        let mut objects = manifest::read_objects(text, "s.yaml").unwrap();
        let post_build = serde_json::from_value(serde_json::json!({"substitute": {"a": "b"}})).unwrap();
        let error =
            flux_spec::build::substitute(&mut objects, &post_build, flux_spec::build::Mode::Strict, &|_| {
                None
            });
        let error = error.unwrap_err();
        let hidden = Hidden {
            objects: BTreeSet::from([flux_spec::build::resource_name(&objects[0])]),
            texts: BTreeSet::new(),
        };
        let told = without_secrets(error, &hidden).to_string();
        assert!(
            told.contains("'Secret.v1.[noGrp]/s'") && !told.contains("word"),
            "{told}"
        );
    }
}
