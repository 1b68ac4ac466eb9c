//! `windlass logs`: which Pods it reads on a real control plane, and what it makes of logs. The latter are a stand-in's: there are
//! no real nodes here.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::controller::program;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::cli::Windlass;
use crate::world::{Test, run};

async fn pod(test: &Test, name: &str, labels: serde_json::Value) -> Result<()> {
    test.apply(&json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": test.namespace, "labels": labels},
        "spec": {"containers": [{"name": "manager", "image": "example.com/a:1"}]}}))
        .await
}

#[test]
fn the_pods_of_controllers_are_found_by_their_labels() {
    run("cli-logs", |test| async move {
        let windlass = Windlass { test: &test };
        let ns = &test.namespace;
        let words = ["logs", "--flux-namespace", ns];
        let said = windlass.run(&words, 3).await?;
        ensure!(
            said.contains(&format!("no controllers are in the namespace \"{ns}\"")),
            "{said}"
        );
        pod(&test, "labelled", json!({"app.kubernetes.io/part-of": "flux"})).await?;
        pod(&test, "selected", json!({"app": "source-controller"})).await?;
        pod(&test, "other", json!({"app": "shop"})).await?;
        test.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "source-controller", "namespace": ns, "labels": {"app.kubernetes.io/part-of": "flux"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "source-controller"}}, "template": {
                "metadata": {"labels": {"app": "source-controller"}},
                "spec": {"containers": [{"name": "manager", "image": "example.com/a:1"}]}}}}))
            .await?;
        // No node answers for them, which is told of each that was asked.
        let said = windlass.run(&words, 1).await?;
        ensure!(
            said.contains(&format!("failed to read the log of Pod/{ns}/labelled: ")),
            "{said}"
        );
        ensure!(!said.contains(&format!("Pod/{ns}/other")), "{said}");
        Ok(())
    });
}

fn line(second: u32, kind: &str, name: &str, message: &str) -> String {
    let logged = json!({"level": "info", "ts": format!("2026-01-01T00:00:0{second}.000Z"), "msg": message,
        "controllerKind": kind, "namespace": "shop", "name": name});
    format!("2026-01-01T00:00:0{second}.5Z {logged}\n")
}

/// An API server that has two Pods with logs, and nothing else.
async fn stand_in() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(answer(client));
        }
    });
    Ok(address)
}

async fn answer(client: TcpStream) -> Result<()> {
    let mut client = tokio::io::BufReader::new(client);
    let mut first = String::new();
    client.read_line(&mut first).await?;
    let mut header = String::new();
    while header != "\r\n" {
        header.clear();
        client.read_line(&mut header).await?;
    }
    let path = first.split(' ').nth(1).context("no path")?.to_owned();
    let pod = |name: &str| json!({"metadata": {"name": name, "namespace": "flux-system"}, "spec": {"containers": [{"name": "manager"}]}});
    let list = |items: Value| {
        json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}).to_string()
    };
    let follows = path.contains("follow=true");
    let body = match &path {
        path if path.contains("/pods/a/log") && follows => line(5, "Kustomization", "web", "five"),
        path if path.contains("/pods/") && follows => String::new(),
        path if path.contains("/pods/a/log") => {
            line(1, "Kustomization", "web", "one") + &line(3, "Kustomization", "web", "three")
        }
        path if path.contains("/pods/b/log") => line(2, "GitRepository", "app", "two"),
        path if path.contains("/pods?") => list(json!([pod("a"), pod("b")])),
        _ => list(json!([])),
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    client.write_all(format!("{head}{body}").as_bytes()).await?;
    client.flush().await?;
    if follows {
        // A log that is followed has no end.
        std::future::pending::<()>().await;
    }
    Ok(())
}

#[test]
fn logs_are_merged_and_followed() {
    run("cli-logs-merged", |test| async move {
        let windlass = Windlass { test: &test };
        let folder = testkit::scratch::directory("logs")?;
        let path = folder.path().join("kubeconfig").display().to_string();
        let server = format!("http://{}", stand_in().await?);
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": server}}], "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]});
        std::fs::write(&path, kubeconfig.to_string())?;
        let said = windlass.run_as_typed(&["logs", "--kubeconfig", &path], 0).await?;
        ensure!(
            said == "2026-01-01T00:00:01.000Z info Kustomization/shop/web: one\n\
                     2026-01-01T00:00:02.000Z info GitRepository/shop/app: two\n\
                     2026-01-01T00:00:03.000Z info Kustomization/shop/web: three\n",
            "{said}"
        );
        let words = ["logs", "--kubeconfig", &path, "--kind", "ks", "-o", "json"];
        let said = windlass.run_as_typed(&words, 0).await?;
        ensure!(
            said.lines().count() == 2 && said.starts_with("{\"controllerKind\""),
            "{said}"
        );

        let mut command = Command::new(program("windlass")?);
        command.args(["logs", "--follow", "--kubeconfig", &path]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no output")?;
        let told = tokio::task::spawn_blocking(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let told: Vec<String> = lines.take(4).collect();
            child.kill()?;
            child.wait()?;
            Ok::<_, std::io::Error>(told)
        });
        let told = told.await??;
        ensure!(
            told.len() == 4 && told[3].ends_with("Kustomization/shop/web: five"),
            "{told:?}"
        );
        Ok(())
    });
}
