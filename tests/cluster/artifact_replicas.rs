//! Several replicas of source-controller, each with a store of its own: all serve, one fetches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use artifact::client::ArtifactRef;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::artifact_access::{self, AUDIENCE, READER};
use testkit::git::{Change, Fault, Kind};
use testkit::objects::{self, is_ready, text};
use testkit::{Controller, HelmRepository, Service, wait_for};

use crate::helm::chart;
use crate::service::{artifact_of, bundle, eventually, open, own_options, refusal, start_apply};
use crate::world::{PATIENCE, SOURCE, Test, config_map, run};

/// Replicas behind a Service.
struct Replicas<'a> {
    test: &'a Test,
    all: Vec<Controller>,
    grpc: Service,
    http: Service,
    token: tempfile::NamedTempFile,
}

impl<'a> Replicas<'a> {
    async fn start(test: &'a Test, count: usize) -> Result<Self> {
        let (client, namespace) = (&test.client, &test.namespace);
        artifact_access::allow_all(client, namespace, READER).await?;
        let token = artifact_access::token(client, namespace, READER, AUDIENCE).await?;
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), token)?;
        let mut replicas = Self {
            test,
            all: Vec::new(),
            grpc: Service::start().await?,
            http: Service::start().await?,
            token: file,
        };
        for _ in 0..count {
            let mut replica = replicas.prepare()?;
            replica.restart().await?;
            replicas.all.push(replica);
        }
        replicas
            .grpc
            .set_backends(replicas.all.iter().map(Controller::grpc_address).collect());
        replicas
            .http
            .set_backends(replicas.all.iter().map(Controller::storage_address).collect());
        Ok(replicas)
    }

    fn prepare(&self) -> Result<Controller> {
        self.prepare_in(None)
    }

    /// A replica with a volume of so many bytes.
    fn prepare_in(&self, volume: Option<(PathBuf, u64)>) -> Result<Controller> {
        let flags = [
            "--watch-all-namespaces=false".to_owned(),
            "--enable-leader-election".to_owned(),
            "--leader-election-lease-duration=6s".to_owned(),
            "--leader-election-renew-deadline=5s".to_owned(),
            "--leader-election-retry-period=200ms".to_owned(),
            "--storage-replicas".to_owned(),
            "--artifact-retention-records=9".to_owned(),
            format!("--storage-adv-addr={}", self.http.address()),
            format!("--replica-token-file={}", self.token.path().display()),
        ];
        let mut options = own_options(self.test, &flags);
        options.volume = volume;
        options.environment = vec![("POD_IP".to_owned(), "127.0.0.1".to_owned())];
        Controller::prepare_source(self.test.world.control_plane.kubeconfig_path(), options)
    }

    /// An apply-controller that reaches them by the Service.
    async fn consumer(&self) -> Result<Controller> {
        let service = format!("--artifact-service=https://{}", self.grpc.address());
        start_apply(self.test, &self.all[0], &[service]).await
    }

    /// Which of them leads.
    async fn leader(&self) -> Result<usize> {
        let leases: Api<Lease> = Api::namespaced(self.test.client.clone(), &self.test.namespace);
        let leases = leases.list(&ListParams::default()).await?;
        let said = leases.iter().find_map(|lease| {
            let (of, at) = lease
                .metadata
                .annotations
                .as_ref()?
                .get("windlass.dev/addresses")?
                .split_once(' ')?;
            (lease.spec.as_ref()?.holder_identity.as_deref() == Some(of)).then(|| at.to_owned())
        });
        let said = said.context("nobody leads")?;
        let index = self
            .all
            .iter()
            .position(|replica| replica.grpc_address().to_string() == said);
        index.with_context(|| format!("{said} is none of ours"))
    }

    /// Waits until another than this one leads.
    async fn leader_but(&self, old: usize) -> Result<usize> {
        eventually(async || {
            let leader = self.leader().await?;
            ensure!(leader != old, "the old one leads");
            Ok(leader)
        })
        .await
    }

    /// A Kustomization of the source that no one has built yet; returns how long it took until it was there.
    async fn deliver(&self, name: &str, revision: &str) -> Result<Duration> {
        let began = Instant::now();
        let test = self.test;
        let object = objects::with_spec(
            test.kustomization(name, json!({"retryInterval": "1s"})),
            json!({"path": format!("./{name}")}),
        );
        test.apply(&test.in_own_shard(object)).await?;
        test.ready(name, revision).await?;
        Ok(began.elapsed())
    }

    fn log(&self) -> String {
        let logs = self.all.iter().map(Controller::log);
        logs.collect::<Vec<_>>().join("\n\n")
    }
}

/// The names of the files of a store that are named by their content or by what they are for.
fn files(store: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in ["archives", "blobs", "directories", "records"] {
        for entry in std::fs::read_dir(store.join(folder))? {
            names.insert(format!("{folder}/{}", entry?.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}

/// A folder for each name, with a ConfigMap in it.
fn folders(test: &Test, names: &[&str]) -> Vec<(String, String)> {
    let file = |name: &&str| (format!("{name}/map.yaml"), config_map(&test.namespace, name, "1"));
    names.iter().map(file).collect()
}

async fn git_source(test: &Test, url: &str) -> Result<()> {
    let object = objects::git_repository(&test.namespace, "app", url, "main");
    let object = objects::with_spec(object, json!({"interval": "1s", "timeout": "20s"}));
    test.apply(&test.in_own_shard(object)).await.map(drop)
}

/// A HelmRepository with an index, and a HelmChart of it: their archives are taken as they are.
pub async fn charts(test: &Test, server: &HelmRepository) -> Result<()> {
    let archive = chart("1.0.0", &[])?;
    let index = json!({"apiVersion": "v1", "entries": {"web": [
        {"apiVersion": "v2", "name": "web", "version": "1.0.0", "urls": ["web-1.0.0.tgz"]}]}});
    server.set_file("web-1.0.0.tgz", Some(archive));
    server.set_file("index.yaml", Some(index.to_string().into_bytes()));
    for object in chart_objects(test, server) {
        test.apply(&test.in_own_shard(object)).await?;
    }
    wait_for(&test.objects(SOURCE, "HelmChart"), "web", is_ready, PATIENCE)
        .await
        .map(drop)
}

/// The two objects.
pub fn chart_objects(test: &Test, server: &HelmRepository) -> [Value; 2] {
    let ns = &test.namespace;
    let repository = json!({"apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": ns},
        "spec": {"url": server.url(), "interval": "1h"}});
    let chart = json!({"apiVersion": SOURCE, "kind": "HelmChart", "metadata": {"name": "web", "namespace": ns},
        "spec": {"chart": "web", "version": "1.0.0", "interval": "1h", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}});
    [repository, chart]
}

#[test]
fn each_replica_has_and_serves_what_the_leader_stored() {
    run("replicas-equal", |test| async move {
        let repository = test.repository(&folders(&test, &["one"]))?;
        let mut replicas = Replicas::start(&test, 1).await?;
        git_source(&test, repository.url()).await?;
        let artifact = artifact_of(&test).await?;
        let server = HelmRepository::start().await?;
        charts(&test, &server).await?;
        let asked = test.world.git.requests(&test.namespace).len();

        // A new replica is ready once it has all of it, and asks no remote.
        let mut second = replicas.prepare()?;
        second.restart().await?;
        replicas.all.push(second);
        let [first, second] = &replicas.all[..] else {
            unreachable!("there are two")
        };
        ensure!(
            files(&first.storage_path())? == files(&second.storage_path())?,
            "{}",
            second.log()
        );
        ensure!(replicas.leader().await? == 0);
        let authority = bundle(&test).await?;
        let token = std::fs::read_to_string(replicas.token.path())?;
        let tree = open(&second.grpc_url(), &authority, Some(&token), &artifact).await?;
        ensure!(!tree.read("one/map.yaml").await?.is_empty());
        let chart = test.objects(SOURCE, "HelmChart").get("web").await?;
        let path = text(&chart, "/status/artifact/path");
        for replica in &replicas.all {
            let got = reqwest::get(format!("{}/{path}", replica.storage_url())).await?;
            ensure!(got.status() == 200 && got.bytes().await?.len() > 100, "{path}");
        }
        let last = test.world.git.requests(&test.namespace);
        ensure!(
            last[asked..].iter().all(|request| request.kind != Kind::Fetch),
            "{:?}",
            &last[asked..]
        );

        // A client that reads the status may ask it in the same moment.
        for n in 0..10 {
            let change = Change::write("one/map.yaml", config_map(&test.namespace, "one", &n.to_string()));
            let revision = test.push(&repository, &[change]).await?;
            let newer = |object: &DynamicObject| text(object, "/status/artifact/revision") == revision;
            wait_for(&test.git_repositories(), "app", newer, PATIENCE).await?;
            let artifact = artifact_of(&test).await?;
            let tree = open(&second.grpc_url(), &authority, Some(&token), &artifact).await;
            let text = tree.context(revision)?.read("one/map.yaml").await?;
            ensure!(String::from_utf8_lossy(&text).contains(&format!("\"{n}\"")));
        }
        // Each replica reviews its callers by itself.
        artifact_access::create_account(&test.client, &test.namespace, "nobody").await?;
        let nobody = artifact_access::token(&test.client, &test.namespace, "nobody", AUDIENCE).await?;
        let newest = artifact_of(&test).await?;
        for (token, words) in [(None, "no token"), (Some(nobody.as_str()), "may not read")] {
            let said = refusal(&second.grpc_url(), &authority, token, &newest).await?;
            ensure!(said.contains(words), "{said}");
        }
        // What is not there is said to be so.
        let mut none = artifact.clone();
        none.digest = format!("sha256:{}", "0".repeat(64));
        let refused = open(&second.grpc_url(), &authority, Some(&token), &none).await;
        ensure!(
            matches!(refused, Err(artifact::client::Error::NotFound { .. })),
            "{refused:?}"
        );

        test.git_repositories().delete("app", &Default::default()).await?;
        eventually(async || {
            let (one, two) = (files(&first.storage_path())?, files(&second.storage_path())?);
            let left = one.iter().filter(|name| name.starts_with("records/")).count();
            ensure!(one == two && left == 2, "{left} records; {one:?} {two:?}");
            Ok(())
        })
        .await
    });
}

#[test]
fn consumers_go_on_when_the_leader_and_the_remote_are_gone() {
    run("replicas-leader", |test| async move {
        let names = ["one", "two", "three", "four"];
        let repository = test.repository(&folders(&test, &names))?;
        let mut replicas = Replicas::start(&test, 2).await?;
        let _apply = replicas.consumer().await?;
        git_source(&test, repository.url()).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        let usual = replicas.deliver("one", &revision).await?;
        let artifact = artifact_of(&test).await?;

        test.world.git.set_fault(&test.namespace, Fault::Status(503));
        let old = replicas.leader().await?;
        replicas.all[old].kill();
        // In this moment nobody leads.
        let without = replicas.deliver("two", &revision).await?;
        let new = replicas.leader_but(old).await?;
        let after = replicas.deliver("three", &revision).await?;
        println!("delivered in {usual:?} with the leader, {without:?} without, {after:?} under the next");
        let object = wait_for(
            &test.git_repositories(),
            "app",
            |object| objects::is_not_ready_because(object, "GitOperationFailed"),
            PATIENCE,
        )
        .await?;
        ensure!(
            text(&object, "/status/artifact/digest") == artifact.digest,
            "it keeps the artifact"
        );

        // The old one comes back without its volume: it follows, and is as good as before once it is ready.
        let storage = replicas.all[old].storage_path();
        std::fs::remove_dir_all(&storage)?;
        std::fs::create_dir_all(&storage)?;
        replicas.all[old].restart().await?;
        ensure!(replicas.leader().await? == new);
        ensure!(
            files(&storage)? == files(&replicas.all[new].storage_path())?,
            "{}",
            replicas.log()
        );
        replicas.all[new].kill();
        replicas.deliver("four", &revision).await?;
        ensure!(replicas.leader_but(new).await? == old);

        test.world.git.set_fault(&test.namespace, None);
        let change = Change::write("one/map.yaml", config_map(&test.namespace, "one", "2"));
        let revision = test.push(&repository, &[change]).await?;
        test.ready("one", &revision).await?;
        test.config_map_has("one", "key", "2").await.map(drop)
    });
}

#[test]
fn a_leader_that_dies_in_the_middle_of_a_fetch_costs_nothing_but_time() {
    run("replicas-fetch", |test| async move {
        let repository = test.repository(&folders(&test, &["one"]))?;
        let replicas = Replicas::start(&test, 2).await?;
        let _apply = replicas.consumer().await?;
        git_source(&test, repository.url()).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        replicas.deliver("one", &revision).await?;

        test.world.git.set_fault(&test.namespace, Fault::CutAnswer(40));
        let change = Change::write("one/map.yaml", config_map(&test.namespace, "one", "2"));
        let asked = test.world.git.requests(&test.namespace).len();
        let revision = test.push(&repository, &[change]).await?;
        eventually(async || {
            let all = test.world.git.requests(&test.namespace);
            ensure!(
                all[asked..].iter().any(|request| request.kind == Kind::Fetch),
                "no fetch has begun"
            );
            Ok(())
        })
        .await?;
        let old = replicas.leader().await?;
        replicas.all[old].kill();
        test.world.git.set_fault(&test.namespace, None);
        replicas.leader_but(old).await?;
        test.ready("one", &revision).await?;
        test.config_map_has("one", "key", "2").await.map(drop)
    });
}

/// Asks for an artifact over and over, each time on new connections; returns what failed.
async fn asked_over_and_over(
    replicas: &Replicas<'_>,
    artifact: &ArtifactRef,
    authority: &str,
    over: &AtomicBool,
) -> Result<(usize, Vec<String>)> {
    let (grpc, http) = (
        format!("https://{}", replicas.grpc.address()),
        replicas.http.address(),
    );
    let token = std::fs::read_to_string(replicas.token.path())?;
    let archive = format!(
        "http://{http}/gitrepository/{}/app/latest.tar.gz",
        replicas.test.namespace
    );
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .build()?;
    let mut failures = Vec::new();
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        count += 1;
        let tree = async {
            let tree = open(&grpc, authority, Some(&token), artifact).await?;
            tree.read("one/map.yaml").await
        };
        if let Err(error) = tree.await {
            failures.push(format!("gRPC, {count}: {:#}", anyhow::Error::from(error)));
        }
        let got = async {
            client
                .get(&archive)
                .send()
                .await?
                .error_for_status()?
                .bytes()
                .await
        };
        if let Err(error) = got.await {
            failures.push(format!("HTTP, {count}: {:#}", anyhow::Error::from(error)));
        }
    }
    Ok((count, failures))
}

#[test]
fn a_rolling_restart_fails_no_request() {
    run("replicas-rolling", |test| async move {
        let repository = test.repository(&folders(&test, &["one"]))?;
        let mut replicas = Replicas::start(&test, 3).await?;
        let _apply = replicas.consumer().await?;
        git_source(&test, repository.url()).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        replicas.deliver("one", &revision).await?;
        let (artifact, authority) = (artifact_of(&test).await?, bundle(&test).await?);
        let over = AtomicBool::new(false);
        let mut all = std::mem::take(&mut replicas.all);
        let addresses = |all: &[Controller], but: Option<usize>| {
            let left = all.iter().enumerate().filter(|(index, _)| Some(*index) != but);
            let (grpc, http) = left
                .map(|(_, one)| (one.grpc_address(), one.storage_address()))
                .unzip();
            (grpc, http)
        };
        let route = |(grpc, http): (Vec<_>, Vec<_>)| {
            replicas.grpc.set_backends(grpc);
            replicas.http.set_backends(http);
        };
        route(addresses(&all, None));
        let rolling = async {
            for index in 0..all.len() {
                // Endpoints change a little after the Pod has been told to end, and again when its successor is ready.
                let ending = all[index].process()?.pid();
                std::process::Command::new("kill")
                    .arg(ending.to_string())
                    .status()?;
                tokio::time::sleep(Duration::from_millis(500)).await;
                route(addresses(&all, Some(index)));
                eventually(async || {
                    let ended = all[index].process()?.exit_status();
                    ensure!(ended.is_some(), "it has not ended");
                    Ok(())
                })
                .await?;
                all[index].restart().await?;
                route(addresses(&all, None));
                let change = Change::write(
                    "one/map.yaml",
                    config_map(&test.namespace, "one", &format!("r{index}")),
                );
                let revision = test.push(&repository, &[change]).await?;
                test.ready("one", &revision).await?;
            }
            over.store(true, Ordering::Relaxed);
            anyhow::Ok(())
        };
        let asking = asked_over_and_over(&replicas, &artifact, &authority, &over);
        let ((count, failures), ()) = tokio::try_join!(asking, rolling)?;
        println!("{count} rounds of requests while three replicas were restarted");
        ensure!(count > 20 && failures.is_empty(), "{failures:#?}");
        Ok(())
    });
}

#[test]
fn a_replica_whose_volume_is_full_is_not_ready_until_there_is_room() {
    run("replicas-full", |test| async move {
        let repository = test.repository(&folders(&test, &["one"]))?;
        let mut replicas = Replicas::start(&test, 1).await?;
        git_source(&test, repository.url()).await?;
        artifact_of(&test).await?;
        let folder = testkit::scratch::directory("volume")?;
        let small = (folder.path().to_owned(), 1 << 20);
        let mut second = replicas.prepare_in(Some(small))?;
        second.restart().await?;
        replicas.all.push(second);
        let second = &replicas.all[1];
        let volume = format!(
            "/proc/{}/root{}",
            second.process()?.pid(),
            folder.path().display()
        );
        let filler = Path::new(&volume).join("filler");
        std::fs::write(&filler, vec![0; 900_000]).context("failed to fill the volume")?;

        // Not compressible.
        let large: Vec<u8> = (0..400_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let revision = test
            .push(&repository, &[Change::write("large.bin", large)])
            .await?;
        let newer = |object: &DynamicObject| text(object, "/status/artifact/revision") == revision;
        wait_for(&test.git_repositories(), "app", newer, PATIENCE).await?;
        let ready = format!("{}/readyz", second.health_url());
        eventually(async || {
            let status = reqwest::get(&ready).await?.status();
            ensure!(!status.is_success(), "{status}");
            Ok(())
        })
        .await?;
        ensure!(second.log().contains("volume is full"), "{}", second.log());
        ensure!(second.metric("windlass_replica_synced").await? == Some(0.0));

        std::fs::remove_file(filler)?;
        second.wait_ready().await?;
        ensure!(files(&replicas.all[0].storage_path())?.is_superset(&files(Path::new(&volume))?));
        ensure!(second.metric("windlass_replica_synced").await? == Some(1.0));
        Ok(())
    });
}

#[test]
fn an_address_that_another_has_taken_is_not_believed() {
    run("replicas-impostor", |test| async move {
        let repository = test.repository(&folders(&test, &["one"]))?;
        let replicas = Replicas::start(&test, 1).await?;
        git_source(&test, repository.url()).await?;
        artifact_of(&test).await?;
        replicas.all[0].kill();
        // Another artifact service has the leader's address now, with a certificate of its own authority for the same names.
        let impostor = test.world.source.grpc_address();
        let leases: Api<Lease> = Api::namespaced(test.client.clone(), &test.namespace);
        let mut lease = leases.list(&ListParams::default()).await?.items.remove(0);
        let name = lease.metadata.name.clone().context("the Lease has no name")?;
        let said = lease.metadata.annotations.get_or_insert_default();
        said.insert("windlass.dev/addresses".to_owned(), format!("other {impostor}"));
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some("other".to_owned());
        spec.lease_duration_seconds = Some(3600);
        leases.replace(&name, &Default::default(), &lease).await?;

        let mut second = replicas.prepare()?;
        second.restart_unready()?;
        eventually(async || {
            let log = second.log();
            ensure!(
                log.contains("failed to follow the leader") && log.contains("certificate"),
                "{log}"
            );
            Ok(())
        })
        .await?;
        ensure!(files(&second.storage_path())?.is_empty());
        let status = reqwest::get(format!("{}/readyz", second.health_url()))
            .await?
            .status();
        ensure!(!status.is_success());
        Ok(())
    });
}
