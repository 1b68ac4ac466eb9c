//! From the artifact's tree to objects: a build, or the result of one that would find the same files, then decryption and
//! the variables.

use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use artifact::Digest;
use artifact::client::{ArtifactRef, RemoteTree};
use manifest::Object;
use tokio::runtime::Handle;

use super::closure::Closure;
use super::decrypt::{self, Hidden, Ran};
use super::remote::{Fetching, Remote};
use super::source_tree::fetch_error;
use super::tree_fs::TreeFs;
use super::variables::Variables;
use crate::builds::{Build, Builds, Built, Key};
use crate::decryption::Keyring;
use crate::error::{BuildError, Error};

/// Whether a build that is kept will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It will, if it would find the same files.
    MayBeKept,
    /// It will not: who asks for a reconcile wants nothing that is remembered.
    New,
}

/// What a build may make use of beside the tree.
pub struct Means<'a> {
    /// Keys for what is encrypted.
    pub keys: Option<&'a Keyring>,
    /// What was built before.
    pub freshness: Freshness,
    /// What is elsewhere.
    pub remote: Remote,
}

/// Returns the build of a folder of the tree: one that is kept, or a new one.
///
/// A build for which files were decrypted is not kept, nor shared: its content is for those only who have the keys. Nor is one that
/// fetched something from elsewhere.
pub async fn build(
    builds: &Builds,
    tree: &Arc<RemoteTree>,
    folder: &str,
    spec: &Arc<KustomizationSpec>,
    artifact: &ArtifactRef,
    means: Means<'_>,
) -> Result<Arc<Build>, Error> {
    let Means {
        keys,
        freshness,
        remote,
    } = means;
    let key = Key::new(folder, spec);
    let afresh = freshness == Freshness::New;
    if !afresh {
        let kept = builds.find(&key, &**tree).await;
        if let Some(kept) = kept.map_err(|source| fetch_error(artifact, source))? {
            tracing::debug!(revision = artifact.revision, folder, "build is known");
            return Ok(kept);
        }
    }
    tree.prefetch(folder)
        .await
        .map_err(|source| fetch_error(artifact, source))?;
    let Ran {
        result,
        looks,
        is_secret,
        fetched,
    } = match keys {
        Some(keys) => decrypt::run(tree, folder, spec, keys, &remote, afresh).await,
        None => {
            let fetching = remote.begin(Handle::current(), afresh);
            run(Arc::clone(tree), folder.to_owned(), Arc::clone(spec), fetching).await
        }
    }
    .map_err(|error| Error::Build(Arc::new(error)))?;
    tracing::debug!(
        revision = artifact.revision,
        folder,
        succeeded = result.is_ok(),
        "built"
    );
    // Where a part of the tree could not be fetched, what came of it says nothing about the content: it is not kept.
    let looks = looks.map_err(|source| fetch_error(artifact, source))?;
    let result = result.map(Arc::new).map_err(Arc::new);
    let closure = Closure::new(&**tree, &looks)
        .await
        .map_err(|source| fetch_error(artifact, source))?;
    let closure = Arc::new(closure.opened(fetched.is_some()));
    let is_kept = !is_secret && !closure.is_open();
    let build = Arc::new(Build {
        key,
        closure,
        result,
        fetched: fetched.unwrap_or_default(),
    });
    if is_kept {
        builds.keep(Arc::clone(&build));
    }
    Ok(build)
}

/// Builds on a thread that may block; tells what was looked at, whatever came of it.
async fn run(
    tree: Arc<RemoteTree>,
    folder: String,
    spec: Arc<KustomizationSpec>,
    fetching: Fetching,
) -> Result<Ran, BuildError> {
    let runtime = Handle::current();
    let ran = tokio::task::spawn_blocking(move || {
        let fs = TreeFs::new(&tree, runtime);
        let built = flux_spec::build::build_fetching(&fs, &folder, &spec, &fetching).map(Built::pack);
        Ran {
            result: built.map_err(BuildError::from),
            looks: fs.into_looks(),
            is_secret: false,
            fetched: fetching.into_fetched(),
        }
    });
    Ok(ran.await?)
}

/// Objects to apply.
#[derive(Debug)]
pub struct Output {
    /// The objects.
    pub objects: Vec<Object>,
    /// Digest of them as YAML, as in the history.
    pub checksum: String,
    /// Values that must be masked.
    pub(crate) hidden: Hidden,
}

/// Returns the digest of objects as YAML, as in the history.
pub fn checksum(objects: &[Object]) -> String {
    Digest::from_content(flux_spec::build::to_yaml(objects).as_bytes()).to_string()
}

/// Takes a build's objects, decrypted and with their variables substituted, if they may be applied.
pub async fn output(
    built: Arc<Built>,
    spec: &KustomizationSpec,
    variables: Variables,
    strict: bool,
    keys: Option<&Keyring>,
) -> Result<Output, BuildError> {
    let checksum = built.checksum.clone();
    let mut objects = tokio::task::spawn_blocking(move || built.objects()).await?;
    let hidden = match keys {
        Some(keys) => decrypt::objects(keys, &mut objects).await?,
        None => Hidden::default(),
    };
    let post_build = spec.post_build.clone();
    let done = tokio::task::spawn_blocking(move || {
        let has_changed = post_build.is_some() || !hidden.is_empty();
        if let Some(post_build) = post_build {
            let mode = if strict {
                flux_spec::build::Mode::Strict
            } else {
                flux_spec::build::Mode::Lenient
            };
            let substituted = flux_spec::build::substitute(&mut objects, &post_build, mode, &|reference| {
                variables.data(reference)
            });
            substituted.map_err(|error| decrypt::without_secrets(error, &hidden))?;
        }
        flux_spec::build::refuse_encrypted(&objects)?;
        let checksum = if has_changed {
            self::checksum(&objects)
        } else {
            checksum
        };
        Ok(Output {
            objects,
            checksum,
            hidden,
        })
    });
    done.await?
}
