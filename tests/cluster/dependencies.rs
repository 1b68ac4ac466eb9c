//! dependsOn: order, revision, and waking up without polling.

use anyhow::ensure;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::Change;
use testkit::objects::condition;
use testkit::wait_for;

use crate::world::{PATIENCE, config_map, run};

#[test]
fn a_chain_is_applied_in_order_whatever_the_order_of_creation() {
    run("depends-on", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("one/a.yaml", config_map(ns, "one", "1")),
            ("two/a.yaml", config_map(ns, "two", "1")),
            ("three/a.yaml", config_map(ns, "three", "1")),
        ])?;
        test.git_source(&repository).await?;
        for (name, after) in [("three", Some("two")), ("two", Some("one"))] {
            let depends_on: Vec<_> = after.iter().map(|name| json!({"name": name})).collect();
            test.apply(&test.kustomization(name, json!({"path": name, "dependsOn": depends_on})))
                .await?;
        }
        let message = test
            .not_ready(&test.kustomizations(), "two", "DependencyNotReady")
            .await?;
        ensure!(message == format!("dependency '{ns}/one' not found"), "{message}");
        let message = test
            .not_ready(&test.kustomizations(), "three", "DependencyNotReady")
            .await?;
        ensure!(
            message == format!("dependency '{ns}/two' is not ready"),
            "{message}"
        );
        test.no_config_map("two").await?;
        test.apply(&test.kustomization("one", json!({"path": "one"})))
            .await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("three", &revision).await?;
        let mut created = Vec::new();
        for name in ["one", "two", "three"] {
            created.push(test.config_maps().get(name).await?.metadata.creation_timestamp);
        }
        ensure!(created.is_sorted(), "{created:?}");

        // A new revision goes through the chain in the same order: the first fails, the others must not have it.
        let changes = [
            Change::write(
                "one/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_Valid\n",
            ),
            Change::write("two/a.yaml", config_map(ns, "two", "2")),
        ];
        test.push(&repository, &changes).await?;
        test.not_ready(&test.kustomizations(), "one", "ReconciliationFailed")
            .await?;
        test.not_ready(&test.kustomizations(), "two", "DependencyNotReady")
            .await?;
        test.config_map_has("two", "key", "1").await?;
        let revision = test
            .push(
                &repository,
                &[Change::write("one/a.yaml", config_map(ns, "one", "2"))],
            )
            .await?;
        let object = test.ready("three", &revision).await?;
        test.config_map_has("two", "key", "2").await?;
        ensure!(condition(&object, "Reconciling").is_none());
        Ok(())
    });
}

#[test]
fn a_dependency_that_is_suspended_stays_ready() {
    run("depends-on-suspended", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[
            ("one/a.yaml", config_map(ns, "one", "1")),
            ("two/a.yaml", config_map(ns, "two", "1")),
        ])?;
        test.git_source(&repository).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let one = |suspend: bool| test.kustomization("one", json!({"path": "one", "suspend": suspend}));
        test.apply(&one(false)).await?;
        test.ready("one", &revision).await?;
        // Suspending is a new generation, which nothing else will be done about.
        test.apply(&one(true)).await?;
        let depends_on = json!({"path": "two", "dependsOn": [{"name": "one"}]});
        test.apply(&test.kustomization("two", depends_on)).await?;
        test.ready("two", &revision).await.map(drop)
    });
}

#[test]
fn objects_that_wait_for_each_other_are_named() {
    run("depends-on-cycle", |test| async move {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
        test.git_source(&repository).await?;
        for (name, after) in [("one", "two"), ("two", "three"), ("three", "one")] {
            let spec = json!({"dependsOn": [{"name": after}]});
            test.apply(&test.kustomization(name, spec)).await?;
        }
        let is_named = |object: &DynamicObject| {
            let way = format!("they wait for each other: {ns}/one → {ns}/two → {ns}/three → {ns}/one");
            condition(object, "Ready").is_some_and(|(_, _, message)| message.contains(&way))
        };
        wait_for(&test.kustomizations(), "one", is_named, PATIENCE).await?;
        Ok(())
    });
}
