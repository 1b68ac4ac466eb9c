//! The files that something is built from.

use kustomize_build::FileSystem;
use manifest::ObjectId;

/// Files in the place of what a source of the cluster has.
pub trait Content: FileSystem + Send + Sync {
    /// Returns whether they stand for a source.
    fn stands_for(&self, source: &ObjectId) -> bool;

    /// A word for them: `checkout`, `artifact`.
    fn word(&self) -> &'static str;

    /// Where they are, for people.
    fn place(&self) -> String;
}
