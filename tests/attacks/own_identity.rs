//! A tenant wants the credentials that the controller has at a cloud.
//!
//! They hold: sources and Secrets in a namespace of their own. A source uses the controller's identity, and goes through a
//! proxy of the tenant's, without TLS. The proxy must hear nothing.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::scene::{SESSION_TOKEN, SOURCE, play};

#[test]
fn credentials_of_the_controller_do_not_go_through_a_tenants_proxy() {
    play("own-identity", |scene| async move {
        let (address, heard) = listen().await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "proxy", "namespace": scene.attacker},
            "stringData": {"address": format!("http://{address}")}});
        scene.apply(&secret).await?;
        let bucket = json!({
            "apiVersion": SOURCE, "kind": "Bucket", "metadata": {"name": "leak", "namespace": scene.attacker},
            "spec": {"provider": "aws", "bucketName": "any", "endpoint": "s3.eu-west-1.amazonaws.com",
                "region": "eu-west-1", "insecure": true, "interval": "1m", "proxySecretRef": {"name": "proxy"}},
        });
        scene.apply(&bucket).await?;
        let buckets = scene.api(SOURCE, "Bucket", &scene.attacker);
        let message = scene.refused(&buckets, "leak").await?;
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(
            !heard.contains(SESSION_TOKEN),
            "the tenant's proxy was told: {heard}"
        );
        ensure!(heard.is_empty(), "the tenant's proxy was asked: {heard}");
        ensure!(
            message.contains("own identity at a cloud is not used together with spec.proxySecretRef"),
            "{message}"
        );
        Ok(())
    });
}

/// A proxy that writes down what it hears and refuses all.
async fn listen() -> Result<(std::net::SocketAddr, Arc<Mutex<String>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let heard = Arc::new(Mutex::new(String::new()));
    let notes = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 16 << 10];
            let read = stream.read(&mut buffer).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
            notes
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&text);
            let _ = stream
                .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await;
        }
    });
    Ok((address, heard))
}
