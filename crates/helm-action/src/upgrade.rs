//! Makes the next revision of a release from a chart.

use std::sync::Arc;

use helm_chart::Helm;
use helm_release::history::History;
use helm_release::{Record, Status, Time, description};
use helm_render::manifest::HookEvent;
use helm_render::values;
use jiff::Timestamp;
use kube_apply::Cascade;
use serde_json::{Map, Value};

use crate::apply::{self, Failed, Way, removal};
use crate::hooks::{self, HookOptions};
use crate::install::method;
use crate::ledger::Ledger;
use crate::render::{self, Revision};
use crate::resources::{self, Release, Resource};
use crate::{Context, Error, ErrorKind, Outcome, Upgrade, crds, strays, wait};

/// Upgrades a release.
pub async fn upgrade(context: &Context<'_>, order: &Upgrade) -> Outcome {
    let mut ledger = Ledger::open(context.storage);
    let result = prepare_and_perform(context, order, &mut ledger).await;
    ledger.close(result)
}

/// The revisions that there are.
struct Before {
    history: History,
    last: Record,
    /// The one that is deployed, if it is not the last. Otherwise the last one counts.
    deployed: Option<Record>,
}

impl Before {
    fn current(&self) -> &Record {
        self.deployed.as_ref().unwrap_or(&self.last)
    }

    fn into_current(self) -> Record {
        self.deployed.unwrap_or(self.last)
    }
}

/// Planned changes to the cluster.
struct Plan {
    originals: Vec<Resource>,
    /// Objects that only failed revisions may have created.
    strays: Vec<Resource>,
    targets: Vec<Resource>,
    way: Way,
}

async fn prepare_and_perform(
    context: &Context<'_>,
    order: &Upgrade,
    ledger: &mut Ledger<'_>,
) -> Result<(), Error> {
    let before = before(context, &order.name).await?;
    let server_side = order.server_side.is_on(before.last.release.apply_method);
    let (values, chart_values) = values(order, before.current())?;
    crds::apply(context, &order.content, &values, server_side).await?;
    let mut record = prepare(context, order, &before, (values, chart_values), server_side).await?;
    let plan = plan(context, order, &before, &record, server_side).await?;
    let (history, max) = (&before.history, order.max_history);
    context.storage.make_room_in(&order.name, history, max).await?;
    ledger.create(&record).await?;
    match perform(context, order, &mut record, &plan).await {
        Ok(()) => succeed(ledger, before.into_current(), record).await,
        Err(failed) => fail(context, order, ledger, record, failed).await,
    }
}

/// Reads the last revision, and the deployed one.
async fn before(context: &Context<'_>, name: &str) -> Result<Before, Error> {
    let none = || {
        Error::new(
            ErrorKind::NoDeployed,
            format!("{name:?} has no deployed releases"),
        )
    };
    let (history, last) = context.storage.newest(name).await?;
    let last = last.ok_or_else(none)?;
    let status = &last.release.info.status;
    if status.is_pending() {
        let text = "another operation (install/upgrade/rollback) is in progress";
        return Err(Error::new(ErrorKind::Pending, text));
    }
    let mut deployed = None;
    if *status != Status::Deployed {
        if let Some(found) = history.deployed() {
            deployed = context.storage.get(name, found.version).await?;
        }
        if deployed.is_none() && !matches!(status, Status::Failed | Status::Superseded) {
            return Err(none());
        }
    }
    Ok(Before {
        history,
        last,
        deployed,
    })
}

type Values = (Map<String, Value>, Option<Arc<Map<String, Value>>>);

/// Composes the values: those that are given, or those of the revision before with them laid over.
fn values(order: &Upgrade, current: &Record) -> Result<Values, Error> {
    let given = &order.content.values;
    if !order.reuse_values {
        return Ok((given.clone(), None));
    }
    let nothing = Map::new();
    let chart = current.release.chart.as_ref();
    let name = chart.map_or("", |chart| chart.name());
    let unreadable = |error: serde_json::Error| {
        let text = format!("failed to rebuild old values: {error}");
        Error::new(ErrorKind::Render, text)
    };
    let defaults = chart
        .map(helm_release::Chart::values)
        .transpose()
        .map_err(unreadable)?;
    let reused = values::reuse(
        (name, defaults.as_deref().unwrap_or(&nothing)),
        &current.release.config,
        given,
        Helm::V4,
        &mut Vec::new(),
    );
    let reused = reused.map_err(|error| Error::new(ErrorKind::Render, error.to_string()))?;
    Ok((reused.given, Some(reused.chart_values)))
}

async fn prepare(
    context: &Context<'_>,
    order: &Upgrade,
    before: &Before,
    (values, chart_values): Values,
    server_side: bool,
) -> Result<Record, Error> {
    let current = &before.current().release;
    let revision = Revision {
        name: &order.name,
        namespace: &current.namespace,
        version: before.history.next_version(),
        is_upgrade: true,
        values,
        chart_values,
    };
    let mut record = render::render(context, &order.content, revision).await?;
    record.labels = before.last.labels.clone();
    let release = &mut record.release;
    release
        .info
        .first_deployed
        .clone_from(&current.info.first_deployed);
    release.info.last_deployed = Some(Time::from_timestamp(Timestamp::now()));
    release.apply_method = Some(method(server_side));
    release.set_status(Status::PendingUpgrade, description::PREPARING_UPGRADE);
    Ok(record)
}

async fn plan(
    context: &Context<'_>,
    order: &Upgrade,
    before: &Before,
    record: &Record,
    server_side: bool,
) -> Result<Plan, Error> {
    let cluster = context.cluster;
    let (current, next) = (&before.current().release, &record.release);
    let targets = resources::read(cluster, &next.manifest, &next.namespace).await;
    let mut targets = targets
        .map_err(|error| error.within("unable to build kubernetes objects from new release manifest"))?;
    let originals = resources::read_former(cluster, &current.manifest, &current.namespace).await;
    let originals = originals
        .map_err(|error| error.within("unable to build kubernetes objects from current release manifest"))?;
    let since = before.history.deployed().map_or(0, |deployed| deployed.version);
    let known = [before.current(), &before.last];
    let strays = strays::find(context, &before.history, since, &known, &originals).await?;
    let release = Release {
        name: &next.name,
        namespace: &next.namespace,
    };
    apply::mark(&mut targets, release);
    if !order.take_ownership {
        let new = apply::left(&targets, &originals);
        resources::check_all(cluster, &new, release)
            .await
            .map_err(|error| error.within("unable to continue with update"))?;
    }
    let way = Way {
        server_side,
        replace: order.force_replace && !server_side,
        strict: !order.content.disable_openapi_validation,
        knows_created: order.cleanup_on_fail,
    };
    Ok(Plan {
        originals,
        strays,
        targets,
        way,
    })
}

async fn perform(
    context: &Context<'_>,
    order: &Upgrade,
    record: &mut Record,
    plan: &Plan,
) -> Result<(), Failed> {
    let options = HookOptions::new(&order.waiting, plan.way.server_side);
    if !order.disable_hooks {
        let ran = hooks::run_hooks(context, record, HookEvent::PreUpgrade, &options).await;
        ran.map_err(|error| Failed::without(error.within("pre-upgrade hooks failed")))?;
    }
    let created = change(context, plan, record, &order.waiting).await?;
    if !order.disable_hooks {
        let ran = hooks::run_hooks(context, record, HookEvent::PostUpgrade, &options).await;
        ran.map_err(|error| Failed {
            created,
            error: error.within("post-upgrade hooks failed"),
        })?;
    }
    Ok(())
}

/// Brings the cluster from one revision to the next; returns what was created.
async fn change(
    context: &Context<'_>,
    plan: &Plan,
    record: &Record,
    waiting: &crate::Waiting,
) -> Result<Vec<Resource>, Failed> {
    let cluster = context.cluster;
    context
        .log
        .line(format!("checking resources for changes: {}", plan.targets.len()));
    let written = apply::update(cluster, &plan.originals, &plan.targets, plan.way).await?;
    let release = Release {
        name: &record.release.name,
        namespace: &record.release.namespace,
    };
    let created = written.created;
    let failed = |error| Failed {
        created: created.clone(),
        error,
    };
    let left = apply::left(&plan.originals, &plan.targets);
    removal::remove(cluster, &left, release, context.log)
        .await
        .map_err(failed)?;
    let strays = apply::left(&plan.strays, &plan.targets);
    removal::remove_own(cluster, &strays, release, context.log)
        .await
        .map_err(failed)?;
    apply::settle(cluster, &plan.targets);
    wait::until_ready(context, &plan.targets, written.answers, waiting)
        .await
        .map_err(failed)?;
    Ok(created)
}

async fn succeed(ledger: &mut Ledger<'_>, mut current: Record, mut record: Record) -> Result<(), Error> {
    current.release.info.status = Status::Superseded;
    ledger.try_update(&current).await;
    record
        .release
        .set_status(Status::Deployed, description::UPGRADE_COMPLETE);
    ledger
        .update(&record)
        .await
        .map_err(|error| error.within("failed to record the release"))
}

async fn fail(
    context: &Context<'_>,
    order: &Upgrade,
    ledger: &mut Ledger<'_>,
    mut record: Record,
    failed: Failed,
) -> Result<(), Error> {
    let Failed { created, error } = failed;
    let text = description::upgrade_failed(&order.name, &error.to_string());
    record.release.set_status(Status::Failed, text);
    ledger.try_update(&record).await;
    if !order.cleanup_on_fail {
        return Err(error);
    }
    Err(clean_up(context, &created, error, "upgrade").await)
}

/// Deletes what a failed action created; returns the error that it failed with, and what went wrong since.
pub(crate) async fn clean_up(
    context: &Context<'_>,
    created: &[Resource],
    error: Error,
    action: &str,
) -> Error {
    let (_, problems) = removal::delete_all(context.cluster, created, Cascade::Background).await;
    if problems.is_empty() {
        return error;
    }
    let problems = apply::join_failures(&problems, ", ");
    error
        .within(format!(
            "an error occurred while cleaning up resources. original {action} error"
        ))
        .and(format!("unable to cleanup resources: {problems}"))
}
