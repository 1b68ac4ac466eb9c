//! The hooks of a release: what runs at a point of its life (Helm's `execHook`).
//!
//! Hooks of an event run one after another, by weight, then by name. Each is deleted where it is left over from the last
//! time, created, and waited for until it has come to its end; what is deleted afterwards is deleted when all have run, or
//! one has failed. How each went is written into the record, also while it runs. [`run`] decides the order and the
//! bookkeeping, [`object`] creates and deletes, [`wait`] waits, [`output`] reads logs.

mod object;
mod options;
mod order;
mod output;
mod run;
mod wait;

use helm_release::Record;
use helm_render::manifest::HookEvent;

use crate::{Context, Error};
pub(crate) use run::run;

pub use options::HookOptions;

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
