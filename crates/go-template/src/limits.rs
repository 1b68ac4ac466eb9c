//! How much a render may use, and how it treats keys that are not there.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Options of a render.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Result of a missing key of a map.
    pub missing_key: MissingKey,
    /// Limits of the render.
    pub limits: Limits,
}

/// Result of a field that a map does not have: Go's option `missingkey`.
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
    /// Serializes large renders. None: renders never wait for each other.
    pub turn: Option<Turn>,
    /// How many nodes may be walked and pipelines evaluated.
    pub steps: u64,
    /// Time limit; None for no limit. It is checked before each function call, and a running call is not interrupted.
    pub time: Option<Duration>,
    /// Ends the render soon after it is set.
    pub cancelled: Option<Arc<AtomicBool>>,
}

/// Lets only a few renders of a process be large at the same time.
#[derive(Clone)]
pub struct Turn {
    /// Number of bytes above which a render must take a turn.
    pub above: usize,
    /// Blocks until the render may continue. The turn ends when the returned value is dropped. The time spent waiting is not
    /// counted by [`Limits::time`].
    pub take: Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("above", &self.above)
            .finish_non_exhaustive()
    }
}

impl Default for Limits {
    /// Fits a thread of 2 MiB, as tests have.
    fn default() -> Self {
        Self {
            stack: 1_500_000,
            bytes: 1 << 30,
            turn: None,
            steps: 100_000_000,
            time: None,
            cancelled: None,
        }
    }
}
