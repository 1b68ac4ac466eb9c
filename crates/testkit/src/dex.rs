//! A real Dex as a process: an OpenID provider whose people sign in without a password.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::Process;
use crate::tools;

const START: Duration = Duration::from_secs(30);

/// The client that Dex knows.
pub const CLIENT_ID: &str = "console";
/// Its password.
pub const CLIENT_SECRET: &str = "a-secret-for-tests";
/// Who signs in, as Dex's connector for tests names them; their address is verified.
pub const EMAIL: &str = "kilgore@kilgore.trout";
/// The group that they are in.
pub const GROUP: &str = "authors";

/// A Dex on a free port of 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct Dex {
    issuer: String,
    _process: Process,
    _directory: TempDir,
}

impl Dex {
    /// Starts one whose client comes back to this address, and waits until it answers.
    pub async fn start(callback: &str) -> Result<Self> {
        let built = tokio::task::spawn_blocking(tools::dex).await??;
        let directory = crate::scratch::directory("dex")?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let issuer = format!("http://{address}/dex");
        let config = json!({
            "issuer": issuer,
            "storage": {"type": "memory"},
            "web": {"http": address},
            "frontend": {"dir": built.pages},
            "oauth2": {"skipApprovalScreen": true},
            "connectors": [{"type": "mockCallback", "id": "mock", "name": "Tests"}],
            "staticClients": [{
                "id": CLIENT_ID, "secret": CLIENT_SECRET, "name": "Console", "redirectURIs": [callback],
            }],
        });
        // JSON is YAML, too.
        let file = directory.path().join("dex.yaml");
        std::fs::write(&file, config.to_string())?;
        let mut command = Command::new(&built.program);
        command.arg("serve").arg(&file).current_dir(directory.path());
        let process = Process::start("dex", command, directory.path().join("dex.log"))?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let discovery = format!("{issuer}/.well-known/openid-configuration");
        let started = Instant::now();
        while http.get(&discovery).send().await.is_err() {
            if let Some(status) = process.exit_status() {
                bail!("Dex ended ({status}):\n{}", process.log_tail(20));
            }
            if started.elapsed() > START {
                bail!("Dex does not answer:\n{}", process.log_tail(20));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Self {
            issuer,
            _process: process,
            _directory: directory,
        })
    }

    /// `http://127.0.0.1:port/dex`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// Has a browser visit pages until it is led to this address; the whole URL of that. It keeps no cookies.
///
/// # Errors
/// When a page leads nowhere.
pub async fn follow(http: &reqwest::Client, mut url: String, until: &str) -> Result<String> {
    for _ in 0..10 {
        if url.starts_with(until) {
            return Ok(url);
        }
        let answer = http.get(&url).send().await?;
        let next = answer
            .headers()
            .get("location")
            .and_then(|next| next.to_str().ok());
        let next = next.with_context(|| format!("{url} answers {} and leads nowhere", answer.status()))?;
        url = answer.url().join(next)?.to_string();
    }
    bail!("{url}: too many redirects")
}
