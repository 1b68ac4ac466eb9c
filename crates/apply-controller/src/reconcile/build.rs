//! From the artifact's tree to objects: a build, or the result of one that would find the same files, then the variables.

use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use artifact::Digest;
use artifact::client::RemoteTree;
use manifest::Object;
use tokio::runtime::Handle;

use super::closure::{Closure, Looks};
use super::tree_fs::TreeFs;
use super::variables::Variables;
use super::{Plan, Trigger, fetch_error};
use crate::builds::{Build, Builds, Built, Key};
use crate::error::{BuildError, Error};

/// Returns the build of a folder of the tree: one that is kept, or a new one.
pub async fn build(
    builds: &Builds,
    tree: &Arc<RemoteTree>,
    folder: &str,
    spec: &Arc<KustomizationSpec>,
    plan: &Plan,
) -> Result<Arc<Build>, Error> {
    let key = Key::of(folder, spec);
    // Who asks for a reconcile wants nothing that is remembered.
    if plan.trigger != Trigger::Requested {
        let kept = builds.find(&key, &**tree).await;
        if let Some(kept) = kept.map_err(|source| fetch_error(plan, source))? {
            tracing::debug!(revision = plan.inputs.revision, folder, "build is known");
            return Ok(kept);
        }
    }
    tree.prefetch(folder)
        .await
        .map_err(|source| fetch_error(plan, source))?;
    let (result, looks) = run(Arc::clone(tree), folder.to_owned(), Arc::clone(spec))
        .await
        .map_err(|error| Error::Build(Arc::new(error)))?;
    tracing::debug!(
        revision = plan.inputs.revision,
        folder,
        succeeded = result.is_ok(),
        "built"
    );
    let Some(looks) = looks else {
        // A part of the tree could not be fetched. What came of it says nothing about the content: it is not kept.
        return Err(Error::Build(Arc::new(result.err().unwrap_or(BuildError::Unread))));
    };
    let result = result.map(Arc::new).map_err(Arc::new);
    let closure = Closure::of(&**tree, &looks)
        .await
        .map_err(|source| fetch_error(plan, source))?;
    let closure = Arc::new(closure);
    let build = Arc::new(Build { key, closure, result });
    builds.keep(Arc::clone(&build));
    Ok(build)
}

type Ran = (Result<Built, BuildError>, Option<Looks>);

/// Builds on a thread that may block; tells what was looked at, whatever came of it.
async fn run(tree: Arc<RemoteTree>, folder: String, spec: Arc<KustomizationSpec>) -> Result<Ran, BuildError> {
    let runtime = Handle::current();
    let ran = tokio::task::spawn_blocking(move || {
        let fs = TreeFs::new(&tree, runtime);
        let built = flux_build::build(&fs, &folder, &spec).map(Built::pack);
        (built.map_err(BuildError::from), fs.into_looks())
    });
    Ok(ran.await?)
}

/// What is applied.
#[derive(Debug)]
pub struct Output {
    /// The objects.
    pub objects: Vec<Object>,
    /// Digest of them as YAML, as in the history.
    pub checksum: String,
}

/// Takes a build's objects, with their variables substituted, if they may be applied.
pub async fn output(
    built: Arc<Built>,
    spec: &KustomizationSpec,
    variables: Variables,
    strict: bool,
) -> Result<Output, BuildError> {
    let post_build = spec.post_build.clone();
    let done = tokio::task::spawn_blocking(move || {
        let mut objects = built.objects();
        let mut checksum = built.checksum.clone();
        if let Some(post_build) = post_build {
            let mode = if strict {
                flux_build::Mode::Strict
            } else {
                flux_build::Mode::Lenient
            };
            flux_build::substitute(&mut objects, &post_build, mode, &|reference| {
                variables.of(reference)
            })?;
            checksum = Digest::of(flux_build::to_yaml(&objects).as_bytes()).to_string();
        }
        flux_build::refuse_encrypted(&objects)?;
        Ok::<_, flux_build::Error>(Output { objects, checksum })
    });
    Ok(done.await??)
}
