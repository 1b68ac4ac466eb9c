//! A tenant describes a cluster that is none: its server answers without end.
//!
//! They hold: a Kustomization with a kubeconfig in a namespace of their own, and the server that it names. The controller
//! must not take the memory of its Pod for the answer, and must say what is wrong.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::objects;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::scene::{KUSTOMIZE, play};

/// Half of the chart's limit for the Pod.
const LIMIT: u64 = 512 << 20;
/// It would have no end; this is enough to see, and the machine goes on.
const ENOUGH: usize = 2 << 30;

#[test]
fn an_answer_without_end_is_not_collected() {
    play("endless", |scene| async move {
        let server = serve().await?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "c", "user": {"token": "any"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "cluster", "namespace": scene.attacker}, "stringData": {"value": kubeconfig.to_string()}});
        scene.apply(&secret).await?;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any", "namespace": "default"}});
        let files = [testkit::git::Change::write("deploy/map.yaml", map.to_string())];
        repository.commit("main", "any", &files)?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        let remote = scene.kustomization("remote", ("GitRepository", "app"));
        let kubeconfig = json!({"kubeConfig": {"secretRef": {"name": "cluster"}}, "retryInterval": "1h"});
        scene.apply(&objects::with_spec(remote, kubeconfig)).await?;
        let message = scene
            .refused(&scene.api(KUSTOMIZE, "Kustomization", &scene.attacker), "remote")
            .await?;
        let peak = scene.world.apply.usage()?.peak_resident_bytes;
        ensure!(peak < LIMIT, "the controller took {} MiB", peak >> 20);
        ensure!(
            message.contains("the cluster's answer has more than"),
            "{message}"
        );
        Ok(())
    });
}

/// A server that answers everything with a text that does not end.
async fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 16 << 10];
                let _ = stream.read(&mut request).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"major\": \"";
                let mut written = stream.write_all(head.as_bytes()).await;
                let piece = vec![b'1'; 1 << 20];
                for _ in 0..ENOUGH >> 20 {
                    if written.is_err() {
                        return;
                    }
                    written = stream.write_all(&piece).await;
                }
            });
        }
    });
    Ok(format!("http://{address}"))
}
