//! How much a render may use, and how it treats keys that are not there.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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
    /// What a render waits for before it makes much; None where it need not.
    pub turn: Option<Turn>,
    /// How many nodes may be walked and pipelines evaluated.
    pub steps: u64,
    /// How long it may take; None for as long as its steps take. It ends with the function that is being called then.
    pub time: Option<Duration>,
    /// Ends the render soon after it is set.
    pub cancelled: Option<Arc<AtomicBool>>,
}

/// The turn of a render to make much, where few renders of a process may do so at once.
#[derive(Clone)]
pub struct Turn {
    /// How many bytes a render may make before it needs the turn.
    pub above: usize,
    /// Waits until it is the render's turn, which lasts until what is returned is dropped. The wait does not count for
    /// [`Limits::time`].
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
