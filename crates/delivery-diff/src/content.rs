//! The files that something is built from.

use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};
use manifest::ObjectId;
use serde_json::Value;

/// Files in the place of what a source of the cluster has.
pub trait Content: FileSystem + Send + Sync {
    /// Returns whether they stand for a source.
    fn stands_for(&self, source: &ObjectId) -> bool;

    /// Returns whether a Kustomization or HelmRelease may be built from others of these files than those that the source has now. If
    /// not, and if it stays as it is, it is passed over.
    fn reaches(&self, _object: &Value) -> bool {
        true
    }

    /// A word for them: `checkout`, `artifact`.
    fn word(&self) -> &'static str;

    /// Where they are, for people.
    fn place(&self) -> String;
}

/// No files: everything is as the cluster's sources have it.
pub struct Nothing;

impl FileSystem for Nothing {
    fn read(&self, _path: &str) -> Result<Vec<u8>, FsError> {
        Err(FsError::NotFound)
    }

    fn kind(&self, _path: &str) -> Result<Option<FileKind>, FsError> {
        Ok(None)
    }

    fn list(&self, _path: &str) -> Result<Vec<DirEntry>, FsError> {
        Err(FsError::NotFound)
    }
}

impl Content for Nothing {
    fn stands_for(&self, _source: &ObjectId) -> bool {
        false
    }

    fn word(&self) -> &'static str {
        "content"
    }

    fn place(&self) -> String {
        String::new()
    }
}
