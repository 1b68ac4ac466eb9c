//! The certificate authority of the artifact service: made, raced for, deleted, damaged and replaced while clients go on.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use testkit::artifact_access::{self, AUDIENCE};
use testkit::git::{Change, Repository};
use testkit::{Controller, certificates, objects, wait_for};

use crate::service::{
    AUTHORITY, artifact_of, bundle, eventually, open, start_apply, start_source, start_source_without_http,
};
use crate::world::{PATIENCE, Test, config_map, run};

const KEPT: &str = "authorities.json";

#[test]
fn controllers_that_start_together_share_one_authority() {
    run("authority-race", |test| async move {
        let (ns, client) = (&test.namespace, &test.client);
        artifact_access::allow_all(client, ns, "reader").await?;
        let token = artifact_access::token(client, ns, "reader", AUDIENCE).await?;
        for _ in 0..3 {
            let (one, two, three) = tokio::try_join!(
                start_source(&test, &[]),
                start_source(&test, &[]),
                start_source(&test, &[])
            )?;
            ensure!(authorities(&test).await?.len() == 1);
            let authority = bundle(&test).await?;
            ensure!(authority == bundle_of_secret(&test).await?);
            // All of them show certificates of it. Their stores are empty.
            for source in [&one, &two, &three] {
                let nothing = artifact::client::ArtifactRef {
                    object: artifact::client::SourceObject::new("GitRepository", &test.namespace, "none"),
                    url: "http://127.0.0.1:1/none".to_owned(),
                    digest: format!("sha256:{}", "0".repeat(64)),
                    revision: String::new(),
                };
                let error = open(&source.grpc_url(), &authority, Some(&token), &nothing).await;
                let error = error.err().context("there is nothing to open")?;
                ensure!(
                    !source.log().contains("\"level\":\"error\""),
                    "{error}: {}",
                    source.log()
                );
            }
            drop((one, two, three));
            secrets(&test).delete(AUTHORITY, &DeleteParams::default()).await?;
        }
        artifact_access::forbid_all(client, ns, "reader").await
    });
}

#[test]
fn clients_go_on_when_the_authority_is_deleted_damaged_or_renewed() {
    run("authority", |test| async move {
        let mut source = start_source_without_http(&test, &[]).await?;
        let _apply = start_apply(&test, &source, &[]).await?;
        let mut delivery = Delivery::start(&test).await?;
        let first = bundle(&test).await?;
        ensure!(!format!("{:?}", test.config_maps().get(AUTHORITY).await?).contains("PRIVATE KEY"));

        // Deleted: there is a new one at once, which clients learn of from the ConfigMap.
        secrets(&test).delete(AUTHORITY, &DeleteParams::default()).await?;
        let is_new = |map: &ConfigMap| bundle_in(map).is_some_and(|bundle| *bundle != first);
        wait_for(&test.config_maps(), AUTHORITY, is_new, PATIENCE).await?;
        ensure!(bundle(&test).await? == bundle_of_secret(&test).await?);
        source.kill();
        source.restart().await?;
        delivery.push_and_wait().await?;

        // The ConfigMap alone is written again.
        test.config_maps()
            .delete(AUTHORITY, &DeleteParams::default())
            .await?;
        wait_for(&test.config_maps(), AUTHORITY, |_| true, PATIENCE).await?;
        delivery.push_and_wait().await?;

        // Damaged: told, and the service goes on with the certificate that it has.
        write_authorities(&test, |_| json!("nonsense")).await?;
        let helps = "delete it to have a new one made";
        eventually(async || {
            ensure!(source.log().contains(helps), "{}", source.log());
            Ok(())
        })
        .await?;
        delivery.push_and_wait().await?;
        secrets(&test).delete(AUTHORITY, &DeleteParams::default()).await?;
        wait_for(&secrets(&test), AUTHORITY, |_| true, PATIENCE).await?;

        // With a third of its life left a second one is announced, and signs an hour after that.
        let now = Timestamp::now();
        write_authorities(&test, |authorities| {
            with(
                authorities,
                "notAfter",
                now + SignedDuration::from_hours(100 * 24),
            )
        })
        .await?;
        let has_two = |map: &ConfigMap| {
            bundle_in(map).is_some_and(|bundle| bundle.matches("BEGIN CERTIFICATE").count() == 2)
        };
        wait_for(&test.config_maps(), AUTHORITY, has_two, PATIENCE).await?;
        let [newer, older] = certificates_of(&bundle(&test).await?)?;
        delivery.push_and_wait().await?;
        delivery.served_with(&source, &older).await?;
        write_authorities(&test, |authorities| {
            with(authorities, "notBefore", now - SignedDuration::from_hours(2))
        })
        .await?;
        eventually(async || delivery.served_with(&source, &newer).await).await?;
        source.kill();
        source.restart().await?;
        delivery.push_and_wait().await?;
        test.delete_kustomization("app").await
    });
}

#[test]
fn given_certificates_are_read_again_when_they_are_replaced() {
    run("given", |test| async move {
        let folder = testkit::scratch::directory("given")?;
        let authority = install(folder.path())?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let flags = [
            format!("--grpc-tls-cert-file={}", path("apiserver.crt")),
            format!("--grpc-tls-key-file={}", path("apiserver.key")),
        ];
        let mut source = start_source_without_http(&test, &flags).await?;
        let _apply = start_apply(
            &test,
            &source,
            &[format!("--artifact-ca-file={}", path("ca.crt"))],
        )
        .await?;
        let mut delivery = Delivery::start(&test).await?;
        ensure!(secrets(&test).get_opt(AUTHORITY).await?.is_none());
        delivery.served_with(&source, &authority).await?;

        let next = install(folder.path())?;
        eventually(async || delivery.served_with(&source, &next).await).await?;
        ensure!(delivery.served_with(&source, &authority).await.is_err());
        // apply-controller's connection is from before; the next one trusts the replaced file.
        source.kill();
        source.restart().await?;
        delivery.push_and_wait().await?;

        // A pair that does not fit leaves the certificate as it is.
        std::fs::write(path("apiserver.key"), "nonsense")?;
        delivery.served_with(&source, &next).await?;
        ensure!(
            source.log().contains("failed to read the changed certificate"),
            "{}",
            source.log()
        );
        test.delete_kustomization("app").await
    });
}

/// Writes an authority and certificate with key for 127.0.0.1, each by renaming; returns the authority.
fn install(folder: &Path) -> Result<String> {
    let new = testkit::scratch::directory("new")?;
    let made = certificates::write(new.path(), &["127.0.0.1"])?;
    for name in ["ca.crt", "apiserver.crt", "apiserver.key"] {
        let unfinished = folder.join(format!("{name}.new"));
        std::fs::copy(new.path().join(name), &unfinished)?;
        std::fs::rename(&unfinished, folder.join(name))?;
    }
    Ok(made.authority)
}

/// A Kustomization that follows commits, and someone who may read its source.
struct Delivery<'a> {
    test: &'a Test,
    repository: Repository,
    token: String,
    count: u32,
}

impl<'a> Delivery<'a> {
    async fn start(test: &'a Test) -> Result<Self> {
        let ns = &test.namespace;
        let repository = test.repository(&[("deploy/a.yaml", config_map(ns, "a", "0"))])?;
        test.apply(&test.in_own_shard(objects::git_repository(ns, "app", repository.url(), "main")))
            .await?;
        test.apply(&test.in_own_shard(test.kustomization("app", json!({"retryInterval": "1s"}))))
            .await?;
        test.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await?;
        artifact_access::create_account(&test.client, ns, "reader").await?;
        artifact_access::allow_in_namespace(&test.client, ns, "reader", "gitrepositories").await?;
        Ok(Self {
            test,
            repository,
            token: artifact_access::token(&test.client, ns, "reader", AUDIENCE).await?,
            count: 0,
        })
    }

    async fn push_and_wait(&mut self) -> Result<()> {
        self.count += 1;
        let content = config_map(&self.test.namespace, "a", &self.count.to_string());
        let revision = self
            .test
            .push(&self.repository, &[Change::write("deploy/a.yaml", content)])
            .await?;
        self.test.ready("app", &revision).await.map(drop)
    }

    /// Whether a new connection that trusts this authority alone can read.
    async fn served_with(&self, source: &Controller, authority: &str) -> Result<()> {
        let artifact = artifact_of(self.test).await?;
        open(&source.grpc_url(), authority, Some(&self.token), &artifact).await?;
        Ok(())
    }
}

fn secrets(test: &Test) -> Api<Secret> {
    Api::namespaced(test.client.clone(), &test.namespace)
}

fn bundle_in(map: &ConfigMap) -> Option<&String> {
    map.data.as_ref()?.get("ca.crt")
}

fn certificates_of(bundle: &str) -> Result<[String; 2]> {
    let (first, second) = bundle
        .split_once("-----END CERTIFICATE-----")
        .context("there is no certificate")?;
    Ok([
        format!("{first}-----END CERTIFICATE-----\n"),
        second.trim_start().to_owned(),
    ])
}

async fn bundle_of_secret(test: &Test) -> Result<String> {
    let data = secrets(test).get(AUTHORITY).await?.data.unwrap_or_default();
    let bundle = data.get("ca.crt").context("the Secret has no ca.crt")?;
    Ok(String::from_utf8(bundle.0.clone())?)
}

async fn authorities(test: &Test) -> Result<Vec<Value>> {
    let data = secrets(test).get(AUTHORITY).await?.data.unwrap_or_default();
    let kept = data.get(KEPT).context("the Secret has no authorities")?;
    Ok(serde_json::from_slice(&kept.0)?)
}

/// Changes what is kept, as someone with kubectl would.
async fn write_authorities(test: &Test, change: impl FnOnce(Vec<Value>) -> Value) -> Result<()> {
    let changed = change(authorities(test).await?);
    let api = secrets(test);
    let mut secret = api.get(AUTHORITY).await?;
    let data = secret.data.get_or_insert_default();
    data.insert(KEPT.to_owned(), ByteString(serde_json::to_vec(&changed)?));
    api.replace(AUTHORITY, &PostParams::default(), &secret).await?;
    Ok(())
}

/// The newest one with another time.
fn with(mut authorities: Vec<Value>, field: &str, time: Timestamp) -> Value {
    if let Some(newest) = authorities.first_mut() {
        newest[field] = json!(time.to_string());
    }
    Value::from(authorities)
}
