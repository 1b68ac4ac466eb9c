//! `helm test`: runs the hooks of a release that are tests, and writes down how they went.

use std::collections::BTreeMap;
use std::sync::Arc;

use helm_release::{ApplyMethod, Record, snapshot};
use helm_render::manifest::HookEvent;

use crate::hooks::{self, HookOptions};
use crate::{Context, Error, ErrorKind, Outcome, Test, WaitStrategy};

/// Runs the tests of the newest revision of a release, or those of them that are asked for.
///
/// A revision without such tests counts as written, though nothing of it changes.
pub async fn test(context: &Context<'_>, order: &Test) -> Outcome {
    let mut written = BTreeMap::new();
    let result = match last(context, order).await {
        Ok(mut record) => {
            let Tested { is_stored, ended } = run(context, order, &mut record).await;
            if is_stored {
                written.insert(record.release.version, record.release);
            }
            ended
        }
        Err(error) => Err(error),
    };
    Outcome { written, result }
}

struct Tested {
    is_stored: bool,
    ended: Result<(), Error>,
}

async fn last(context: &Context<'_>, order: &Test) -> Result<Record, Error> {
    let last = context.storage.last(&order.name).await?;
    last.ok_or_else(|| Error::new(ErrorKind::NotFound, "release: not found"))
}

async fn run(context: &Context<'_>, order: &Test, record: &mut Record) -> Tested {
    let options = HookOptions {
        timeout: order.timeout,
        server_side: record.release.apply_method == Some(ApplyMethod::ServerSide),
        checks: Arc::clone(&order.checks),
        // Tests are always waited for, and so is their deletion.
        strategy: WaitStrategy::StatusWatcher,
    };
    let is_meant = |hook: &helm_release::Hook| snapshot::is_selected(&hook.name, &order.filters);
    let ran = hooks::run(context, record, HookEvent::Test, &options, &is_meant).await;
    if ran.is_nothing() {
        return Tested {
            is_stored: true,
            ended: Ok(()),
        };
    }
    let stored = context.storage.update(record).await.map_err(Error::from);
    // What is left over is deleted before the next time.
    if let Err(error) = ran.clean_up(context, record, &options).await {
        context
            .log
            .line(format!("error deleting the hook resources of tests: {error}"));
    }
    Tested {
        is_stored: stored.is_ok(),
        ended: ran
            .result
            .map_err(|error| error.of_kind(ErrorKind::Test))
            .and(stored),
    }
}
