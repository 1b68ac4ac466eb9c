//! `windlass shards plan` with the metrics of real controllers, and what becomes of its commands.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use testkit::controller::{ControllerOptions, program};
use testkit::git::Change;
use testkit::objects::{self, apply};
use testkit::tools::{self, Tool};
use testkit::{ControlPlane, Controller, GitServer, Options, install_all_crds, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(240);
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const LABEL: &str = "sharding.fluxcd.io/key";
const APPS: usize = 8;

async fn run(control_plane: &ControlPlane, words: &[&str], code: i32) -> Result<String> {
    let mut command = Command::new(program("windlass")?);
    let kubeconfig = control_plane.kubeconfig_path();
    command.args(words).arg("--kubeconfig").arg(kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("$ windlass {}\n{said}", words.join(" "));
    ensure!(output.status.code() == Some(code), "{said}");
    Ok(said)
}

/// An address of this machine to which the API server passes requests on: not loopback.
fn address() -> Option<IpAddr> {
    // Nothing is sent: it only asks which way it would go.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

/// A Pod of a controller whose metrics are these.
async fn pod(control_plane: &ControlPlane, address: IpAddr, metrics: Arc<Mutex<String>>) -> Result<()> {
    let listener = TcpListener::bind((address, 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut asked = [0_u8; 4096];
            let count = client.read(&mut asked).await.unwrap_or_default();
            let is_asked = asked[..count].starts_with(b"GET /metrics ");
            let body = metrics.lock().map(|text| text.clone()).unwrap_or_default();
            let body = if is_asked { body.as_str() } else { "" };
            let length = body.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            client.write_all(answer.as_bytes()).await.ok();
        }
    });
    let client = control_plane.client();
    let ports = json!([{"name": "http-prom", "containerPort": port}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "controllers", "namespace": "flux-system", "labels": {"app.kubernetes.io/part-of": "flux"}},
        "spec": {"containers": [{"name": "manager", "image": "example.com/a:1", "ports": ports}]}});
    apply(&client, &pod).await?;
    let pods = objects::api(&client, "v1", "Pod", "flux-system");
    let address = address.to_string();
    let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
    pods.patch_status(
        "controllers",
        &kube::api::PatchParams::default(),
        &kube::api::Patch::Merge(&status),
    )
    .await?;
    Ok(())
}

async fn ready(control_plane: &ControlPlane, name: &str) -> Result<()> {
    let api = objects::api(&control_plane.client(), KUSTOMIZE, "Kustomization", "apps");
    wait_for(&api, name, objects::is_ready, PATIENCE).await.map(drop)
}

/// What was applied, in the versions of the API server.
async fn versions(control_plane: &ControlPlane) -> Result<Vec<(Option<String>, Option<String>)>> {
    let maps = objects::api(&control_plane.client(), "v1", "ConfigMap", "apps");
    let found = maps.list(&ListParams::default()).await?.items.into_iter();
    Ok(found
        .map(|map| (map.metadata.name, map.metadata.resource_version))
        .collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_planned_from_metrics_and_objects_move() -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    let client = control_plane.client();
    install_all_crds(&client).await?;
    for name in ["apps", "flux-system"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&client, &namespace).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name}});
        apply(&client, &account).await?;
    }
    let plan = ["shards", "plan", "--shards", "blue"];
    let said = run(&control_plane, &plan, 3).await?;
    ensure!(
        said.contains("no controllers are in the namespace \"flux-system\""),
        "{said}"
    );

    let git = GitServer::start().await?;
    let repository = git.create_repository("fleet")?;
    let file = |number: usize| {
        let map =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{number}\n  namespace: apps\n");
        Change::write(&format!("app-{number}/map.yaml"), map)
    };
    let files: Vec<_> = (0..APPS).map(file).collect();
    repository.commit("main", "first", &files)?;
    let kubeconfig = control_plane.kubeconfig_path();
    let shard = |selector: &str| ControllerOptions {
        flags: vec![format!("--watch-label-selector={selector}")],
        ..ControllerOptions::default()
    };
    let main = format!("!{LABEL}");
    let source = Controller::start_source(kubeconfig, shard(&main)).await?;
    let applying = Controller::start_apply(kubeconfig, &source, shard(&main)).await?;
    let blue = Controller::start_apply(kubeconfig, &source, shard(&format!("{LABEL}=blue"))).await?;
    apply(
        &client,
        &objects::git_repository("apps", "fleet", repository.url(), "main"),
    )
    .await?;
    for number in 0..APPS {
        let name = format!("app-{number}");
        let object = objects::kustomization("apps", &name, ("GitRepository", "fleet"), &format!("./{name}"));
        apply(&client, &object).await?;
    }
    for number in 0..APPS {
        ready(&control_plane, &format!("app-{number}")).await?;
    }

    // Metrics from files, as of people who may not reach the Pods.
    let folder = tempfile::tempdir()?;
    let mut words: Vec<String> = plan.iter().map(|word| (*word).to_owned()).collect();
    for (name, controller) in [("source", &source), ("apply", &applying), ("blue", &blue)] {
        let path = folder.path().join(name);
        std::fs::write(&path, controller.metrics().await?)?;
        words.extend(["--metrics".to_owned(), path.display().to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = run(&control_plane, &words, 0).await?;
    ensure!(
        said.contains("kustomize-controller  blue") && !said.contains("warning"),
        "{said}"
    );
    let listed = said
        .lines()
        .filter(|line| line.ends_with(": (none) -> blue"))
        .count();
    ensure!((1..APPS).contains(&listed), "{said}");

    // Through the API server, where this machine has an address that it accepts for a Pod.
    match address() {
        Some(address) => {
            let text = Arc::new(Mutex::new(String::new()));
            pod(&control_plane, address, text.clone()).await?;
            let said = run(&control_plane, &plan, 3).await?;
            ensure!(said.contains("the metrics have no reconcile durations"), "{said}");
            // Of one process, since a Pod has one.
            *text.lock().map_err(|_| anyhow::anyhow!("poisoned"))? = applying.metrics().await?;
            let said = run(&control_plane, &plan, 0).await?;
            ensure!(
                said.contains("-> blue") && said.contains("1 of 9 objects were not measured"),
                "{said}"
            );
        }
        None => eprintln!("this machine has no address but loopback: no Pod's metrics were read"),
    }

    let before = versions(&control_plane).await?;
    let commands = run(&control_plane, &[&words[..], &["--commands"]].concat(), 0).await?;
    ensure!(commands.lines().count() == listed, "{commands}");
    tokio::task::spawn_blocking(|| tools::ensure_loudly(&[Tool::Kubectl])).await??;
    let kubectl = tools::path(Tool::Kubectl)?;
    let script = commands.replace(
        "kubectl ",
        &format!("{} --kubeconfig {} ", kubectl.display(), kubeconfig.display()),
    );
    let output = tokio::process::Command::new("sh")
        .args(["-ec", &script])
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = run(&control_plane, &words, 0).await?;
    ensure!(said.contains("nothing should move"), "{said}");

    // The other shard takes them over, and writes nothing that is there already.
    let api = objects::api(&client, KUSTOMIZE, "Kustomization", "apps");
    let blues = ListParams::default().labels(&format!("{LABEL}=blue"));
    let moved = api.list(&blues).await?.items;
    ensure!(moved.len() == listed, "{} objects", moved.len());
    for one in &moved {
        let name = one.metadata.name.as_deref().context("no name")?;
        let line = format!("gotk_reconcile_duration_seconds_count{{kind=\"Kustomization\",name=\"{name}\"");
        let taking = async {
            while !blue.metrics().await?.contains(&line) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok::<_, anyhow::Error>(())
        };
        let taken = tokio::time::timeout(PATIENCE, taking).await;
        taken.with_context(|| format!("{name} is not taken over"))??;
    }
    ensure!(
        versions(&control_plane).await? == before,
        "objects were written again"
    );

    // A commit arrives in both.
    let commit = repository.commit("main", "second", &[Change::write("README.md", "x")])?;
    let annotation = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    let sources = objects::api(&client, "source.toolkit.fluxcd.io/v1", "GitRepository", "apps");
    sources
        .patch("fleet", &PatchParams::default(), &Patch::Merge(&annotation))
        .await?;
    let wanted = format!("main@sha1:{commit}");
    for number in 0..APPS {
        let has = |object: &DynamicObject| objects::text(object, "/status/lastAppliedRevision") == wanted;
        wait_for(&api, &format!("app-{number}"), has, PATIENCE).await?;
    }

    // And back again.
    let drained = run(&control_plane, &[&words[..], &["--drain", "blue"]].concat(), 0).await?;
    let back = drained
        .lines()
        .filter(|line| line.ends_with(": blue -> (none)"))
        .count();
    ensure!(back == listed, "{drained}");
    Ok(())
}
