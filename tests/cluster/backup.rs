//! The backup of artifacts in a bucket: what is lost comes back from it, though the remotes are away.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Fault, Kind};
use testkit::objects::{self, field, is_ready, text};
use testkit::tools::Package;
use testkit::{Controller, HelmRepository, ObjectStore, wait_for, wait_until_gone};

use crate::artifact_replicas::charts;
use crate::service::{eventually, start_apply, start_source};
use crate::world::{PATIENCE, SOURCE, Test, config_map, run};

const BUCKET: &str = "artifacts";

/// A source-controller with a backup in the bucket, below the prefix `clusters/eu`.
async fn source(test: &Test, endpoint: &str) -> Result<Controller> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup", "namespace": test.namespace},
        "stringData": {"accesskey": "test", "secretkey": "test"}});
    test.apply(&secret).await?;
    let flags = [
        format!("--backup-bucket={BUCKET}"),
        format!("--backup-endpoint={endpoint}"),
        "--backup-prefix=clusters/eu".to_owned(),
        "--backup-secret=backup".to_owned(),
        "--backup-insecure".to_owned(),
    ];
    start_source(test, &flags).await
}

/// The names in the bucket, without the prefix.
async fn names(store: &ObjectStore) -> Result<BTreeSet<String>> {
    let listing = store.get_s3(&format!("{BUCKET}?list-type=2")).await?;
    let keys = listing
        .split("<Key>")
        .skip(1)
        .filter_map(|rest| rest.split("</Key>").next());
    Ok(keys
        .map(|key| key.trim_start_matches("clusters/eu/").to_owned())
        .collect())
}

/// Waits until so many records, archives and trees are in the bucket.
async fn kept(
    store: &ObjectStore,
    records: usize,
    archives: usize,
    trees: usize,
) -> Result<BTreeSet<String>> {
    eventually(async || {
        let names = names(store).await?;
        let count = |below: &str| names.iter().filter(|name| name.starts_with(below)).count();
        let there = (count("records/"), count("archives/"), count("trees/"));
        ensure!(there == (records, archives, trees), "{names:?}");
        Ok(names)
    })
    .await
}

fn git_source(test: &Test, url: &str, spec: Value) -> Value {
    let object = objects::git_repository(&test.namespace, "app", url, "main");
    let object = objects::with_spec(object, json!({"interval": "1s", "timeout": "20s"}));
    test.in_own_shard(objects::with_spec(object, spec))
}

/// Deletes an object as if the cluster had never had it: nobody is asked.
async fn lose(test: &Test, kind: &str, name: &str) -> Result<()> {
    let api = test.objects(SOURCE, kind);
    let nobody = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(name, &PatchParams::default(), &nobody).await?;
    api.delete(name, &Default::default()).await?;
    wait_until_gone(&api, name, PATIENCE).await
}

fn fetches(test: &Test) -> usize {
    let all = test.world.git.requests(&test.namespace);
    all.iter().filter(|request| request.kind == Kind::Fetch).count()
}

#[test]
fn a_cluster_that_is_made_anew_delivers_what_ran_before_though_the_remotes_are_away() {
    run("backup", |test| async move {
        let ns = &test.namespace;
        let store = ObjectStore::start(Package::Moto).await?;
        store.make_s3(BUCKET).await?;
        let repository = test.repository(&[("deploy/map.yaml", config_map(ns, "one", "1"))])?;
        let mut source = source(&test, &store.address()).await?;
        let mut apply = start_apply(&test, &source, &[]).await?;
        test.apply(&git_source(&test, repository.url(), json!({})))
            .await?;
        let server = HelmRepository::start().await?;
        charts(&test, &server).await?;
        let kustomization = test.in_own_shard(test.kustomization("app", json!({"retryInterval": "1s"})));
        test.apply(&kustomization).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        kept(&store, 3, 3, 2).await?;
        let artifact = field(&test.git_repositories().get("app").await?, "/status/artifact").cloned();
        let chart = field(
            &test.objects(SOURCE, "HelmChart").get("web").await?,
            "/status/artifact",
        )
        .cloned();

        // Everything is gone but the bucket.
        source.kill();
        apply.kill();
        test.world.git.set_fault(ns, Fault::Status(503));
        server.set_failing(Some(503));
        std::fs::remove_dir_all(source.storage_path())?;
        std::fs::create_dir_all(source.storage_path())?;
        for (kind, name) in [
            ("GitRepository", "app"),
            ("HelmRepository", "charts"),
            ("HelmChart", "web"),
        ] {
            lose(&test, kind, name).await?;
        }
        let (maps, all) = (test.config_maps(), test.kustomizations());
        let nobody = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        all.patch("app", &PatchParams::default(), &nobody).await?;
        all.delete("app", &Default::default()).await?;
        maps.delete("one", &Default::default()).await?;
        let fetched = fetches(&test);

        source.restart().await?;
        apply.restart().await?;
        test.apply(&git_source(&test, repository.url(), json!({"interval": "2s"})))
            .await?;
        charts_again(&test, &server).await?;
        test.apply(&kustomization).await?;
        test.ready("app", &revision).await?;
        test.config_map_has("one", "key", "1").await?;
        let back = test.git_repositories().get("app").await?;
        let same = |object: &DynamicObject, before: &Option<Value>| {
            ["digest", "revision", "path"].iter().all(|name| {
                let of = |artifact: &Value| artifact[name].clone();
                field(object, "/status/artifact").map(of) == before.as_ref().map(of)
            })
        };
        ensure!(same(&back, &artifact), "{}", source.log());
        // It says that the remote is away all the same.
        let away = |object: &DynamicObject| {
            objects::condition(object, "Ready")
                .is_some_and(|(status, reason, _)| status == "False" && reason == "GitOperationFailed")
        };
        wait_for(&test.git_repositories(), "app", away, PATIENCE).await?;
        let chart_is_back = |object: &DynamicObject| same(object, &chart);
        wait_for(&test.objects(SOURCE, "HelmChart"), "web", chart_is_back, PATIENCE).await?;
        ensure!(fetches(&test) == fetched, "nothing was fetched");
        ensure!(source.metric("windlass_backup_restored_total").await? == Some(3.0));

        // The remote is back, and has nothing new: nothing is fetched.
        test.world.git.set_fault(ns, None);
        server.set_failing(None);
        wait_for(&test.git_repositories(), "app", is_ready, PATIENCE).await?;
        ensure!(
            fetches(&test) == fetched,
            "what the backup had is not fetched again"
        );
        let change = Change::write("deploy/map.yaml", config_map(ns, "one", "2"));
        let revision = test.push(&repository, &[change]).await?;
        test.ready("app", &revision).await?;
        // The record of the new one takes the place of the old one, whose archive stays for an hour.
        let names = kept(&store, 3, 4, 2).await?;
        let artifact = test.git_repositories().get("app").await?;
        let digest = text(&artifact, "/status/artifact/digest").trim_start_matches("sha256:");
        ensure!(
            names
                .iter()
                .any(|name| name.starts_with("records/gitrepository/") && name.contains(digest))
        );
        test.git_repositories().delete("app", &Default::default()).await?;
        kept(&store, 2, 4, 2).await?;
        // Rights below the prefix are enough.
        let log = store.log();
        let listings: Vec<_> = log
            .lines()
            .filter(|line| line.contains("encoding-type=url"))
            .collect();
        let is_below = |line: &&str| line.contains("prefix=clusters/eu/");
        ensure!(
            !listings.is_empty() && listings.iter().all(is_below),
            "{listings:#?}"
        );
        Ok(())
    });
}

/// The same objects as before, whose servers are away.
async fn charts_again(test: &Test, server: &HelmRepository) -> Result<()> {
    for object in crate::artifact_replicas::chart_objects(test, server) {
        test.apply(&test.in_own_shard(object)).await?;
    }
    Ok(())
}

#[test]
fn an_object_gets_nothing_from_the_backup_that_was_made_for_another_spec() {
    run("backup-spec", |test| async move {
        let ns = &test.namespace;
        let store = ObjectStore::start(Package::Moto).await?;
        store.make_s3(BUCKET).await?;
        let repository = test.repository(&[("deploy/map.yaml", config_map(ns, "one", "1"))])?;
        let mut source = source(&test, &store.address()).await?;
        test.apply(&git_source(&test, repository.url(), json!({})))
            .await?;
        kept(&store, 1, 1, 0).await?;
        source.kill();
        std::fs::remove_dir_all(source.storage_path())?;
        std::fs::create_dir_all(source.storage_path())?;
        lose(&test, "GitRepository", "app").await?;
        test.world.git.set_fault(ns, Fault::Status(503));
        source.restart().await?;

        // Somebody else's namespace now, who would like to have what the URL needs a password for.
        let other = json!({"secretRef": {"name": "none"}});
        test.apply(&git_source(&test, repository.url(), other)).await?;
        let failed = |object: &DynamicObject| {
            objects::condition(object, "Ready").is_some_and(|(ready, ..)| ready == "False")
        };
        let object = wait_for(&test.git_repositories(), "app", failed, PATIENCE).await?;
        ensure!(field(&object, "/status/artifact").is_none());
        ensure!(source.metric("windlass_backup_restored_total").await? == Some(0.0));

        // A damaged archive is not believed; the remote has the content.
        lose(&test, "GitRepository", "app").await?;
        let names = names(&store).await?;
        let archive = names.iter().find(|name| name.starts_with("archives/"));
        let archive = format!("clusters/eu/{}", archive.map_or("", String::as_str));
        store.put_s3(BUCKET, &archive, "something else").await?;
        test.world.git.set_fault(ns, None);
        test.apply(&git_source(&test, repository.url(), json!({})))
            .await?;
        wait_for(&test.git_repositories(), "app", is_ready, PATIENCE).await?;
        ensure!(
            source.log().contains("failed to restore an artifact"),
            "{}",
            source.log()
        );
        Ok(())
    });
}

#[test]
fn a_bucket_that_is_away_holds_nothing_up() {
    run("backup-away", |test| async move {
        let nobody = format!("127.0.0.1:{}", testkit::ports::free_port()?);
        delivers(&test, &nobody).await
    });
}

#[test]
fn a_bucket_that_never_answers_holds_up_the_start_and_nothing_else() {
    run("backup-silent", |test| async move {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = silent.local_addr()?.to_string();
        let listening = tokio::spawn(async move {
            let mut all = Vec::new();
            while let Ok(connection) = silent.accept().await {
                all.push(connection);
            }
        });
        let outcome = delivers(&test, &address).await;
        listening.abort();
        outcome
    });
}

/// Delivers although the bucket is of no use, and says so.
async fn delivers(test: &Test, endpoint: &str) -> Result<()> {
    let ns = &test.namespace;
    let repository = test.repository(&[("deploy/map.yaml", config_map(ns, "one", "1"))])?;
    let source = source(test, endpoint).await?;
    let _apply = start_apply(test, &source, &[]).await?;
    test.apply(&git_source(test, repository.url(), json!({}))).await?;
    let kustomization = test.kustomization("app", json!({"retryInterval": "1s"}));
    test.apply(&test.in_own_shard(kustomization)).await?;
    let mut revision = format!("main@sha1:{}", repository.resolve("main")?);
    test.ready("app", &revision).await?;
    let change = Change::write("deploy/map.yaml", config_map(ns, "one", "2"));
    revision = test.push(&repository, &[change]).await?;
    test.ready("app", &revision).await?;
    eventually(async || {
        let failures = source.metric("windlass_backup_failures_total").await?;
        ensure!(failures.is_some_and(|failures| failures > 0.0), "{failures:?}");
        ensure!(source.metric("windlass_backup_pending").await? == Some(1.0));
        Ok(())
    })
    .await?;
    ensure!(
        source.log().contains("failed to list the backup"),
        "{}",
        source.log()
    );
    Ok(())
}
