//! As much of Vault's interface as decryption needs: transit's decrypt, and a login with a token of a service account.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The data key of the recorded case "yaml with one", as its recorder chose it.
const DATA_KEY: &str = "eWFtbCB3aXRoIG9uZQcHBwcHBwcHBwcHBwcHBwcHBwc=";
const CIPHERTEXT: &str = "vault:v1:recorded";

/// A server that knows one token, and gives it to every account that logs in.
pub struct Vault {
    pub address: String,
    logins: Arc<Mutex<Vec<String>>>,
}

impl Vault {
    pub async fn start(token: &'static str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let logins = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&logins);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move { serve(stream, token, &seen).await });
            }
        });
        Ok(Self { address, logins })
    }

    /// Logins so far, as `role for audience`.
    pub fn logins(&self) -> Vec<String> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The recorded file "yaml with one", with its data key encrypted by this server instead of age.
    pub fn file(address: &str) -> Result<String> {
        let mut cases = include_str!("../../crates/sops/tests/cases.jsonl").lines();
        let case = cases.find(|line| line.contains("\"name\":\"yaml with one\""));
        let case: Value = serde_json::from_str(case.context("there is no such case")?)?;
        let text = case["encrypted"].as_str().unwrap_or_default();
        let (values, rest) = text
            .split_once("    age:\n")
            .context("it is encrypted with age")?;
        let (_, rest) = rest.split_once("    lastmodified:").context("it has a time")?;
        Ok(format!(
            "{values}    hc_vault:\n        - vault_address: {address}\n          engine_path: transit\n          key_name: k\n          \
             created_at: \"2026-11-22T07:09:42Z\"\n          enc: {CIPHERTEXT}\n    lastmodified:{rest}"
        ))
    }
}

async fn serve(mut stream: TcpStream, token: &str, logins: &Mutex<Vec<String>>) -> Result<()> {
    let (head, body) = read(&mut stream).await?;
    let (status, answer) = answer(&head, &body, token, logins);
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(answer.as_bytes()).await?;
    Ok(())
}

fn answer(head: &str, body: &Value, token: &str, logins: &Mutex<Vec<String>>) -> (&'static str, Value) {
    if head.starts_with("PUT /v1/auth/kubernetes/login ") {
        let audience = audience(body["jwt"].as_str().unwrap_or_default()).unwrap_or_default();
        let login = format!("{} for {audience}", body["role"].as_str().unwrap_or_default());
        logins.lock().unwrap_or_else(PoisonError::into_inner).push(login);
        return ("200 OK", json!({"auth": {"client_token": token}}));
    }
    let has_token = head
        .lines()
        .any(|line| line.eq_ignore_ascii_case(&format!("x-vault-token: {token}")));
    let asks = head.starts_with("PUT /v1/transit/decrypt/k ") && body["ciphertext"] == CIPHERTEXT;
    match (has_token, asks) {
        (true, true) => ("200 OK", json!({"data": {"plaintext": DATA_KEY}})),
        (false, _) => ("403 Forbidden", json!({"errors": ["permission denied"]})),
        (true, false) => ("404 Not Found", json!({"errors": []})),
    }
}

async fn read(stream: &mut TcpStream) -> Result<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "the request ended early");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if body.len() >= length.unwrap_or(0) {
            return Ok((head.to_owned(), serde_json::from_str(body).unwrap_or_default()));
        }
    }
}

/// The first audience of a token.
fn audience(token: &str) -> Option<String> {
    // The claims are base64 without padding, in the alphabet of URLs; a Secret's value is base64 too.
    let payload = token.split('.').nth(1)?.replace('-', "+").replace('_', "/");
    let padding = "=".repeat((4 - payload.len() % 4) % 4);
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(payload + &padding)).ok()?;
    let claims: Value = serde_json::from_slice(&bytes.0).ok()?;
    claims["aud"][0].as_str().map(str::to_owned)
}
