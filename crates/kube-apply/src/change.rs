//! Changes that an apply made.

use std::fmt;

use manifest::{GroupVersionKind, ObjectId};

use crate::changes::FieldChanges;
use crate::settings::Owner;

/// Action on an object, in Flux's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It did not exist, or was recreated.
    Created,
    /// It was changed.
    Configured,
    /// It was as it should be.
    Unchanged,
    /// It asked to be left alone.
    Skipped,
    /// It was deleted.
    Deleted,
}

impl Action {
    /// Returns whether something changed in the cluster.
    pub fn is_change(self) -> bool {
        matches!(self, Action::Created | Action::Configured | Action::Deleted)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Created => "created",
            Action::Configured => "configured",
            Action::Unchanged => "unchanged",
            Action::Skipped => "skipped",
            Action::Deleted => "deleted",
        })
    }
}

/// Action on one object. Displayed as Flux writes it into events: `Deployment/default/web configured`.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The object.
    pub id: ObjectId,
    /// Its kind, in the version that was applied.
    pub gvk: GroupVersionKind,
    /// The action.
    pub action: Action,
    /// Which fields changed; only for objects that existed and were changed, when asked for.
    pub fields: FieldChanges,
    /// The API server's answer, without managedFields; only for objects that were written, when asked for.
    pub live: Option<serde_json::Value>,
    /// Previous owner of the object, if another one had applied it.
    pub taken_from: Option<Owner>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.action)
    }
}
