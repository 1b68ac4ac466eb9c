//! The ways to a cluster that kubeconfigs have, and events that are watched.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::controller::program;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::cli::Windlass;
use crate::world::{Test, config_map, run};

/// The kubeconfig of the test as JSON, with another user.
fn kubeconfig(test: &Test, user: Option<Value>) -> Result<Value> {
    let read = kube::config::Kubeconfig::read_from(test.world.control_plane.kubeconfig_path())?;
    let mut value = serde_json::to_value(read)?;
    if let Some(user) = user {
        value["users"][0]["user"] = user;
    }
    Ok(value)
}

/// A proxy that passes on whoever says CONNECT; tells where to.
async fn proxy() -> Result<(String, tokio::sync::mpsc::UnboundedReceiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move { pass_on(client, &tell).await });
        }
    });
    Ok((address, told))
}

async fn pass_on(client: TcpStream, tell: &tokio::sync::mpsc::UnboundedSender<String>) -> Result<()> {
    let mut client = tokio::io::BufReader::new(client);
    let mut first = String::new();
    client.read_line(&mut first).await?;
    let target = first.split(' ').nth(1).context("no target")?.to_owned();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        client.read_line(&mut line).await?;
    }
    tell.send(target.clone())?;
    let mut server = TcpStream::connect(target).await?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[test]
fn programs_sign_in_and_what_nobody_has_any_more_is_refused() {
    run("cli-ways", |test| async move {
        let windlass = Windlass { test: &test };
        let folder = testkit::scratch::directory("ways")?;
        let path = folder.path().join("kubeconfig").display().to_string();
        let own = kubeconfig(&test, None)?;
        let token = own["users"][0]["user"]["token"].as_str();
        let token = token.context("the kubeconfig has no token")?;
        let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token}});
        let answer = folder.path().join("credential.json");
        std::fs::write(&answer, credential.to_string())?;
        let user = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "cat",
            "args": [answer], "interactiveMode": "Never"}});
        std::fs::write(&path, kubeconfig(&test, Some(user))?.to_string())?;
        let said = windlass
            .run_as_typed(&["get", "ks", "-n", &test.namespace, "--kubeconfig", &path], 0)
            .await?;
        ensure!(said.contains("nothing found"), "{said}");

        let user = json!({"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://x"}}});
        std::fs::write(&path, kubeconfig(&test, Some(user))?.to_string())?;
        let said = windlass
            .run_as_typed(&["get", "ks", "--kubeconfig", &path], 2)
            .await?;
        ensure!(
            said.contains("the auth-provider \"oidc\"") && said.contains("users[].user.exec"),
            "{said}"
        );
        let (address, mut told) = proxy().await?;
        let mut proxied = kubeconfig(&test, None)?;
        proxied["clusters"][0]["cluster"]["proxy-url"] = json!(format!("http://{address}"));
        std::fs::write(&path, proxied.to_string())?;
        let words = ["get", "ks", "-n", &test.namespace, "--kubeconfig", &path];
        windlass.run_as_typed(&words, 0).await?;
        let server = proxied["clusters"][0]["cluster"]["server"]
            .as_str()
            .unwrap_or_default();
        let asked = told.try_recv().context("the proxy was gone around")?;
        ensure!(server.contains(&asked), "{asked} is not {server}");
        Ok(())
    });
}

#[test]
fn events_are_told_as_they_come() {
    run("cli-events", |test| async move {
        let ns = test.namespace.clone();
        let mut command = Command::new(program("windlass")?);
        command
            .args(["events", "--watch", "ks/app", "-n", &ns, "--kubeconfig"])
            .arg(test.world.control_plane.kubeconfig_path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("no output")?;
        let told = tokio::task::spawn_blocking(move || {
            let line = BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .find(|line| line.contains("ReconciliationSucceeded") || line.contains("created"));
            child.kill()?;
            child.wait()?;
            Ok::<_, std::io::Error>(line)
        });
        let repository = test.repository(&[("deploy/a.yaml", config_map(&ns, "a", "1"))])?;
        test.deliver(&repository, json!({})).await?;
        let line = told.await??.context("nothing was told")?;
        ensure!(
            line.contains(&format!(" Normal Kustomization/{ns}/app ")),
            "{line}"
        );
        test.delete_kustomization("app").await
    });
}
