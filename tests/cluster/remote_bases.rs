//! Remote bases of listed servers (ADR 36): fetched by the controller, followed, and told in the history.

use anyhow::ensure;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::{Change, Fault};
use testkit::objects::{self, text};
use testkit::{Controller, wait_for};

use crate::world::{PATIENCE, config_map, run};

const FETCHED: &str = "/status/history/0/metadata/windlass.dev~1fetched";

#[test]
fn bases_of_listed_servers_are_delivered_and_followed() {
    run("remote-bases", |test| async move {
        let ns = &test.namespace;
        let world = test.world;
        let mut options = test.own_shard();
        options
            .flags
            .push(format!("--remote-hosts=http://{}", world.git.address()));
        let kubeconfig = world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &world.source, options).await?;

        let base = world.git.create_repository(&format!("{ns}-base"))?;
        let files = |value: &str| {
            [
                Change::write("app/kustomization.yaml", "resources: [map.yaml, ../more]\n"),
                Change::write("app/map.yaml", config_map(ns, "of-base", value)),
                Change::write(
                    "more/kustomization.yaml",
                    "configMapGenerator: [{name: more, literals: [a=b]}]\n",
                ),
            ]
        };
        let first = base.commit("main", "first", &files("one"))?;
        let entry = format!("{}//app?ref=main", base.url());
        let deploy = format!("namespace: {ns}\nresources: ['{entry}']\n");
        let repository = test.repository(&[("deploy/kustomization.yaml", deploy)])?;
        test.git_source(&repository).await?;
        let spec = json!({"interval": "1h", "retryInterval": "1s", "wait": false});
        test.apply(&test.in_own_shard(test.kustomization("app", spec)))
            .await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let object = test.ready("app", &revision).await?;
        test.config_map_has("of-base", "key", "one").await?;
        let told = |commit: &str| format!("{} main@sha1:{commit}", base.url());
        ensure!(
            text(&object, FETCHED) == told(&first),
            "{}",
            text(&object, FETCHED)
        );

        // The source stays as it is; the base goes on. Another revision of the source does not keep what was built before.
        let second = base.commit("main", "second", &files("two"))?;
        objects::poke(&test.kustomizations(), "app").await?;
        test.config_map_has("of-base", "key", "two").await?;
        let is_told = |object: &DynamicObject| text(object, FETCHED) == told(&second);
        wait_for(&test.kustomizations(), "app", is_told, PATIENCE).await?;

        // A server in trouble takes nothing away, and is asked again.
        world.git.set_fault(&format!("{ns}-base"), Fault::Status(503));
        objects::poke(&test.kustomizations(), "app").await?;
        let message = test
            .not_ready(&test.kustomizations(), "app", "BuildFailed")
            .await?;
        ensure!(
            message.contains("503") && message.contains(base.url()),
            "{message}"
        );
        test.config_map_has("of-base", "key", "two").await?;
        base.commit("main", "third", &files("three"))?;
        world.git.set_fault(&format!("{ns}-base"), None);
        test.config_map_has("of-base", "key", "three").await?;
        test.ready("app", &revision).await?;
        Ok(())
    });
}
