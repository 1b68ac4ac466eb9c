//! Makes the first revision of a release, or one that takes the name of a release that failed or is gone.

use helm_release::{ApplyMethod, Record, Status, Time, description};
use helm_render::manifest::HookEvent;
use jiff::Timestamp;
use kube_apply::Address;
use manifest::{GroupVersionKind, Object};
use serde_json::{Value, json};

use crate::apply::{self, Way};
use crate::hooks::{self, HookOptions};
use crate::ledger::Ledger;
use crate::render::{self, Revision};
use crate::resources::{self, Release, Resource};
use crate::{Context, Error, ErrorKind, Install, Outcome, crds, wait};

/// Installs a chart.
pub async fn install(context: &Context<'_>, order: &Install) -> Outcome {
    let mut ledger = Ledger::open(context.storage);
    let result = prepare_and_perform(context, order, &mut ledger).await;
    ledger.close(result)
}

async fn prepare_and_perform(
    context: &Context<'_>,
    order: &Install,
    ledger: &mut Ledger<'_>,
) -> Result<(), Error> {
    let replaced = name_is_available(context, order).await?;
    crds::apply(context, &order.content, &order.content.values, order.server_side).await?;
    let mut record = prepare(context, order, replaced).await?;
    let targets = targets(context, order, &record).await?;
    if order.create_namespace {
        create_namespace(context, &order.namespace).await?;
    }
    if let Some(version) = replaced {
        supersede(context, ledger, &order.name, version).await?;
    }
    ledger.create(&record).await?;
    let performed = perform(context, order, &mut record, &targets).await;
    match performed {
        Ok(()) => {
            record
                .release
                .set_status(Status::Deployed, description::INSTALL_COMPLETE);
            ledger
                .update(&record)
                .await
                .map_err(|error| error.within("failed to record the release"))
        }
        Err(error) => {
            let text = description::release_failed(&order.name, &error.to_string());
            record.release.set_status(Status::Failed, text);
            ledger.try_update(&record).await;
            Err(error)
        }
    }
}

/// Returns whether the name is free; returns the revision whose place is taken.
async fn name_is_available(context: &Context<'_>, order: &Install) -> Result<Option<i64>, Error> {
    let (history, _) = context.storage.newest(&order.name).await?;
    let Some(last) = history.last() else {
        return Ok(None);
    };
    if order.replace && matches!(last.status, Status::Uninstalled | Status::Failed) {
        return Ok(Some(last.version));
    }
    let text = "release name check failed: cannot reuse a name that is still in use";
    Err(Error::new(ErrorKind::InUse, text))
}

async fn prepare(context: &Context<'_>, order: &Install, replaced: Option<i64>) -> Result<Record, Error> {
    let revision = Revision {
        name: &order.name,
        namespace: &order.namespace,
        version: 1,
        is_upgrade: false,
        values: order.content.values.clone(),
        chart_values: None,
    };
    let mut record = render::render(context, &order.content, revision).await?;
    let release = &mut record.release;
    let now = Time::from_timestamp(Timestamp::now());
    release.version = replaced.map_or(1, |version| version.saturating_add(1));
    release.info.first_deployed = Some(now.clone());
    release.info.last_deployed = Some(now);
    release.apply_method = Some(method(order.server_side));
    release.set_status(Status::PendingInstall, description::INSTALL_UNDERWAY);
    Ok(record)
}

pub(crate) fn method(server_side: bool) -> ApplyMethod {
    if server_side {
        ApplyMethod::ServerSide
    } else {
        ApplyMethod::ClientSide
    }
}

/// Reads what is to be made; refuses what is someone else's.
async fn targets(context: &Context<'_>, order: &Install, record: &Record) -> Result<Vec<Resource>, Error> {
    let read = resources::read(context.cluster, &record.release.manifest, &order.namespace).await;
    let mut targets =
        read.map_err(|error| error.within("unable to build kubernetes objects from release manifest"))?;
    let release = Release {
        name: &order.name,
        namespace: &order.namespace,
    };
    apply::mark(&mut targets, release);
    if !order.take_ownership {
        let all: Vec<&Resource> = targets.iter().collect();
        resources::check_all(context.cluster, &all, release)
            .await
            .map_err(|error| error.within("unable to continue with install"))?;
    }
    Ok(targets)
}

async fn perform(
    context: &Context<'_>,
    order: &Install,
    record: &mut Record,
    targets: &[Resource],
) -> Result<(), Error> {
    let hook_options = HookOptions::new(&order.waiting, order.server_side);
    if !order.disable_hooks {
        hooks::run_hooks(context, record, HookEvent::PreInstall, &hook_options)
            .await
            .map_err(|error| error.within("failed pre-install"))?;
    }
    let way = Way {
        server_side: order.server_side,
        replace: false,
        strict: !order.content.disable_openapi_validation,
        knows_created: false,
    };
    context
        .log
        .line(format!("creating resource(s): {}", targets.len()));
    let written = apply::create(context.cluster, targets, way).await;
    let written = written.map_err(|failed| failed.error)?;
    apply::settle(context.cluster, targets);
    wait::until_ready(context, targets, written.answers, &order.waiting).await?;
    if !order.disable_hooks {
        hooks::run_hooks(context, record, HookEvent::PostInstall, &hook_options)
            .await
            .map_err(|error| error.within("failed post-install"))?;
    }
    Ok(())
}

/// Makes the namespace, with Helm's label; one that is there stays as it is.
async fn create_namespace(context: &Context<'_>, namespace: &str) -> Result<(), Error> {
    let failed = |problem: String| {
        let text = format!("failed to create the namespace {namespace:?}: {problem}");
        Error::new(ErrorKind::Apply, text)
    };
    let gvk = GroupVersionKind::new("v1", "Namespace");
    let resource = context.cluster.engine.mapper().resolve(&gvk).await;
    let at = Address {
        resource: resource.map_err(|error| failed(error.to_string()))?,
        namespace: String::new(),
        name: namespace.to_owned(),
    };
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {"name": namespace}}});
    let Value::Object(object) = object else {
        return Ok(());
    };
    let created = context
        .cluster
        .engine
        .create_one(&at, &Object::new(object, None), None)
        .await;
    match created {
        Err(failure) if !failure.is_already_exists() => Err(failed(failure.to_string())),
        _ => Ok(()),
    }
}

/// Marks the revision whose place is taken; one that failed stays failed.
async fn supersede(
    context: &Context<'_>,
    ledger: &mut Ledger<'_>,
    name: &str,
    version: i64,
) -> Result<(), Error> {
    let Some(mut last) = context.storage.get(name, version).await? else {
        return Ok(());
    };
    if last.release.info.status == Status::Failed {
        return Ok(());
    }
    last.release
        .set_status(Status::Superseded, description::SUPERSEDED);
    ledger.update(&last).await
}
