//! From a tree to objects: the kustomization (own or generated), and kustomize.

use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::kustomize::KustomizationSpec;
use kustomize_build::{
    Budget, DefaultOrder, Fetch, FileSystem, LoadRestrictions, MemoryFs, NoFetch, Options, OverlayFs, Version,
};
use manifest::Object;
use serde_json::Value;

use crate::build::error::Error;
use crate::build::generate::{Generated, generate};

/// The annotation with which an encrypted Secret is wanted as it is.
const DECRYPT: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// Builds a folder of a file system with what the spec adds, in the order that kustomize gives.
///
/// Variables are not substituted here, and nothing is decrypted.
pub fn build(fs: &dyn FileSystem, folder: &str, spec: &KustomizationSpec) -> Result<Vec<Object>, Error> {
    build_fetching(fs, folder, spec, &NoFetch)
}

/// Builds as [`build`] does, and gets remote resources from `fetch`.
pub fn build_fetching(
    fs: &dyn FileSystem,
    folder: &str,
    spec: &KustomizationSpec,
    fetch: &dyn Fetch,
) -> Result<Vec<Object>, Error> {
    let Generated {
        path,
        contents,
        manifests,
    } = generate(fs, folder, spec)?;
    let mut generated = MemoryFs::default();
    generated.insert(&path, contents);
    let overlay = OverlayFs::new(fs, generated);
    let _turn = GivesTurnBack;
    let built = match kustomize_build::build_fetching(&overlay, folder, &options(), fetch) {
        Ok(built) => built,
        Err(error) => return Err(all_errors(fs, &manifests).unwrap_or_else(|| error.into())),
    };
    match built.objects.iter().find_map(incomplete) {
        Some(error) => Err(error),
        None => Ok(built.objects),
    }
}

/// Memory limit of a build. The largest of 800 public kustomizations takes 2 MB.
const BUDGET: Budget = Budget {
    bytes: 96 << 20,
    large: Some((24 << 20, wait_for_turn)),
};

/// Held by the large build of this process, of which there is at most one.
static LARGE: Mutex<()> = Mutex::new(());

thread_local! {
    /// Guard of [`LARGE`], if the build on this thread is large.
    static TURN: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

fn wait_for_turn() {
    TURN.with_borrow_mut(|turn| {
        turn.get_or_insert_with(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
    });
}

/// Releases [`LARGE`] when it is dropped, whether the build succeeds, fails or unwinds.
struct GivesTurnBack;

impl Drop for GivesTurnBack {
    fn drop(&mut self) {
        TURN.with_borrow_mut(Option::take);
    }
}

/// How Flux runs kustomize.
fn options() -> Options {
    Options {
        // Files may come from anywhere in the artifact; the artifact is the fence.
        load_restrictions: LoadRestrictions::None,
        // Flux names no order, and the library then keeps that of the files; only the command sorts.
        default_order: DefaultOrder::Fifo,
        // The library does not find its version in a program that is not kustomize.
        version: Version("(devel)".to_owned()),
        budget: Some(BUDGET),
        ..Options::default()
    }
}

/// Writes objects as kustomize prints them: the bytes whose digest the history of a Kustomization holds.
pub fn to_yaml(objects: &[Object]) -> String {
    let documents = objects.iter().map(|object| {
        // A build refuses what cannot be written.
        manifest::yaml::write(&Value::Object(object.value().clone())).unwrap_or_default()
    });
    documents.collect::<Vec<_>>().join("---\n")
}

/// Refuses encrypted Secrets, which would be applied as they are: their users would read ciphertext.
pub fn refuse_encrypted(objects: &[Object]) -> Result<(), Error> {
    let encrypted = |object: &&Object| {
        let gvk = object.gvk();
        let wanted = object.annotation(DECRYPT);
        gvk.kind == "Secret"
            && gvk.group.is_empty()
            && object.value().contains_key("sops")
            && !wanted.is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
    };
    match objects.iter().find(encrypted) {
        Some(object) => Err(Error::Encrypted {
            object: object.id().to_string(),
            origin: origin(object),
        }),
        None => Ok(()),
    }
}

/// kustomize stops at the first manifest that it cannot read. A folder of plain YAML is read again here, so that all
/// mistakes of a revision are told at once. None if each file can be read by itself.
fn all_errors(fs: &dyn FileSystem, manifests: &[String]) -> Option<Error> {
    let errors: Vec<String> = manifests.iter().filter_map(|path| error_in(fs, path)).collect();
    (!errors.is_empty()).then_some(Error::Manifests(errors))
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
        Err(error) => Some(match error.problem.line {
            0 => format!("{path}: {}", error.problem),
            line => format!("{path}:{line}: {}", error.problem),
        }),
    }
}

/// Finds out whether an object lacks what each has to have.
pub(crate) fn incomplete(object: &Object) -> Option<Error> {
    object.missing_field().map(|field| Error::Incomplete {
        origin: origin(object),
        field,
    })
}

fn origin(object: &Object) -> String {
    object
        .origin()
        .map_or_else(|| "generated object".to_owned(), ToString::to_string)
}
