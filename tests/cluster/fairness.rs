//! One tenant's many objects do not delay another's few.

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::json;
use testkit::objects::{self, is_ready};
use testkit::{Controller, wait_for};

use crate::world::{PATIENCE, Test, config_map, run};

const MANY: usize = 300;

/// Waits until the first of many is ready.
async fn first(test: &Test) -> Result<()> {
    let seen = watcher(test.kustomizations(), watcher::Config::default()).applied_objects();
    let mut ready =
        std::pin::pin!(seen.filter(|object| std::future::ready(object.as_ref().is_ok_and(is_ready))));
    tokio::time::timeout(PATIENCE, ready.next())
        .await
        .context("none got ready")
        .map(drop)
}

async fn ready(test: &Test) -> Result<usize> {
    let list = test.kustomizations().list(&ListParams::default()).await?;
    Ok(list.items.iter().filter(|object| is_ready(object)).count())
}

#[test]
fn the_one_kustomization_of_a_tenant_does_not_wait_for_the_three_hundred_of_another() {
    run("fair-many", |test| async move {
        let few = test.world.control_plane.namespace("fair-few").await?;
        let shard = test.own_shard();
        let repository = test.repository(&[
            (
                "deploy/a.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned(),
            ),
            ("few/a.yaml", config_map(&few, "a", "1")),
        ])?;
        test.git_source(&repository).await?;
        let source = json!({"kind": "GitRepository", "name": "app", "namespace": test.namespace});
        for number in 0..MANY {
            let spec = json!({"namePrefix": format!("n{number}-"), "targetNamespace": test.namespace, "wait": false});
            let object = test.in_own_shard(test.kustomization(&format!("many-{number:03}"), spec));
            test.apply(&object).await?;
        }
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, shard).await?;
        first(&test).await?;
        // By now the others wait in line.
        let object = objects::kustomization(&few, "only", ("GitRepository", "app"), "./few");
        let object = objects::with_spec(object, json!({"sourceRef": source, "wait": false}));
        test.apply(&test.in_own_shard(object)).await?;
        let only = objects::api(&test.client, crate::world::KUSTOMIZE, "Kustomization", &few);
        wait_for(&only, "only", is_ready, PATIENCE).await?;
        let ready = ready(&test).await?;
        ensure!(ready < MANY / 2, "{ready} of the others were served before");
        Ok(())
    });
}
