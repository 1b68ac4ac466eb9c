//! Options and results of a deletion.

/// Propagation policy for objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// It is deleted afterwards.
    Background,
    /// It is deleted before.
    Foreground,
    /// It stays.
    Orphan,
}

/// Result of deleting an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// There was none.
    Missing,
    /// It is gone.
    Gone,
    /// It goes when others are done with it: finalizers, or the grace period of Pods.
    Terminating,
}
