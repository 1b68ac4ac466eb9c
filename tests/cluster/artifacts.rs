//! The two ways of an artifact: the gRPC service (TLS, with a token), and Flux's download over HTTP. Each must do when the other is not there.

use anyhow::Result;
use serde_json::json;
use testkit::Controller;
use testkit::git::Change;
use testkit::objects;

use crate::world::{Test, config_map, run};

#[test]
fn content_comes_from_the_service_when_http_is_not_there() {
    run("only-grpc", |test| async move {
        let nobody = format!("--storage-adv-addr=127.0.0.1:{}", testkit::ports::free_port()?);
        deliver_twice(&test, &nobody, "--http-retry=0").await
    });
}

#[test]
fn content_comes_over_http_when_there_is_no_service() {
    run("only-http", |test| async move {
        deliver_twice(&test, "--log-level=info", "--artifact-service=").await
    });
}

/// Delivers two commits with controllers of its own that get one more flag each.
async fn deliver_twice(test: &Test, source_flag: &str, apply_flag: &str) -> Result<()> {
    let with = |flag: &str| {
        let mut options = test.own_shard();
        options.flags.push(flag.to_owned());
        options
    };
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    let source = Controller::start_source(kubeconfig, with(source_flag)).await?;
    let _apply = Controller::start_apply(kubeconfig, &source, with(apply_flag)).await?;
    let ns = &test.namespace;
    let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "1"))])?;
    test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
        .await?;
    test.apply(&test.in_own_shard(test.kustomization("app", json!({}))))
        .await?;
    test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
        .await?;
    let revision = test
        .push(
            &repository,
            &[Change::write("deploy/a.yaml", config_map(ns, "a", "2"))],
        )
        .await?;
    test.ready("app", &revision).await?;
    test.config_map_has("a", "key", "2").await?;
    // Finalizers are removed by those who set them, and they end with this test.
    test.delete_kustomization("app").await
}
