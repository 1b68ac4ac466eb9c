//! kubeConfig of HelmReleases: releases in another cluster, and ends of objects whose cluster no one knows any more.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams};
use serde_json::json;
use testkit::objects::condition;
use testkit::{ControlPlane, Controller, Options};

use crate::helm::{chart, run};
use crate::remote_identity::{Other, account};

#[test]
fn a_release_is_made_and_kept_in_the_other_cluster() {
    run("helm-remote", |test| async move {
        let ns = &test.namespace;
        let remote = ControlPlane::start(Options::api_server_only()).await?;
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(ns.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let namespaces = Api::<Namespace>::all(remote.client());
        namespaces.create(&PostParams::default(), &namespace).await?;
        test.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "remote", "namespace": ns},
            "stringData": {"value": std::fs::read_to_string(remote.kubeconfig_path())?},
        }))
        .await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        let release = test.release(json!({"kubeConfig": {"secretRef": {"name": "remote"}}}));
        test.apply(&release).await?;
        test.ready().await?;
        let maps: Api<ConfigMap> = Api::namespaced(remote.client(), ns);
        maps.get("web-map").await.context("it should be there")?;
        let secrets: Api<Secret> = Api::namespaced(remote.client(), ns);
        let records = ListParams::default().labels("owner=helm");
        ensure!(secrets.list(&records).await?.items.len() == 1);
        test.no_config_map("web-map").await?;
        test.delete().await?;
        ensure!(maps.get_opt("web-map").await?.is_none() && secrets.list(&records).await?.items.is_empty());

        test.apply(&release).await?;
        test.ready().await?;
        let own: Api<Secret> = Api::namespaced(test.client.clone(), ns);
        own.delete("remote", &DeleteParams::default()).await?;
        test.delete().await?;
        maps.get("web-map").await.context("nobody could delete it")?;
        Ok(())
    });
}

#[test]
fn a_service_account_of_this_cluster_releases_in_the_other_one() {
    run("helm-generic", |test| async move {
        let ns = &test.namespace;
        let other = Other::start(&test).await?;
        let mut options = test.own_shard();
        options
            .flags
            .push("--feature-gates=ObjectLevelWorkloadIdentity=true".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let helm = Controller::start_helm(kubeconfig, &test.world.source, options).await?;
        test.oci_chart("1.0.0", chart("1.0.0", &[])?).await?;
        account(&test, "remote").await?;
        account(&test, "nobody").await?;

        // Who is known there and may do nothing.
        other.describe(&test, Some("nobody")).await?;
        let release = |value: &str| {
            test.in_own_shard(test.release(json!({
                "kubeConfig": {"configMapRef": {"name": "cluster"}}, "values": {"value": value},
            })))
        };
        test.apply(&release("one")).await?;
        let is_forbidden = |object: &DynamicObject| {
            let words = format!("User \"first:system:serviceaccount:{ns}:nobody\" cannot");
            condition(object, "Ready")
                .is_some_and(|(status, _, message)| status == "False" && message.contains(&words))
        };
        test.when(is_forbidden).await?;

        // A changed ConfigMap is seen at once.
        other.allow(&test, "remote").await?;
        other.describe(&test, Some("remote")).await?;
        test.ready().await?;
        let maps = other.maps(&test);
        maps.get("web-map").await.context("it should be there")?;
        test.no_config_map("web-map").await?;
        ensure!(test.records("web").await?.is_empty(), "records belong there too");
        test.apply(&release("two")).await?;
        test.ready_at(2).await?;
        let map = maps.get("web-map").await?;
        ensure!(map.data.unwrap_or_default().get("value").map(String::as_str) == Some("two"));
        test.delete().await?;
        ensure!(maps.get_opt("web-map").await?.is_none());
        // Tokens begin so.
        ensure!(!helm.log().contains("eyJ"), "a token was logged");
        Ok(())
    });
}
