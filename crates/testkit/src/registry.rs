//! The real distribution registry as a process, behind a small proxy that counts, checks credentials and breaks things.
//!
//! [`Registry::push`] and [`Registry::push_files`] write straight to the registry; what the proxy at
//! [`Registry::address`] sees is only what the code under test asked for.

mod artifact;
mod cosign;
mod proxy;
mod push;

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub use artifact::{Artifact, CHART_MEDIA_TYPE, CONFIG_MEDIA_TYPE, CONTENT_MEDIA_TYPE, Layer, tar_gz};
pub use cosign::CosignKey;
pub use proxy::{Access, Fault, Kind, Request};

use self::push::Beside;
use crate::ports::free_port;
use crate::process::Process;
use crate::tools::{self, Tool};

/// A registry on a free port of 127.0.0.1, without TLS, gone when dropped.
#[derive(Debug)]
pub struct Registry {
    /// Where the proxy listens: `127.0.0.1:port`.
    address: String,
    /// Where the registry itself listens.
    upstream: String,
    shared: Arc<proxy::Shared>,
    http: reqwest::Client,
    task: JoinHandle<()>,
    process: Process,
    _directory: TempDir,
}

impl Registry {
    /// Builds the registry if need be, starts it with empty storage and waits until it answers.
    pub async fn start() -> Result<Self> {
        // One provider per process; a second call finds it there.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        tokio::task::spawn_blocking(|| tools::ensure_loudly(&[Tool::Registry])).await??;
        let directory = crate::scratch::directory("registry")?;
        let upstream = format!("127.0.0.1:{}", free_port()?);
        let configuration = directory.path().join("config.yaml");
        fs::write(&configuration, configuration_text(&directory, &upstream))
            .with_context(|| format!("failed to write {}", configuration.display()))?;
        let mut command = Command::new(tools::path(Tool::Registry)?);
        command
            .arg("serve")
            .arg(&configuration)
            .current_dir(directory.path());
        // Version 3 exports traces to localhost:4318 unless told not to.
        command.env("OTEL_TRACES_EXPORTER", "none");
        let process = Process::start("registry", command, directory.path().join("registry.log"))?;
        // No proxy of the environment stands between us and loopback.
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .context("failed to make an HTTP client")?;
        wait_until_answering(&http, &upstream, &process).await?;
        let shared = Arc::new(proxy::Shared::new(upstream.clone(), http.clone()));
        let (address, task) = proxy::start(Arc::clone(&shared)).await?;
        Ok(Self {
            address,
            upstream,
            shared,
            http,
            task,
            process,
            _directory: directory,
        })
    }

    /// `127.0.0.1:port`, to be put before repository names.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address of a repository as an OCIRepository wants it: `oci://127.0.0.1:port/name`.
    pub fn url(&self, repository: &str) -> String {
        format!("oci://{}/{repository}", self.address)
    }

    /// Pushes an artifact under `tags` and returns its digest, `sha256:…`.
    pub async fn push(&self, repository: &str, tags: &[&str], artifact: &Artifact) -> Result<String> {
        push::push(&self.http, &self.upstream, repository, tags, artifact)
            .await
            .with_context(|| format!("failed to push {repository} with the tags {}", tags.join(", ")))
    }

    /// Pushes files (path, contents) as `flux push artifact` does, and returns the digest.
    pub async fn push_files(
        &self,
        repository: &str,
        tags: &[&str],
        revision: &str,
        files: &[(&str, &str)],
    ) -> Result<String> {
        self.push(repository, tags, &Artifact::from_files(revision, files)?)
            .await
    }

    /// Attaches a signature as cosign 1 and 2 do: the payload that was signed, and its signature in base64.
    pub async fn push_cosign_signature(
        &self,
        repository: &str,
        digest: &str,
        payload: &[u8],
        signature: &str,
    ) -> Result<()> {
        let beside = Beside {
            ending: "sig",
            media_type: "application/vnd.dev.cosign.simplesigning.v1+json",
            content: payload,
            annotations: json!({"dev.cosignproject.cosign/signature": signature}),
        };
        push::push_beside(&self.http, &self.upstream, repository, digest, beside)
            .await
            .with_context(|| format!("failed to push a signature of {repository}@{digest}"))
    }

    /// Attaches an attestation as cosign 1 and 2 do: the envelope around it, and its type.
    pub async fn push_cosign_attestation(
        &self,
        repository: &str,
        digest: &str,
        envelope: &[u8],
        predicate_type: &str,
    ) -> Result<()> {
        let beside = Beside {
            ending: "att",
            media_type: "application/vnd.dsse.envelope.v1+json",
            content: envelope,
            annotations: json!({"predicateType": predicate_type}),
        };
        push::push_beside(&self.http, &self.upstream, repository, digest, beside)
            .await
            .with_context(|| format!("failed to push an attestation of {repository}@{digest}"))
    }

    /// Deletes the manifest `digest`, and with it all tags of it.
    pub async fn delete(&self, repository: &str, digest: &str) -> Result<()> {
        push::delete(&self.http, &self.upstream, repository, digest).await
    }

    /// Says who may use the registry from now on.
    pub fn set_access(&self, access: Access) {
        self.shared.state().access = access;
    }

    /// Sets what goes wrong with `repository` from now on; None: nothing.
    pub fn set_fault(&self, repository: &str, fault: impl Into<Option<Fault>>) {
        let mut state = self.shared.state();
        match fault.into() {
            Some(fault) => state.faults.insert(repository.to_owned(), fault),
            None => state.faults.remove(repository),
        };
    }

    /// Gives the lists of tags of `repository` an `ETag` from now on, as some registries do.
    pub fn mark_lists(&self, repository: &str) {
        self.shared.state().marked.insert(repository.to_owned());
    }

    /// Everything that was asked about `repository`, in order, refused requests included.
    pub fn requests(&self, repository: &str) -> Vec<Request> {
        let state = self.shared.state();
        state
            .requests
            .iter()
            .filter(|request| request.repository == repository)
            .cloned()
            .collect()
    }

    /// The kinds of [`requests`](Self::requests).
    pub fn kinds(&self, repository: &str) -> Vec<Kind> {
        self.requests(repository)
            .iter()
            .map(|request| request.kind)
            .collect()
    }

    /// How many requests there were, about all repositories together.
    pub fn all_requests(&self) -> usize {
        self.shared.state().requests.len()
    }

    /// Forgets all requests so far.
    pub fn reset_requests(&self) {
        self.shared.state().requests.clear();
    }

    /// The registry's process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// JSON is YAML.
fn configuration_text(directory: &TempDir, address: &str) -> String {
    let configuration = serde_json::json!({
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": true}},
        "storage": {
            "filesystem": {"rootdirectory": directory.path().join("storage")},
            "delete": {"enabled": true},
            "maintenance": {"uploadpurging": {"enabled": false}},
        },
        "http": {"addr": address},
    });
    format!("{configuration:#}\n")
}

async fn wait_until_answering(http: &reqwest::Client, address: &str, process: &Process) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let url = format!("http://{address}/v2/");
    loop {
        let problem = match http.get(&url).send().await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => response.status().to_string(),
            Err(error) => error.to_string(),
        };
        process.check_running()?;
        if Instant::now() > deadline {
            bail!(
                "the registry does not answer after 60 s: {problem}; its log:\n{}",
                process.log_tail(20)
            );
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
