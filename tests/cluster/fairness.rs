//! One tenant's many objects do not delay another's few.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::ListParams;
use serde_json::json;
use testkit::objects::{self, is_ready};
use testkit::{Controller, wait_for};

use crate::world::{Test, config_map, run};

const MANY: usize = 300;

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
        // Everything is there before the controller is: it finds the three hundred first, by their names.
        let source = json!({"kind": "GitRepository", "name": "app", "namespace": test.namespace});
        for number in 0..MANY {
            let spec = json!({"namePrefix": format!("n{number}-"), "targetNamespace": test.namespace, "wait": false});
            let object = test.in_own_shard(test.kustomization(&format!("many-{number:03}"), spec));
            test.apply(&object).await?;
        }
        let object = objects::kustomization(&few, "only", ("GitRepository", "app"), "./few");
        let object = objects::with_spec(object, json!({"sourceRef": source, "wait": false}));
        test.apply(&test.in_own_shard(object)).await?;
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &test.world.source, shard).await?;
        let only = objects::api(&test.client, crate::world::KUSTOMIZE, "Kustomization", &few);
        wait_for(&only, "only", is_ready, Duration::from_secs(120)).await?;
        let ready = ready(&test).await?;
        ensure!(ready < MANY / 3, "{ready} of the others were served before");
        Ok(())
    });
}
