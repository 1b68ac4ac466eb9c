//! Scenarios that Flux's own code went through.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use api::meta::HELM_GROUP;
use controller_kit::events::Severity;
use helm_release::Status;
use kube::ResourceExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::super::*;
use crate::release::testing::{self, ChartOf, World};
use crate::release::{Event, begin, delete, history, reasons, target};

#[derive(Deserialize)]
struct Scenario {
    name: String,
    #[serde(default)]
    gate: bool,
    #[serde(default)]
    tests: Vec<String>,
    runs: Vec<Once>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Once {
    spec: Option<Value>,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    chart: Option<ChartOf>,
    oci_digest: Option<String>,
    values: Option<Map<String, Value>>,
    storage: Vec<String>,
    script: BTreeMap<String, VecDeque<String>>,
    came: Option<String>,
    sum: Option<String>,
    stop: bool,
}

#[tokio::test]
async fn every_run_ends_as_flux_ends_it() {
    let mut wrong = Vec::new();
    let mut runs = 0;
    for line in include_str!("../../../../tests/state.jsonl").lines() {
        let scenario: Scenario = serde_json::from_str(line).unwrap();
        runs += scenario.runs.len();
        if let Err(difference) = go_through(scenario).await {
            wrong.push(difference);
        }
    }
    assert!(runs > 900, "{runs}");
    let shown = wrong.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} scenarios differ\n{shown}", wrong.len());
}

async fn go_through(scenario: Scenario) -> Result<(), String> {
    let mut object = testing::object(&serde_json::json!({}));
    let mut status = HelmReleaseStatus::default();
    let mut world = World {
        tests: scenario.tests,
        ..World::default()
    };
    let mut oci_digest = None;
    for (number, run) in scenario.runs.into_iter().enumerate() {
        if let Some(spec) = &run.spec {
            object.spec = testing::object(spec).spec;
        }
        object.metadata.generation = run.generation.or(object.metadata.generation);
        if let Some(annotations) = run.annotations {
            *object.annotations_mut() = annotations;
        }
        world.chart = run.chart.unwrap_or(world.chart);
        world.values = run.values.unwrap_or(world.values);
        world.script = run.script;
        world.keeps_history = object
            .spec
            .uninstall
            .as_ref()
            .is_some_and(|uninstall| uninstall.keep_history);
        world.place = (target::release_name(&object), target::release_namespace(&object));
        oci_digest = run.oci_digest.or(oci_digest);
        world.events.clear();
        world.performed.clear();
        for command in &run.storage {
            command_storage(&mut world, command);
        }
        let chart = &world.chart;
        let mut desired = Desired::new(&chart.name, &chart.version, &chart.app_version, &world.values);
        desired.oci_digest.clone_from(&oci_digest);
        desired.retries_by_default = scenario.gate;
        let ended = reconcile(&mut world, &object, &mut status, &desired).await;
        let came = describe(&ended, &status, &world);
        let sum = hex::encode(&Sha256::digest(&came)[..8]);
        if run.stop {
            break;
        }
        if run.came.as_ref().is_some_and(|expected| *expected != came)
            || run.sum.as_ref().is_some_and(|expected| *expected != sum)
        {
            let expected = run.came.unwrap_or_default();
            return Err(format!(
                "{}, run {number}\n--- flux\n{expected}\n--- windlass\n{came}",
                scenario.name
            ));
        }
    }
    Ok(())
}

/// Does what the reconciler does around the loop.
async fn reconcile(
    world: &mut World,
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
    desired: &Desired,
) -> String {
    let now = world.now();
    Ledger::new(object, status, now).reconciling(common::PROGRESSING, "Fulfilling prerequisites");
    let ended = if target::must_reinstall(object, status, &desired.chart_name).is_some() {
        match delete::uninstall(world, object, status).await {
            Ok(()) => Ended::Requeue,
            Err(failure) => Ended::Failed(failure),
        }
    } else {
        begin(object, status, desired);
        drive(world, object, status, desired).await
    };
    if ended.observes_generation() {
        status.observed_generation = object.metadata.generation;
    }
    if let Some(request) = object.annotations().get(api::meta::RECONCILE_REQUEST_ANNOTATION) {
        status.last_handled_reconcile_at = Some(request.clone());
    }
    match ended {
        Ended::Done => "done".to_owned(),
        Ended::Requeue => "requeue".to_owned(),
        Ended::RetryAfter(interval) => format!("retry after {interval}"),
        Ended::Stalled(_) => "stalled".to_owned(),
        Ended::Failed(_) => "failed".to_owned(),
        Ended::Frozen => "frozen".to_owned(),
        Ended::Cancelled => "cancelled".to_owned(),
    }
}

/// Applies a change by someone else to Helm's storage.
fn command_storage(world: &mut World, command: &str) {
    let status = match command {
        "release" => Status::Deployed,
        "pending" => Status::PendingInstall,
        "uninstalled" => Status::Uninstalled,
        "touch" => {
            world.records.values_mut().next_back().unwrap().info.description = "touched".to_owned();
            return;
        }
        "delete" => {
            world.records.pop_last();
            return;
        }
        "clear" => return world.records.clear(),
        other => panic!("no such command: {other}"),
    };
    let release = world.release(status.as_str(), "by somebody else");
    world.records.insert(release.version, release);
}

/// A message without what Flux does not say: that someone else changed the release.
fn without_explanation(message: &str) -> &str {
    let begins = [" (found revision ", " (release "].map(|words| message.find(words));
    begins
        .into_iter()
        .flatten()
        .min()
        .map_or(message, |at| &message[..at])
}

/// Enough of a digest to know it by.
fn short(digest: &str) -> &str {
    &digest[..digest.len().min(15)]
}

fn describe(ended: &str, status: &HelmReleaseStatus, world: &World) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        writeln!(text, "{line}").unwrap();
    };
    let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
    line(format!("ended: {ended}"));
    line(format!("performed: {}", world.performed.join(", ")));
    for condition in &status.conditions {
        line(format!(
            "{}={} {} @{}: {}",
            condition.type_,
            condition.status,
            condition.reason,
            condition.observed_generation.unwrap_or_default(),
            without_explanation(&condition.message)
        ));
    }
    for snapshot in &status.history {
        let tests = snapshot.test_hooks.as_ref().map_or("-".to_owned(), |tests| {
            let test = |(name, test): (&String, &api::helm::TestHookStatus)| {
                format!("{name}:{}", or_none(&test.phase))
            };
            tests.iter().map(test).collect::<Vec<_>>().join(",")
        });
        line(format!(
            "history: {} {} {} app {} values {} oci {} tests {tests} digest {}",
            history::full_name(snapshot),
            snapshot.status,
            history::versioned_chart(snapshot),
            or_none(&snapshot.app_version),
            short(&snapshot.config_digest),
            or_none(&snapshot.oci_digest),
            short(&snapshot.digest)
        ));
    }
    line(format!(
        "failures: {} install {} upgrade {} after {}",
        status.failures,
        status.install_failures,
        status.upgrade_failures,
        status
            .last_attempted_release_action
            .map(reasons::verb)
            .unwrap_or_default()
    ));
    line(format!(
        "attempted: {} {} {} {}",
        status.last_attempted_generation,
        or_none(&status.last_attempted_revision),
        or_none(&status.last_attempted_revision_digest),
        short(&or_none(&status.last_attempted_config_digest))
    ));
    line(format!(
        "observed: {} post {} metadata {}",
        status.observed_generation.unwrap_or_default(),
        short(&or_none(&status.observed_post_renderers_digest)),
        short(&or_none(&status.observed_common_metadata_digest))
    ));
    line(format!(
        "handled: force {} reset {} storage {}",
        or_none(&status.last_handled_force_at),
        or_none(&status.last_handled_reset_at),
        or_none(&status.storage_namespace)
    ));
    for release in world.records.values() {
        let info = &release.info;
        line(format!(
            "stored: v{} {} {}",
            release.version, info.status, info.description
        ));
    }
    let known_to_flux = |event: &&Event| event.reason != reasons::FOREIGN_CHANGE;
    for event in world.events.iter().filter(known_to_flux) {
        let kind = if event.severity == Severity::Error {
            "Warning"
        } else {
            "Normal"
        };
        let prefix = format!("{HELM_GROUP}/");
        let said = event
            .annotations
            .iter()
            .map(|(key, value)| format!("{}={}", key.trim_start_matches(&prefix), short(value)));
        let said = said.collect::<Vec<_>>().join(" ");
        line(format!(
            "event: {kind} {} [{said}] {}",
            event.reason, event.message
        ));
    }
    text
}
