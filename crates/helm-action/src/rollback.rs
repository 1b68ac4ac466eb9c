//! Makes the next revision of a release out of an older one.

use helm_release::history::History;
use helm_release::{Record, Status, Time, description};
use helm_render::manifest::HookEvent;
use jiff::Timestamp;

use crate::apply::{self, Failed, Way, removal};
use crate::hooks::{self, HookOptions};
use crate::install::method;
use crate::ledger::Ledger;
use crate::resources::{self, Release, Resource};
use crate::upgrade::clean_up;
use crate::{Context, Error, ErrorKind, Outcome, Rollback, ServerSide, strays, wait};

/// Rolls a release back.
pub async fn rollback(context: &Context<'_>, order: &Rollback) -> Outcome {
    let mut ledger = Ledger::open(context.storage);
    let result = prepare_and_perform(context, order, &mut ledger).await;
    ledger.close(result)
}

async fn prepare_and_perform(
    context: &Context<'_>,
    order: &Rollback,
    ledger: &mut Ledger<'_>,
) -> Result<(), Error> {
    let (history, last) = context.storage.newest(&order.name).await?;
    let (current, mut record, way) = prepare(context, order, &history, last).await?;
    let version = gone_back_to(order, &history);
    context
        .storage
        .make_room_in(&order.name, &history, order.max_history)
        .await?;
    ledger.create(&record).await?;
    let before = Before {
        history: &history,
        current: &current,
        to: version,
    };
    match perform(context, order, &before, &mut record, way).await {
        Ok(()) => succeed(context, ledger, &history, record).await,
        Err(failure) => fail(context, order, ledger, current, record, failure).await,
    }
}

/// State before the rollback.
struct Before<'a> {
    history: &'a History,
    current: &'a Record,
    /// Which revision is gone back to.
    to: i64,
}

fn gone_back_to(order: &Rollback, history: &History) -> i64 {
    if order.version == 0 {
        history.last().map_or(0, |last| last.version - 1)
    } else {
        order.version
    }
}

/// Makes the record of the next revision out of the one that is gone back to.
async fn prepare(
    context: &Context<'_>,
    order: &Rollback,
    history: &History,
    last: Option<Record>,
) -> Result<(Record, Record, Way), Error> {
    let name = &order.name;
    let missing = || Error::new(ErrorKind::NotFound, "release: not found");
    let current = last.ok_or_else(missing)?;
    let to = gone_back_to(order, history);
    let no_version = || Error::new(ErrorKind::NotFound, format!("release has no {to} version"));
    if !history.iter().any(|revision| revision.version == to) {
        return Err(no_version());
    }
    let previous = context.storage.get(name, to).await?.ok_or_else(no_version)?;
    let server_side = match order.server_side {
        ServerSide::Auto => method(true) == previous.release.apply_method.unwrap_or(method(false)),
        chosen => chosen == ServerSide::On,
    };
    let way = Way {
        server_side,
        replace: order.force_replace && !server_side,
        strict: false,
        knows_created: order.cleanup_on_fail,
    };
    let mut record = previous;
    let release = &mut record.release;
    release.version = history.next_version();
    release.namespace.clone_from(&current.release.namespace);
    release
        .info
        .first_deployed
        .clone_from(&current.release.info.first_deployed);
    release.info.last_deployed = Some(Time::from_timestamp(Timestamp::now()));
    release.info.deleted = None;
    release.info.rollback_revision = 0;
    release.apply_method = Some(method(server_side));
    release.set_status(Status::PendingRollback, description::rollback_to(to));
    Ok((current, record, way))
}

/// Why a rollback failed: Helm words a wait that failed in its own way.
struct Failure {
    failed: Failed,
    /// The objects were not written.
    before_wait: bool,
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self {
            failed,
            before_wait: true,
        }
    }
}

async fn perform(
    context: &Context<'_>,
    order: &Rollback,
    before: &Before<'_>,
    record: &mut Record,
    way: Way,
) -> Result<(), Failure> {
    let Objects {
        originals,
        strays,
        targets,
    } = objects(context, before, record).await.map_err(Failed::without)?;
    let options = HookOptions::new(&order.waiting, way.server_side);
    if !order.disable_hooks {
        hooks::run_hooks(context, record, HookEvent::PreRollback, &options)
            .await
            .map_err(Failed::without)?;
    }
    let cluster = context.cluster;
    context
        .log
        .line(format!("checking resources for changes: {}", targets.len()));
    let written = apply::update(cluster, &originals, &targets, way).await?;
    let created = written.created;
    let failed = |error| Failed {
        created: created.clone(),
        error,
    };
    let release = Release {
        name: &record.release.name,
        namespace: &record.release.namespace,
    };
    let left = apply::left(&originals, &targets);
    removal::remove(cluster, &left, release, context.log)
        .await
        .map_err(failed)?;
    let strays = apply::left(&strays, &targets);
    removal::remove_own(cluster, &strays, release, context.log)
        .await
        .map_err(failed)?;
    apply::settle(cluster, &targets);
    let name = &order.name;
    wait::until_ready(context, &targets, written.answers, &order.waiting)
        .await
        .map_err(|error| Failure {
            failed: failed(error.within(format!("release {name} failed"))),
            before_wait: false,
        })?;
    if !order.disable_hooks {
        hooks::run_hooks(context, record, HookEvent::PostRollback, &options)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// Objects of the last revision, those that only failed ones had, and those of the next.
struct Objects {
    originals: Vec<Resource>,
    strays: Vec<Resource>,
    targets: Vec<Resource>,
}

async fn objects(context: &Context<'_>, before: &Before<'_>, record: &Record) -> Result<Objects, Error> {
    let (current, next) = (&before.current.release, &record.release);
    let originals = resources::read_former(context.cluster, &current.manifest, &current.namespace).await;
    let originals = originals
        .map_err(|error| error.within("unable to build kubernetes objects from current release manifest"))?;
    let targets = resources::read(context.cluster, &next.manifest, &next.namespace).await;
    let mut targets = targets
        .map_err(|error| error.within("unable to build kubernetes objects from new release manifest"))?;
    let release = Release {
        name: &next.name,
        namespace: &next.namespace,
    };
    apply::mark(&mut targets, release);
    let known = [before.current];
    let strays = strays::find(context, before.history, before.to, &known, &originals).await?;
    Ok(Objects {
        originals,
        strays,
        targets,
    })
}

/// Supersedes all that is deployed, and then is it.
async fn succeed(
    context: &Context<'_>,
    ledger: &mut Ledger<'_>,
    history: &History,
    mut record: Record,
) -> Result<(), Error> {
    supersede_deployed(context, ledger, &record.release.name.clone(), history).await?;
    record.release.info.status = Status::Deployed;
    ledger
        .update(&record)
        .await
        .map_err(|error| error.within("failed to record the release"))
}

/// Marks all revisions that say that they are deployed: a crash may have left several.
pub(crate) async fn supersede_deployed(
    context: &Context<'_>,
    ledger: &mut Ledger<'_>,
    name: &str,
    history: &History,
) -> Result<(), Error> {
    let deployed = history
        .iter()
        .filter(|revision| revision.status == Status::Deployed);
    for revision in deployed {
        // Room may have been made of it meanwhile.
        if let Some(mut record) = context.storage.get(name, revision.version).await? {
            record.release.info.status = Status::Superseded;
            ledger.try_update(&record).await;
        }
    }
    Ok(())
}

async fn fail(
    context: &Context<'_>,
    order: &Rollback,
    ledger: &mut Ledger<'_>,
    mut current: Record,
    mut record: Record,
    failure: Failure,
) -> Result<(), Error> {
    let Failed { created, error } = failure.failed;
    if failure.before_wait {
        current.release.info.status = Status::Superseded;
        ledger.try_update(&current).await;
        let text = format!("Rollback {:?} failed: {error}", order.name);
        record.release.set_status(Status::Failed, text);
    } else {
        let text = error.to_string();
        let prefix = format!("release {} failed: ", order.name);
        let problem = text.strip_prefix(&prefix).unwrap_or(&text);
        let text = description::release_failed(&order.name, problem);
        record.release.set_status(Status::Failed, text);
    }
    ledger.try_update(&record).await;
    if failure.before_wait && order.cleanup_on_fail {
        return Err(clean_up(context, &created, error, "rollback").await);
    }
    Err(error)
}
