//! A process that is killed at any point loses time only: the next run goes on, and a new spec is always released.

use std::collections::{BTreeMap, VecDeque};

use helm_release::Status;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use crate::release::begin;
use crate::release::testing::{World, desired, object};

/// One run: the values that are desired, how actions end, and after how many effects the process is killed.
#[derive(Clone, Debug)]
struct Planned {
    value: u8,
    script: BTreeMap<String, VecDeque<String>>,
    dies_after: Option<usize>,
    /// Change to the storage by someone else before it.
    meddling: Option<Meddling>,
}

/// Changes that people make to Helm's storage.
#[derive(Clone, Copy, Debug)]
enum Meddling {
    /// They release themselves, which ends in this status.
    Release(&'static str),
    /// They change the newest record.
    Touch,
    /// They delete the newest record.
    DeleteNewest,
    /// They delete all but the newest record.
    DeleteOthers,
}

fn planned() -> impl Strategy<Value = Planned> {
    let ending = prop_oneof![
        3 => Just("ok"), 3 => Just("failed"), 1 => Just("early"), 1 => Just("stuck"), 1 => Just("errors"),
    ];
    let actions = ["install", "upgrade", "rollback", "uninstall", "test"];
    let script = prop::collection::vec(ending, actions.len()).prop_map(move |endings| {
        let queue = |(action, how): (&str, &str)| (action.to_owned(), VecDeque::from([how.to_owned()]));
        actions.into_iter().zip(endings).map(queue).collect()
    });
    let meddling = prop_oneof![
        prop::sample::select(vec![
            "deployed",
            "failed",
            "superseded",
            "uninstalled",
            "uninstalling",
            "pending-install",
            "pending-upgrade",
            "pending-rollback",
        ])
        .prop_map(Meddling::Release),
        Just(Meddling::Touch),
        Just(Meddling::DeleteNewest),
        Just(Meddling::DeleteOthers),
    ];
    let dies_after = prop::option::weighted(0.7, 0_usize..12);
    let meddling = prop::option::weighted(0.2, meddling);
    let parts = (0_u8..3, script, dies_after, meddling);
    parts.prop_map(|(value, script, dies_after, meddling)| Planned {
        value,
        script,
        dies_after,
        meddling,
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let side = prop_oneof![
        Just(json!({})),
        Just(json!({"strategy": {"name": "RetryOnFailure"}})),
        (-1_i64..3, any::<bool>()).prop_map(
            |(retries, last)| json!({"remediation": {"retries": retries, "remediateLastFailure": last}})
        ),
    ];
    let upgrade = prop_oneof![
        side.clone(),
        (-1_i64..3).prop_map(|retries| json!({"remediation": {"retries": retries, "strategy": "uninstall"}})),
    ];
    (side, upgrade, any::<bool>(), any::<bool>()).prop_map(|(install, upgrade, test, keep)| {
        json!({
            "install": install, "upgrade": upgrade,
            "test": {"enable": test}, "uninstall": {"keepHistory": keep},
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_killed_process_leaves_nothing_that_the_next_cannot_go_on_from(
        spec in spec(),
        plan in prop::collection::vec(planned(), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(go_through(&spec, plan));
    }
}

async fn go_through(spec: &Value, plan: Vec<Planned>) {
    let mut world = World {
        place: ("web".to_owned(), "apps".to_owned()),
        tests: vec!["t".to_owned()],
        refuses: true,
        keeps_history: spec["uninstall"]["keepHistory"] == true,
        ..World::default()
    };
    let mut object = object(spec);
    let mut ended = None;
    for planned in &plan {
        if let Some(meddling) = planned.meddling {
            meddle(&mut world, meddling);
        }
        world.script = planned.script.clone();
        world.dies_after = planned.dies_after;
        ended = Some(run(&mut world, &object, planned.value).await);
    }
    let value = plan.last().map_or(0, |planned| planned.value);
    // Without a change it goes on as well, unless the policy says that it must not.
    world.script.clear();
    for _ in 0..8 {
        if matches!(ended, Some(Ended::Done | Ended::Stalled(_))) {
            break;
        }
        ended = Some(run(&mut world, &object, value).await);
    }
    prop_ended(ended.as_ref(), &world);
    // A new generation starts afresh.
    object.metadata.generation = Some(2);
    for _ in 0..8 {
        ended = Some(run(&mut world, &object, value).await);
        if ended == Some(Ended::Done) {
            break;
        }
    }
    assert_eq!(ended, Some(Ended::Done), "{}", history_of(&world));
    assert!(
        conditions::is_true(&world.saved.conditions, READY),
        "{}",
        history_of(&world)
    );
    let last = world.records.values().next_back().expect("something is released");
    assert_eq!(last.info.status, Status::Deployed);
    assert_eq!(last.config["a"], value);
    // Someone else may leave more than one; so does Helm when it is killed at the end of an uninstall that keeps the records.
    let alone = !world.keeps_history && plan.iter().all(|planned| planned.meddling.is_none());
    let deployed = world
        .records
        .values()
        .filter(|release| release.info.status == Status::Deployed);
    assert!(!alone || deployed.count() == 1, "{}", history_of(&world));
}

/// Describes a world in which the test failed.
fn history_of(world: &World) -> String {
    let records = world.records.values();
    let records = records.map(|release| format!("v{} {}", release.version, release.info.status));
    let ready = conditions::get(&world.saved.conditions, READY);
    let stalled = conditions::is_stalled(&world.saved.conditions);
    format!(
        "{:?} {:?} {ready:?} {stalled}",
        records.collect::<Vec<_>>(),
        world.performed
    )
}

fn meddle(world: &mut World, meddling: Meddling) {
    match meddling {
        Meddling::Release(status) => {
            let release = world.release(status, "by somebody else");
            world.records.insert(release.version, release);
        }
        Meddling::Touch => {
            if let Some(newest) = world.records.values_mut().next_back() {
                "touched".clone_into(&mut newest.info.description);
            }
        }
        Meddling::DeleteNewest => drop(world.records.pop_last()),
        Meddling::DeleteOthers => {
            let newest = world.records.pop_last();
            world.records = newest.into_iter().collect();
        }
    }
}

fn prop_ended(ended: Option<&Ended>, world: &World) {
    assert!(
        matches!(ended, Some(Ended::Done | Ended::Stalled(_))),
        "{ended:?} {}",
        history_of(world)
    );
}

/// One run of a process that knows what was saved, and may be killed in it.
async fn run(world: &mut World, object: &HelmRelease, value: u8) -> Ended {
    let values = json!({"a": value});
    world.values = values.as_object().unwrap().clone();
    let desired = desired(&values);
    let mut status = world.saved.clone();
    begin(object, &mut status, &desired);
    let performed = world.performed.len();
    let ended = drive(world, object, &mut status, &desired).await;
    assert!(
        world.performed.len() - performed <= 5,
        "no run goes on for long: {:?}",
        world.performed
    );
    if ended.observes_generation() {
        status.observed_generation = object.metadata.generation;
    }
    // The last write is the caller's, and may not happen either.
    let _ = world.save(&status).await;
    world.revive();
    ended
}
