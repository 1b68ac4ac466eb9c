//! The hooks of a release: what runs at a point of its life (Helm's `execHook`).
//!
//! Hooks of an event run one after another, by weight, then by name. Each is deleted where it is left over from the last
//! time, created, and waited for until it has come to its end; what is deleted afterwards is deleted when all have run, or
//! one has failed. How each went is written into the record, also while it runs. [`run`] decides the order and the
//! bookkeeping, [`object`] creates and deletes, [`wait`] waits, [`output`] reads logs.

mod object;
mod order;
mod output;
mod run;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use helm_release::Record;
use helm_render::manifest::HookEvent;
use kube_health::Checks;

use crate::{Context, Error, WaitStrategy, Waiting};
pub(crate) use run::run;

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
    pub fn of(waiting: &Waiting, server_side: bool) -> Self {
        Self {
            timeout: waiting.timeout,
            server_side,
            checks: Arc::clone(&waiting.checks),
            strategy: waiting.strategy,
        }
    }
}

/// Runs the hooks of an event. How they went is in the record, which is stored while they run; the caller stores it
/// afterwards.
///
/// # Errors
/// When one cannot be deleted, created or does not succeed, in Helm's words.
pub async fn run_hooks(
    context: &Context<'_>,
    record: &mut Record,
    event: HookEvent,
    options: &HookOptions,
) -> Result<(), Error> {
    let ran = run(context, record, event, options, &|_| true).await;
    // That something could not be deleted is what Helm tells in place of the failure.
    ran.clean_up(context, record, options).await?;
    ran.result
}
