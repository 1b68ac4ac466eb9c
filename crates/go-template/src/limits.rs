//! How much a render may use, and how it treats keys that are not there.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a caller sets for a render.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What a missing key of a map gives.
    pub missing_key: MissingKey,
    /// What the render may use.
    pub limits: Limits,
}

/// What a field gives that a map does not have: Go's option `missingkey`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value, of which every field is no value again.
    #[default]
    Invalid,
    /// The zero of the map's element type; a nil interface has no fields.
    Zero,
    /// An error.
    Error,
}

/// Bounds of a render: all executions together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many bytes of stack an execution may use from where it is started, with what functions use for themselves. The
    /// thread must have them; see [`crate::on_stack`].
    pub stack: usize,
    /// How many bytes templates may print and functions may make.
    pub bytes: usize,
    /// How many nodes may be walked and pipelines evaluated.
    pub steps: u64,
    /// Ends the render soon after it is set.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl Default for Limits {
    /// Fits a thread of 2 MiB, as tests have.
    fn default() -> Self {
        Self {
            stack: 1_500_000,
            bytes: 1 << 30,
            steps: 100_000_000,
            cancelled: None,
        }
    }
}
