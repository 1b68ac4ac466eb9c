//! `windlass giveback`: gives Flux its place back from what `windlass takeover` has recorded, and checks that nothing was re-created.
//!
//! ```text
//! record ─▶ uninstall ours ─▶ put Flux's objects back ─▶ resume ─▶ ask all objects ─▶ compare ─▶ delete the record
//! ```

use std::time::Duration;

use clap::Args;
use manifest::ObjectId;
use serde_json::json;

use crate::cluster::{self, Cluster, Failure, parse_timeout};
use crate::platform::lock::Lock;
use crate::platform::{Place, Platform, definitions, leftovers, objects, ready, rights, rollout};
use crate::takeover::compare::Expected;
use crate::takeover::record::{self, Component, Fate, Record, Stage};
use crate::takeover::snapshot::Snapshot;
use crate::takeover::{answers, report, scale};
use crate::uninstall;

/// Command line of `giveback`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Timeout for the controllers, and again for all objects
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_timeout)]
    timeout: Duration,

    #[command(flatten)]
    place: Place,
}

/// Gives back. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    cluster::run(&flags.place.cluster(), async |cluster| {
        let platform = Platform::new(&cluster);
        rights::check_moving(&platform.client, &platform.namespace, "give Flux its place back").await?;
        let Some(record) = record::load(&platform.client, &platform.namespace).await? else {
            return Err(Failure::NotReady(format!(
                "no takeover is recorded: there is no Secret {}/{}. Without it, `windlass uninstall` and `flux install` are the \
                 way back",
                platform.namespace,
                record::NAME
            )));
        };
        let lock = Lock::take(&platform.client, &platform.namespace, &report_line).await?;
        let done = platform
            .interruptible(
                Some(&lock),
                locked(&cluster, &platform, record, flags.timeout, &report_line),
            )
            .await;
        lock.give_up().await;
        let (record, before, after) = done?;
        report(&record, &before, &after, &expected(&record))
    })
}

async fn locked(
    cluster: &Cluster,
    platform: &Platform,
    mut record: Record,
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<(Record, Snapshot, Snapshot), Failure> {
    let (client, namespace) = (&platform.client, &platform.namespace);
    let before = begun(cluster, platform, &mut record).await?;
    // Whoever asks for the rest again has Flux, which may be another one by now.
    if record.stage != Stage::GivenBack {
        give_back(cluster, platform, &record, timeout, report_line).await?;
        record.stage = Stage::GivenBack;
        record::save(client, namespace, &record).await?;
    }
    let answered = answers::wait(cluster, answers::expected(&before), timeout, report_line).await;
    answered.map_err(|failure| with_ways_on(failure, namespace))?;
    let after = Snapshot::take(cluster, platform).await?;
    record::delete(client, namespace).await?;
    Ok((record, before, after))
}

/// Flux is in place then, whatever becomes of objects.
fn with_ways_on(failure: Failure, namespace: &str) -> Failure {
    match failure {
        Failure::TimedOut(text) => Failure::TimedOut(format!(
            "{text}\nFlux is in place: `windlass giveback` looks at all again; without that, delete the Secret {namespace}/{}",
            record::NAME
        )),
        other => other,
    }
}

/// Ours goes, and Flux comes again.
async fn give_back(
    cluster: &Cluster,
    platform: &Platform,
    record: &Record,
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    let (client, namespace) = (&platform.client, &platform.namespace);
    uninstall::take_away(platform, false, timeout, report_line).await?;
    let gone = leftovers::delete(client, namespace).await?;
    gone.iter().for_each(|id| report_line(&format!("{id} deleted")));
    definitions::release(client, namespace).await?;
    let deployments = put_back(platform, &record.components, timeout, report_line).await?;
    let waiting = ready::until_ready(platform, deployments, timeout);
    let labels = "app.kubernetes.io/part-of=flux";
    rollout::telling(client, namespace, labels, waiting).await?;
    for id in &record.suspended {
        report_line(&format!("resuming {id}"));
        match cluster
            .merge(id, "resume", &json!({"spec": {"suspend": null}}))
            .await
        {
            // Someone has deleted it since.
            Ok(()) | Err(Failure::NotReady(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Writes down that the way back was begun, and how everything was then. A way back that was killed goes on from there.
async fn begun(cluster: &Cluster, platform: &Platform, record: &mut Record) -> Result<Snapshot, Failure> {
    if let (Stage::GivingBack | Stage::GivenBack, Some(before)) = (record.stage, &record.before_giveback) {
        return Ok(before.clone());
    }
    let before = Snapshot::take(cluster, platform).await?;
    if let Some(last) = platform.last().await? {
        let own = objects::of_manifest(&last.release.manifest)?;
        record.own = own.iter().map(manifest::Object::id).collect();
    }
    record.stage = Stage::GivingBack;
    record.before_giveback = Some(before.clone());
    // Both would not fit where one almost did not; the way back needs the newer one.
    record.before = Snapshot::default();
    record::save(&platform.client, &platform.namespace, record).await?;
    Ok(before)
}

/// Makes Flux's objects as they were, under the name of who had applied them. Deployments come last: they need the others, and
/// are returned.
async fn put_back(
    platform: &Platform,
    components: &[Component],
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<Vec<ObjectId>, Failure> {
    let mut deployments = Vec::new();
    let (last, first): (Vec<&Component>, Vec<&Component>) =
        components.iter().partition(|component| component.is_deployment());
    for component in first.into_iter().chain(last) {
        let id = component.id();
        if !id.namespace.is_empty() && !platform.has_namespace(&id.namespace).await? {
            report_line(&format!("{id} is left out: its namespace is gone"));
            continue;
        }
        if component.is_deployment() {
            deployments.push(id.clone());
        }
        if component.fate == Fate::ScaledDown && scale::to(platform, &id, component.replicas()).await? {
            report_line(&format!("{id} is scaled to {} again", component.replicas()));
            continue;
        }
        let mapper = platform.engine.mapper();
        let object = objects::of_value(&component.object);
        let located = objects::locate(&platform.client, mapper, object, &id.namespace).await?;
        // Ours of that name may still be ending, after an uninstall that was interrupted.
        located.gone_if_deleted(platform, timeout).await?;
        located.apply(&component.manager, false).await?;
        report_line(&format!("{id} is put back"));
    }
    Ok(deployments)
}

/// Changes that giving back makes itself: our objects go, Flux's come back.
fn expected(record: &Record) -> Expected {
    let components: Vec<ObjectId> = record.components.iter().map(Component::id).collect();
    let is_kept = |id: &&ObjectId| id.kind == "CustomResourceDefinition";
    let own = record.own.iter();
    Expected {
        remade: Expected::ids(own.clone().filter(|id| !is_kept(id)).chain(&components)),
        changed: Expected::ids(own.filter(is_kept).chain(&record.suspended)),
    }
}
