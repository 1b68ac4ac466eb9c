//! Takes a release away: its objects, and its records unless they are to be kept.

use helm_release::history::History;
use helm_release::{Record, Status, Time, description};
use helm_render::manifest::{HookEvent, KindOrder};
use jiff::Timestamp;
use kube_apply::{Address, Cascade};

use crate::apply::{self, removal};
use crate::hooks::{self, HookOptions};
use crate::ledger::Ledger;
use crate::resources::{self, Release, Resource};
use crate::rollback::supersede_deployed;
use crate::{Context, Error, ErrorKind, Outcome, Propagation, Uninstall, WaitStrategy, wait};

/// Uninstalls a release.
pub async fn uninstall(context: &Context<'_>, order: &Uninstall) -> Outcome {
    let mut ledger = Ledger::open(context.storage);
    let result = perform(context, order, &mut ledger).await;
    ledger.close(result)
}

async fn perform(context: &Context<'_>, order: &Uninstall, ledger: &mut Ledger<'_>) -> Result<(), Error> {
    let name = &order.name;
    let history = context.storage.history(name).await?;
    let missing = || {
        let text = format!("uninstall: Release not loaded: {name}: release: not found");
        Error::new(ErrorKind::NotFound, text)
    };
    let last = history.last().ok_or_else(missing)?.version;
    let mut record = context.storage.get(name, last).await?.ok_or_else(missing)?;
    if record.release.info.status == Status::Uninstalled {
        return done_before(order, ledger, &history, record).await;
    }
    let release = &mut record.release;
    release.info.deleted = Some(Time::from_timestamp(Timestamp::now()));
    release.set_status(Status::Uninstalling, description::DELETION_IN_PROGRESS);
    let options = HookOptions::new(&order.waiting, true);
    if !order.disable_hooks {
        hooks::run_hooks(context, &mut record, HookEvent::PreDelete, &options).await?;
    }
    ledger.try_update(&record).await;
    let terminating = delete(context, order, &record).await?;

    let mut errors: Vec<Error> = Vec::new();
    if order.waiting.strategy != WaitStrategy::HookOnly {
        let gone = wait::until_gone(context, &terminating, order.waiting.timeout).await;
        errors.extend(gone.err());
    }
    if !order.disable_hooks {
        let ran = hooks::run_hooks(context, &mut record, HookEvent::PostDelete, &options).await;
        errors.extend(ran.err());
    }
    record
        .release
        .set_status(Status::Uninstalled, description::UNINSTALLATION_COMPLETE);
    if order.keep_history {
        ledger.try_update(&record).await;
        let before: History = history
            .iter()
            .filter(|revision| revision.version != last)
            .cloned()
            .collect();
        supersede_deployed(context, ledger, name, &before).await?;
    } else {
        errors.extend(purge(ledger, &history, &record).await.err());
    }
    completed(errors)
}

/// A release that is uninstalled has only records left.
async fn done_before(
    order: &Uninstall,
    ledger: &mut Ledger<'_>,
    history: &History,
    record: Record,
) -> Result<(), Error> {
    if order.keep_history {
        let text = format!("the release named {:?} is already deleted", order.name);
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    purge(ledger, history, &record).await
}

/// Deletes all records.
async fn purge(ledger: &mut Ledger<'_>, history: &History, record: &Record) -> Result<(), Error> {
    for revision in history.iter() {
        let deleted = ledger.delete(&record.release.name, revision.version).await;
        deleted.map_err(|error| error.within("uninstall: Failed to purge the release"))?;
    }
    ledger.note(record);
    Ok(())
}

/// Deletes the objects; returns those that are still on their way.
async fn delete(context: &Context<'_>, order: &Uninstall, record: &Record) -> Result<Vec<Address>, Error> {
    let (cluster, release) = (context.cluster, &record.release);
    let failed = |problem: String| {
        let text = format!("failed to delete release: {}: {problem}", order.name);
        Error::new(ErrorKind::Delete, text)
    };
    let read = resources::read_former(cluster, &release.manifest, &release.namespace).await;
    let all =
        read.map_err(|error| failed(format!("unable to build kubernetes objects for delete: {error}")))?;
    apply::forget(cluster, &all);
    let own = own(context, all, record).await;
    let all = own.map_err(|error| failed(error.to_string()))?;
    let (kept, mut deleted): (Vec<Resource>, Vec<Resource>) = all.into_iter().partition(removal::is_kept);
    for resource in &kept {
        let id = resource.id();
        context.log.line(format!(
            "These resources were kept due to the resource policy: [{}] {}",
            id.kind, id.name
        ));
    }
    deleted.sort_by(|a, b| {
        let kind = |resource: &Resource| resource.at.resource.api.kind.clone();
        KindOrder::Uninstall.compare(&kind(a), &kind(b))
    });
    let cascade = match order.propagation {
        Propagation::Background => Cascade::Background,
        Propagation::Foreground => Cascade::Foreground,
        Propagation::Orphan => Cascade::Orphan,
    };
    let (terminating, problems) = removal::delete_all(cluster, &deleted, cascade).await;
    if problems.is_empty() {
        Ok(terminating)
    } else {
        Err(failed(apply::join_failures(&problems, "; ")))
    }
}

/// Leaves out what is gone, and what says that it is another release's by now.
async fn own(context: &Context<'_>, all: Vec<Resource>, record: &Record) -> Result<Vec<Resource>, Error> {
    let release = Release {
        name: &record.release.name,
        namespace: &record.release.namespace,
    };
    let listed: Vec<&Resource> = all.iter().collect();
    let existing = resources::existing_of(context.cluster, &listed).await?;
    let is_own = |resource: &Resource| match existing.get(&resource.id()) {
        Some(live) if release.is_of_another(live) => {
            context.log.line(format!(
                "skipping delete of {resource}: it belongs to another release"
            ));
            false
        }
        found => found.is_some(),
    };
    Ok(all.into_iter().filter(is_own).collect())
}

fn completed(errors: Vec<Error>) -> Result<(), Error> {
    let Some(first) = errors.first() else {
        return Ok(());
    };
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = format!(
        "uninstallation completed with {} error(s): {}",
        texts.len(),
        texts.join("; ")
    );
    Err(Error::new(first.kind(), text))
}
