//! The tree of the source's artifact, and the folder in it that a Kustomization is built from.

use api::kustomize::Kustomization;
use artifact::client::{ArtifactRef, RemoteTree};
use artifact::tree::EntryKind;

use crate::context::Context;
use crate::error::Error;

/// Opens the tree of an artifact.
pub(super) async fn fetch(context: &Context, artifact: &ArtifactRef) -> Result<RemoteTree, Error> {
    let opened = context.artifacts.open(artifact).await;
    opened.map_err(|source| fetch_error(artifact, source))
}

/// A part of the tree that could not be had.
pub(super) fn fetch_error(artifact: &ArtifactRef, source: artifact::client::Error) -> Error {
    Error::FetchArtifact {
        revision: artifact.revision.clone(),
        source,
    }
}

/// Finds `spec.path` in the tree.
pub(super) async fn folder(
    tree: &RemoteTree,
    object: &Kustomization,
    artifact: &ArtifactRef,
) -> Result<String, Error> {
    let path = object.spec.path.as_deref().unwrap_or_default();
    let folder = flux_spec::build::path::clamp(path);
    let found = match folder.as_str() {
        "" => true,
        folder => {
            let entry = tree
                .entry(folder)
                .await
                .map_err(|source| fetch_error(artifact, source))?;
            entry.is_some_and(|entry| entry.kind == EntryKind::Directory)
        }
    };
    if !found {
        return Err(Error::PathNotFound {
            path: path.to_owned(),
            revision: artifact.revision.clone(),
        });
    }
    Ok(folder)
}
