//! `windlass takeover`: takes the place of Flux's own controllers, and checks that nothing was re-created.
//!
//! ```text
//! preflight ─ record ─▶ suspend ─▶ scale down ─▶ install over ─▶ ask all objects ─▶ compare
//! ```
//!
//! Each step can be done again: a takeover that was killed goes on from its record ([`record`], ADR 12).

pub(crate) mod answers;
pub(crate) mod compare;
mod obstacles;
pub(crate) mod record;
mod report;
pub(crate) mod scale;
mod scene;
pub(crate) mod snapshot;

use std::time::Duration;

use clap::Args;
use manifest::ObjectId;
use serde_json::{Map, Value, json};

use crate::cluster::{self, Cluster, Failure, parse_timeout, print};
use crate::install::{self, pending};
use crate::platform::chart::ValueFlags;
use crate::platform::lock::Lock;
use crate::platform::{Place, Platform, managers, objects, rights};
use compare::Expected;
use record::{Component, Fate, Known, Record, Stage};
pub(crate) use report::report;
use scene::Scene;
use snapshot::Snapshot;

/// Command line of `takeover`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    values: ValueFlags,

    /// Suspend the objects that deliver Flux itself, such as the Kustomization of `flux bootstrap`
    #[arg(long)]
    suspend_self: bool,

    /// Show what would be done without doing it
    #[arg(long)]
    dry_run: bool,

    /// Timeout for the controllers, and again for all objects
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_timeout)]
    timeout: Duration,

    #[command(flatten)]
    place: Place,
}

/// Takes over. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let given = flags.values.read()?;
    cluster::run(&flags.place.cluster(), async |cluster| {
        let platform = Platform::new(&cluster);
        rights::check_moving(&platform.client, &platform.namespace, "take over from Flux").await?;
        install::suits(&platform).await?;
        let scene = Scene::look(&cluster, &platform, given.clone()).await?;
        if flags.dry_run {
            print(&scene.shown(flags.suspend_self))?;
        }
        scene.refuse_obstacles(&platform, flags.suspend_self).await?;
        if flags.dry_run {
            return Ok(());
        }
        platform.create_namespace().await?;
        let lock = Lock::take(&platform.client, &platform.namespace, &report_line).await?;
        let done = platform
            .interruptible(
                Some(&lock),
                locked(&cluster, &platform, flags, given, &lock, &report_line),
            )
            .await;
        lock.give_up().await;
        let (record, after) = done?;
        report(&record, &record.before, &after, &expected(&record))
    })
}

async fn locked(
    cluster: &Cluster,
    platform: &Platform,
    flags: &Flags,
    given: Option<Map<String, Value>>,
    lock: &Lock,
    report_line: &impl Fn(&str),
) -> Result<(Record, Snapshot), Failure> {
    pending::unlocked(platform, lock, flags.timeout, report_line).await?;
    // It is looked at again, as someone else may have done something before the lock was taken.
    let scene = Scene::look(cluster, platform, given).await?;
    scene.refuse_obstacles(platform, flags.suspend_self).await?;
    let mut record = recorded(cluster, platform, &scene, report_line).await?;
    for id in &scene.deliverers {
        report_line(&format!("suspending {id}"));
        let patch = json!({"spec": {"suspend": true}});
        cluster.merge(id, "suspend", &patch).await?;
    }
    // All that are recorded: a takeover that was killed may not have seen the end of their Pods.
    for displaced in record
        .components
        .iter()
        .filter(|one| one.fate == Fate::ScaledDown)
    {
        let id = displaced.id();
        if scene.rivals.iter().any(|rival| rival.id == id) {
            report_line(&format!("scaling down {id}"));
        }
        scale::to(platform, &id, 0).await?;
        scale::until_gone(platform, &id, flags.timeout).await?;
    }
    scene
        .notes()
        .iter()
        .for_each(|note| report_line(&format!("note: {note}")));
    report_line("installing over what is there");
    let Scene { last, wanted, .. } = scene;
    let (release, _) = wanted.carry_out(platform, last, flags.timeout, true).await?;
    report_line(&format!(
        "release {} revision {} is ready",
        release.name, release.version
    ));
    let answered = answers::wait(
        cluster,
        answers::expected(&record.before),
        flags.timeout,
        report_line,
    )
    .await;
    answered.map_err(with_ways_on)?;
    let after = Snapshot::take(cluster, platform).await?;
    record.stage = Stage::TakenOver;
    record::save(&platform.client, &platform.namespace, &record).await?;
    Ok((record, after))
}

/// Ours are in place then, whatever becomes of objects.
fn with_ways_on(failure: Failure) -> Failure {
    match failure {
        Failure::TimedOut(text) => Failure::TimedOut(format!(
            "{text}\nWindlass is in place: `windlass takeover` looks at all again, `windlass giveback` brings Flux back"
        )),
        other => other,
    }
}

/// Writes down what is there, before anything is done. What a takeover that was killed has written is how it was; after one
/// that came to its end, only what is new is added, and what is to stay the same is what there is now. Of a Flux that was
/// brought back since, all is written down anew.
async fn recorded(
    cluster: &Cluster,
    platform: &Platform,
    scene: &Scene,
    report_line: &impl Fn(&str),
) -> Result<Record, Failure> {
    let at_work: Vec<ObjectId> = scene.rivals.iter().map(|rival| rival.id.clone()).collect();
    let known = scene.record.clone();
    let mut record = match known.map(|record| record.since(scene.is_released(), &at_work)) {
        Some(Known::Whole(record)) if record.stage == Stage::Begun => {
            report_line("a takeover was begun before; going on");
            record
        }
        Some(Known::Whole(record) | Known::Part(record)) => Record {
            before: Snapshot::take(cluster, platform).await?,
            stage: Stage::Begun,
            ..record
        },
        None => Record {
            before: Snapshot::take(cluster, platform).await?,
            ..Record::new()
        },
    };
    let displaced: Vec<ObjectId> = scene.displaced().iter().map(|rival| rival.id.clone()).collect();
    record.add(components(platform, &scene.taken(), Fate::Replaced).await?);
    record.add(components(platform, &displaced, Fate::ScaledDown).await?);
    for id in &scene.deliverers {
        if !record.suspended.contains(id) {
            record.suspended.push(id.clone());
        }
    }
    record.own = scene.plan.changes.iter().map(|(id, _)| id.clone()).collect();
    record::save(&platform.client, &platform.namespace, &record).await?;
    report_line(&format!(
        "recorded {} objects of Flux's kinds and {} that they have delivered, in Secret {}/{}",
        record.before.objects.len(),
        record.before.inventory.len(),
        platform.namespace,
        record::NAME
    ));
    Ok(record)
}

/// Reads objects of Flux as they are. Definitions stay, and of Secrets nothing is kept.
async fn components(platform: &Platform, ids: &[ObjectId], fate: Fate) -> Result<Vec<Component>, Failure> {
    let mut found = Vec::new();
    let kept = |id: &&ObjectId| !matches!(id.kind.as_str(), "CustomResourceDefinition" | "Secret");
    for id in ids.iter().filter(kept) {
        // All kinds of the chart are of a `v1`.
        let api_version = match id.group.as_str() {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        };
        let object = json!({"apiVersion": api_version, "kind": id.kind,
            "metadata": {"name": id.name, "namespace": id.namespace}});
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, objects::of_value(&object), "").await?;
        if let Some(live) = located.live().await? {
            found.push(Component {
                fate,
                manager: managers::applier(&live),
                object: objects::as_declared(live, &located.resource.api),
            });
        }
    }
    Ok(found)
}

/// Changes that a takeover makes itself.
fn expected(record: &Record) -> Expected {
    let components: Vec<ObjectId> = record.components.iter().map(Component::id).collect();
    Expected {
        changed: Expected::ids(record.own.iter().chain(&record.suspended).chain(&components)),
        ..Expected::default()
    }
}
