//! kubeConfig of HelmReleases: releases in another cluster, and ends of objects whose cluster nobody knows any more.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use serde_json::json;
use testkit::{ControlPlane, Options};

use crate::helm::{chart, run};

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
