//! Options of hooks.

use std::sync::Arc;
use std::time::Duration;

use kube_health::Checks;

use crate::{WaitStrategy, Waiting};

/// How hooks run.
#[derive(Clone, Debug)]
pub struct HookOptions {
    /// How long one may take, and how long its deletion.
    pub timeout: Duration,
    /// True if they are applied on the server.
    pub server_side: bool,
    /// Health checks of the user. Jobs and Pods are always waited for, other kinds only if there is a check.
    pub checks: Arc<Checks>,
    /// Hooks are waited for whatever it is; their deletion is not where it is [`WaitStrategy::HookOnly`].
    pub strategy: WaitStrategy,
}

impl HookOptions {
    /// Takes what is said of the waits of an action.
    pub fn new(waiting: &Waiting, server_side: bool) -> Self {
        Self {
            timeout: waiting.timeout,
            server_side,
            checks: Arc::clone(&waiting.checks),
            strategy: waiting.strategy,
        }
    }
}
