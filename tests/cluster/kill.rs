//! kill -9 of each controller at random moments of a sync: nothing is lost, nothing is doubled.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::json;
use testkit::Controller;
use testkit::git::Change;
use testkit::objects::{self, is_ready, text};

use crate::world::{PATIENCE, Test, config_map, inventory_of, run};

const ROUNDS: u64 = 10;

#[derive(Clone, Copy)]
enum Victim {
    Source,
    Apply,
}

#[test]
fn source_controller_survives_being_killed_at_any_moment() {
    run("kill-source", |test| async move {
        rounds(&test, Victim::Source).await
    });
}

#[test]
fn apply_controller_survives_being_killed_at_any_moment() {
    run(
        "kill-apply",
        |test| async move { rounds(&test, Victim::Apply).await },
    );
}

/// Each round pushes a commit that adds one object, changes one and removes one; kills the victim a random time after; starts
/// it again, and checks that the cluster is what the commit says.
async fn rounds(test: &Test, victim: Victim) -> Result<()> {
    let ns = &test.namespace;
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    let mut source = Controller::start_source(kubeconfig, test.own_shard()).await?;
    let mut apply = Controller::start_apply(kubeconfig, &source, test.own_shard()).await?;
    let repository = test.repository(&files_of(ns, 0))?;
    let git = objects::git_repository(ns, "app", repository.url(), "main");
    test.apply(&test.in_own_shard(objects::with_spec(git, json!({"interval": "1s"}))))
        .await?;
    test.apply(&test.in_own_shard(test.kustomization("app", json!({"retryInterval": "1s"}))))
        .await?;
    test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
        .await?;

    let mut random = Random::new();
    for round in 1..=ROUNDS {
        let mut changes: Vec<_> = files_of(ns, round)
            .into_iter()
            .map(|(path, text)| Change::write(&path, text))
            .collect();
        changes.push(Change::delete(&format!("deploy/extra-{}.yaml", round - 1)));
        let revision = test.push(&repository, &changes).await?;
        // A sync takes about a quarter of a second here; the moment of death is the point of the test.
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        let victim = match victim {
            Victim::Source => &mut source,
            Victim::Apply => &mut apply,
        };
        victim.kill();
        victim.restart().await?;
        let object = test.ready("app", &revision).await?;
        check(test, &object, round).await?;
    }
    // The shard's objects must be gone before its controllers are.
    test.delete_kustomization("app").await?;
    let left = managed(test).await?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    ensure!(is_ready(&test.git_repositories().get("app").await?));
    Ok(())
}

fn files_of(ns: &str, round: u64) -> Vec<(String, String)> {
    vec![
        ("deploy/same.yaml".to_owned(), config_map(ns, "same", "same")),
        (
            "deploy/changed.yaml".to_owned(),
            config_map(ns, "changed", &round.to_string()),
        ),
        (
            format!("deploy/extra-{round}.yaml"),
            config_map(ns, &format!("extra-{round}"), "here"),
        ),
    ]
}

/// Nothing lost, nothing left: the cluster, the inventory and the commit name the same objects.
async fn check(test: &Test, object: &kube::api::DynamicObject, round: u64) -> Result<()> {
    let ns = &test.namespace;
    test.config_map_has("changed", "key", &round.to_string()).await?;
    test.config_map_gone(&format!("extra-{}", round - 1)).await?;
    let expected = ["changed".to_owned(), format!("extra-{round}"), "same".to_owned()];
    let managed = managed(test).await?;
    ensure!(managed == expected, "in the cluster: {managed:?}");
    let mut inventory = inventory_of(object);
    inventory.sort();
    let ids: Vec<_> = expected
        .iter()
        .map(|name| format!("{ns}_{name}__ConfigMap"))
        .collect();
    ensure!(inventory == ids, "in the inventory: {inventory:?}");
    ensure!(text(object, "/status/lastAttemptedRevision") == text(object, "/status/lastAppliedRevision"));
    Ok(())
}

async fn managed(test: &Test) -> Result<Vec<String>> {
    let labelled = ListParams::default().labels("kustomize.toolkit.fluxcd.io/name=app");
    let list = tokio::time::timeout(PATIENCE, test.config_maps().list(&labelled)).await??;
    let alive = list
        .items
        .into_iter()
        .filter(|map: &ConfigMap| map.metadata.deletion_timestamp.is_none());
    let mut names: Vec<_> = alive.filter_map(|map| map.metadata.name).collect();
    names.sort();
    Ok(names)
}

/// A small generator, seeded by the clock; the delays are printed so that a failure can be followed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Self(now.as_nanos() as u64 | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let value = self.0 % limit;
        println!("killed after {value} ms");
        value
    }
}
