//! generic-oidc against an issuer of our own.

use std::sync::Arc;

use anyhow::{Result, ensure};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::Receivers;
use crate::world::run;

/// Publishes a key, and signs with it.
struct Issuer {
    url: String,
    key: EcdsaKeyPair,
}

impl Issuer {
    async fn start() -> Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let issuer = Arc::new(Self {
            url: format!("http://{}", listener.local_addr()?),
            key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?,
        });
        let publisher = Arc::clone(&issuer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap_or_default();
                let body = publisher.document(&String::from_utf8_lossy(&request[..read]));
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                drop(stream.write_all(format!("{head}{body}").as_bytes()).await);
            }
        });
        Ok(issuer)
    }

    fn document(&self, request: &str) -> String {
        if request.starts_with("GET /.well-known/openid-configuration ") {
            let keys = format!("{}/keys", self.url);
            return json!({"issuer": self.url, "jwks_uri": keys, "id_token_signing_alg_values_supported": ["ES256"]}).to_string();
        }
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        let text = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        json!({"keys": [{"kty": "EC", "kid": "k", "crv": "P-256", "x": text(x), "y": text(y)}]}).to_string()
    }

    fn token(&self, repository: &str) -> Result<String> {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let end = jiff::Timestamp::now().as_second() + 300;
        let claims =
            json!({"iss": self.url, "aud": "notification-controller", "exp": end, "repository": repository});
        let text = format!("{}.{}", part(json!({"alg": "ES256", "kid": "k"})), part(claims));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes())?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }
}

#[test]
fn whoever_has_a_token_of_the_issuer_wakes_what_is_his() {
    run("receivers-oidc", |test| async move {
        let receivers = Receivers::start(&test, &[]).await?;
        let (issuer, stranger) = (Issuer::start().await?, Issuer::start().await?);
        for name in ["app", "web"] {
            receivers.target(&test.namespace, name, "a").await?;
        }
        let spec = json!({
            "type": "generic-oidc",
            "oidcProviders": [{
                "issuerURL": issuer.url,
                "variables": [{"name": "owner", "expression": "claims.repository.split('/')[0]"}],
                "validations": [{"expression": "vars.owner == 'org'", "message": "wrong org"}],
            }],
            "resourceFilter": "claims.repository == 'org/' + res.metadata.name",
            "resources": [{"kind": "GitRepository", "name": "*", "matchLabels": {"team": "a"}}],
        });
        let path = receivers.ready("oidc", spec).await?;
        let call = async |token: String| {
            let bearer = format!("Bearer {token}");
            receivers.post(&path, &[("Authorization", &bearer)], "").await
        };
        ensure!(receivers.post(&path, &[], "").await? == 400);
        ensure!(call(stranger.token("org/app")?).await? == 400);
        ensure!(call(issuer.token("evil/app")?).await? == 400);
        ensure!(receivers.annotated(&test.namespace, "app").await?.is_empty());
        ensure!(call(issuer.token("org/app")?).await? == 200);
        ensure!(!receivers.annotated(&test.namespace, "app").await?.is_empty());
        ensure!(receivers.annotated(&test.namespace, "web").await?.is_empty());
        Ok(())
    });
}
