//! Changes to managed objects.

use manifest::ObjectId;

use crate::settings::Owner;

/// Change to an object that we applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Someone changed, took or removed something of ours.
    Modified,
    /// It is gone.
    Deleted,
    /// Another owner applied it. Taking it back would go on without end; that is left to the intervals of both.
    Taken,
}

/// An object is no longer as its owner left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Owner that applied it.
    pub owner: Owner,
    /// The object.
    pub object: ObjectId,
    /// The change.
    pub what: What,
    /// Owner that applied it, if it was another one.
    pub by: Option<Owner>,
}
