//! From the artifact's tree to objects: the kustomization (own or generated), and kustomize.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use artifact::Digest;
use artifact::client::RemoteTree;
use kustomize_build::{FileSystem, LoadRestrictions, MemoryFs, Options, OverlayFs};
use manifest::Object;
use tokio::runtime::Handle;

use super::generate::{self, Generated};
use super::tree_fs::TreeFs;
use crate::error::BuildError;

/// What a build made.
#[derive(Debug)]
pub struct Built {
    /// The objects, in the order of kustomize's output.
    pub objects: Vec<Object>,
    /// Every path that the answer depends on.
    pub reads: BTreeSet<String>,
    /// Digest of kustomize's output, as in the history.
    pub checksum: String,
}

/// Builds a folder of the tree, on a thread that may block.
pub async fn build(
    tree: Arc<RemoteTree>,
    folder: String,
    spec: Arc<KustomizationSpec>,
) -> Result<Built, BuildError> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let fs = TreeFs::new(&tree, runtime);
        let built = build_from(&fs, &folder, &spec)?;
        Ok(Built {
            reads: fs.into_reads(),
            ..built
        })
    })
    .await?
}

/// Builds a folder of a file system; `reads` of the answer is empty.
fn build_from(fs: &dyn FileSystem, folder: &str, spec: &KustomizationSpec) -> Result<Built, BuildError> {
    let Generated {
        path,
        contents,
        manifests,
    } = generate::generate(fs, folder, spec)?;
    let mut generated = MemoryFs::default();
    generated.insert(&path, contents);
    let overlay = OverlayFs::new(fs, generated);
    // Files may come from anywhere in the artifact, as in Flux; the artifact is the fence.
    let options = Options {
        load_restrictions: LoadRestrictions::None,
        ..Options::default()
    };
    let built = match kustomize_build::build(&overlay, folder, &options) {
        Ok(built) => built,
        Err(error) => {
            return Err(all_errors(fs, &manifests).map_or_else(|| error.into(), BuildError::Manifests));
        }
    };
    let checksum = Digest::of(built.to_yaml().as_bytes()).to_string();
    built.objects.iter().try_for_each(check)?;
    Ok(Built {
        objects: built.objects,
        reads: BTreeSet::new(),
        checksum,
    })
}

/// kustomize stops at the first manifest that it cannot read. A folder of plain YAML is read again here, so that all
/// mistakes of a revision are told at once. None if each file can be read by itself.
fn all_errors(fs: &dyn FileSystem, manifests: &[String]) -> Option<Vec<String>> {
    let errors: Vec<String> = manifests.iter().filter_map(|path| error_in(fs, path)).collect();
    (!errors.is_empty()).then_some(errors)
}

fn error_in(fs: &dyn FileSystem, path: &str) -> Option<String> {
    let bytes = fs.read(path).ok()?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => return Some(format!("{path}: {error}")),
    };
    match manifest::read_objects(text, path) {
        Ok(objects) => objects
            .iter()
            .find_map(|object| incomplete(object).map(|e| e.to_string())),
        Err(error) => Some(error.to_string()),
    }
}

fn check(object: &Object) -> Result<(), BuildError> {
    if let Some(error) = incomplete(object) {
        return Err(error);
    }
    // An encrypted Secret has a `sops` mapping beside its data; applied as it is, its users would read ciphertext.
    if object.gvk().kind == "Secret" && object.value().contains_key("sops") {
        return Err(BuildError::Encrypted {
            object: object.id().to_string(),
            origin: origin(object),
        });
    }
    Ok(())
}

fn incomplete(object: &Object) -> Option<BuildError> {
    object.missing_field().map(|field| BuildError::Incomplete {
        origin: origin(object),
        field,
    })
}

fn origin(object: &Object) -> String {
    object
        .origin()
        .map_or_else(|| "generated object".to_owned(), ToString::to_string)
}
