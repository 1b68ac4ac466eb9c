//! One hook after another, and what is written down of each.

use helm_release::{Hook, HookPhase, HookRun, Record, Time};
use helm_render::manifest::HookEvent;
use jiff::Timestamp;

use super::options::HookOptions;
use super::order::{self, Output, Policy};
use super::{object, output, wait};
use crate::{Context, Error, ErrorKind};

/// Hooks that ran, by their places in the record.
pub(crate) struct Ran {
    order: Vec<usize>,
    end: End,
    /// How it ended; the caller tells it when he has cleaned up.
    pub(crate) result: Result<(), Error>,
}

enum End {
    /// All have succeeded.
    Succeeded,
    /// This one has failed, by its place in the order.
    Failed(usize),
    /// One could not even be waited for: what is there stays.
    Broken,
}

/// Runs the hooks of an event that are meant.
pub(crate) async fn run(
    context: &Context<'_>,
    record: &mut Record,
    event: HookEvent,
    options: &HookOptions,
    is_meant: &(dyn Fn(&Hook) -> bool + Sync),
) -> Ran {
    let order = order::hooks_at(&record.release.hooks, event, is_meant);
    for (turn, place) in order.iter().enumerate() {
        let (end, error) = match run_one(context, record, *place, event, options).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => (End::Failed(turn), error),
            Err(error) => (End::Broken, error),
        };
        return Ran {
            order,
            end,
            result: Err(error),
        };
    }
    Ran {
        order,
        end: End::Succeeded,
        result: Ok(()),
    }
}

/// Runs one hook to its end. The inner error is how it ended, the outer one that it could not be started.
async fn run_one(
    context: &Context<'_>,
    record: &mut Record,
    place: usize,
    event: HookEvent,
    options: &HookOptions,
) -> Result<Result<(), Error>, Error> {
    order::set_default(&mut record.release.hooks[place]);
    delete(context, record, place, Policy::BeforeCreation, options).await?;
    let hook = &record.release.hooks[place];
    let path = hook.path.clone();
    let objects = object::read(context.cluster, &hook.manifest, &record.release.namespace).await;
    let objects = objects.map_err(|error| {
        error.within(format!(
            "unable to build kubernetes object for {event} hook {path}"
        ))
    })?;

    begin(&mut record.release.hooks[place].last_run);
    store(context, record).await;
    let created = object::create(context.cluster, &objects, options.server_side).await;
    let last_run = &mut record.release.hooks[place].last_run;
    let created = created.map_err(|error| {
        end(last_run, HookPhase::Failed);
        let error = error.within(format!("warning: Hook {event} {path} failed"));
        error.of_kind(ErrorKind::Hook)
    })?;
    // Who stops here leaves a hook behind of which no one knows the end.
    last_run.phase = HookPhase::Unknown;
    let ended = wait::until_done(context, created, options).await;
    end(
        last_run,
        if ended.is_ok() {
            HookPhase::Succeeded
        } else {
            HookPhase::Failed
        },
    );
    if ended.is_err() {
        output::log(context, record, place, Output::Failed).await;
    }
    Ok(ended)
}

impl Ran {
    /// Returns whether nothing had to run.
    pub(crate) fn is_nothing(&self) -> bool {
        self.order.is_empty()
    }

    /// Deletes what is to be deleted now that all is over, and logs what is to be logged of those that succeeded.
    pub(crate) async fn clean_up(
        &self,
        context: &Context<'_>,
        record: &Record,
        options: &HookOptions,
    ) -> Result<(), Error> {
        match self.end {
            End::Broken => Ok(()),
            End::Failed(turn) => {
                let failed = self.order[turn];
                if let Err(error) = delete(context, record, failed, Policy::Failed, options).await {
                    context.log.line(format!(
                        "error deleting the hook resource on hook failure: {error}"
                    ));
                }
                for place in &self.order[..turn] {
                    delete(context, record, *place, Policy::Succeeded, options).await?;
                }
                Ok(())
            }
            End::Succeeded => {
                for place in self.order.iter().rev() {
                    output::log(context, record, *place, Output::Succeeded).await;
                    delete(context, record, *place, Policy::Succeeded, options).await?;
                }
                Ok(())
            }
        }
    }
}

/// Deletes a hook, if that is its policy, and waits until it is gone.
async fn delete(
    context: &Context<'_>,
    record: &Record,
    place: usize,
    policy: Policy,
    options: &HookOptions,
) -> Result<(), Error> {
    let hook = &record.release.hooks[place];
    if !order::is_deleted(hook, policy) {
        return Ok(());
    }
    let objects = object::read(context.cluster, &hook.manifest, &record.release.namespace).await;
    let objects = objects.map_err(|error| {
        error.within(format!(
            "unable to build kubernetes object for deleting hook {}",
            hook.path
        ))
    })?;
    let going = object::delete(context.cluster, &objects).await?;
    wait::until_gone(context, &going, options).await
}

fn begin(run: &mut HookRun) {
    *run = HookRun {
        started_at: Some(Time::from_timestamp(Timestamp::now())),
        completed_at: None,
        phase: HookPhase::Running,
    };
}

fn end(run: &mut HookRun, phase: HookPhase) {
    run.completed_at = Some(Time::from_timestamp(Timestamp::now()));
    run.phase = phase;
}

/// Stores that a hook runs. That it cannot be stored does not keep it from running.
async fn store(context: &Context<'_>, record: &Record) {
    if let Err(error) = context.storage.update(record).await {
        let error = Error::from(error);
        context.log.line(format!(
            "warning: Failed to update release {}: {error}",
            record.release.name
        ));
    }
}
