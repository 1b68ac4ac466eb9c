//! How a run ended.

use api::kustomize::ResourceInventory;
use kube_apply::Inventory;
use manifest::ObjectId;

use super::status::Health;
use crate::error::Error;
use crate::memory::Run;

/// How the steps ended, if none failed.
pub(super) enum Ended {
    Done {
        run: Box<Run>,
        health: Health,
    },
    Waiting,
    /// What was built is new, and a Freeze is in force.
    Frozen,
}

/// A step that failed, and what had been done before it.
pub(crate) struct Failed {
    /// The error.
    pub error: Error,
    /// Digest of the built objects, if they were built.
    pub checksum: Option<String>,
    /// Objects that are managed now, if that changed.
    pub inventory: Option<ResourceInventory>,
    /// Objects that could not be applied because a namespace or a definition is being deleted.
    pub cut_off: CutOff,
}

/// Objects whose namespace or definition is being deleted.
#[derive(Default)]
pub(crate) struct CutOff {
    /// The objects.
    pub objects: Vec<ObjectId>,
    /// All that the run would apply.
    pub own: Inventory,
}

impl Failed {
    pub(super) fn before_build(error: Error) -> Self {
        Self {
            error,
            checksum: None,
            inventory: None,
            cut_off: CutOff::default(),
        }
    }
}
