//! What all kinds of sources have in common.

use crate::meta::{Artifact, Duration, StatusObject};

/// How long an operation on a remote may take if the spec does not say: the default in the CRDs.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A kind that produces an artifact.
pub trait Source: StatusObject {
    /// The latest artifact, if there is one.
    fn artifact(&self) -> Option<&Artifact>;

    /// How often the origin is asked for something new.
    fn interval(&self) -> Duration;

    /// How long an operation on the remote may take.
    fn timeout(&self) -> Duration;
}
