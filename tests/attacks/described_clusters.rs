//! A tenant describes a cluster of their own in a ConfigMap, to be shown the controller's token there.
//!
//! They hold: a Kustomization with `spec.kubeConfig.configMapRef` in a namespace of their own, and the server that the ConfigMap
//! names. With a default account set, that server must not even be asked as the controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::ensure;
use serde_json::json;
use testkit::git::Change;
use testkit::objects;
use tokio::net::TcpListener;

use crate::scene::{KUSTOMIZE, play};

#[test]
fn a_described_cluster_is_not_shown_the_identity_of_the_controller() {
    play("described", |scene| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("https://{}", listener.local_addr()?);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any", "namespace": "default"}});
        repository.commit(
            "main",
            "any",
            &[Change::write("deploy/map.yaml", map.to_string())],
        )?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        for (name, audience) in [
            ("own", address.as_str()),
            ("artifacts", "windlass-artifact"),
            ("cloud", "sts.amazonaws.com"),
        ] {
            let cluster = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": scene.attacker},
                "data": {"provider": "generic", "address": address, "audiences": audience}});
            scene.apply(&cluster).await?;
            let object = scene.kustomization(name, ("GitRepository", "app"));
            let remote = json!({"kubeConfig": {"configMapRef": {"name": name}}, "retryInterval": "1h"});
            scene.apply(&objects::with_spec(object, remote)).await?;
            let kustomizations = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
            let message = scene.refused(&kustomizations, name).await?;
            ensure!(
                message.contains("the controller's own identity is not for tenants"),
                "{message}"
            );
        }
        ensure!(
            asked.load(Ordering::Relaxed) == 0,
            "the tenant's server was asked"
        );
        Ok(())
    });
}
