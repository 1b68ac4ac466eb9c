//! A tenant wants the credentials that the controller has at a cloud.
//!
//! They hold: sources and Secrets in a namespace of their own. A source uses the controller's identity, and goes through a
//! proxy of the tenant's, without TLS. The proxy must hear nothing.

use std::sync::PoisonError;

use anyhow::ensure;
use serde_json::json;

use crate::scene::{SESSION_TOKEN, SOURCE, play, serve};

#[test]
fn credentials_of_the_controller_do_not_go_through_a_tenants_proxy() {
    play("own-identity", |scene| async move {
        let (address, heard) = serve(|_, _| "403 Forbidden".to_owned()).await?;
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
