//! Real object stores as processes: moto for Amazon's services, azurite for Azure, fake-gcs-server for Google.
//!
//! [`ObjectStore`] listens on a free port of 127.0.0.1 and is gone when dropped. Objects are put there as each store
//! wants it; what it logs is what the code under test asked for.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::Process;
use crate::tools::Package;

/// Name of azurite's storage account.
pub const AZURE_ACCOUNT: &str = "devstoreaccount1";
/// The key of it, which is in its documentation.
pub const AZURE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A running object store.
#[derive(Debug)]
pub struct ObjectStore {
    port: u16,
    http: reqwest::Client,
    process: Process,
    _directory: TempDir,
}

impl ObjectStore {
    /// Starts it empty, installs it before if need be, and waits until it listens.
    pub async fn start(package: Package) -> Result<Self> {
        Self::start_with(package, &[]).await
    }

    /// The same with further arguments for the program.
    pub async fn start_with(package: Package, arguments: &[&str]) -> Result<Self> {
        // One provider per process; a second call finds it there.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let ensure = move || {
            use std::io::Write as _;
            package.ensure(&mut |line| {
                // A closed stderr is no reason to fail.
                let _ = writeln!(std::io::stderr(), "{line}");
            })
        };
        tokio::task::spawn_blocking(ensure).await??;
        let directory = crate::scratch::directory(package.name())?;
        let port = free_port()?;
        let mut command = Command::new(package.path()?);
        match package {
            Package::Flux => bail!("flux is no object store"),
            Package::Moto => command.args(["-H", "127.0.0.1", "-p", &port.to_string()]),
            Package::Azurite => command
                .args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()])
                .args(["--skipApiVersionCheck", "--disableTelemetry", "--location"])
                .arg(directory.path()),
            Package::FakeGcsServer => command
                .args([
                    "-scheme",
                    "http",
                    "-host",
                    "127.0.0.1",
                    "-port",
                    &port.to_string(),
                ])
                .args(["-backend", "memory", "-log-level", "info"]),
        };
        command.args(arguments).current_dir(directory.path());
        let log = directory.path().join("store.log");
        let process = Process::start(package.name(), command, log)?;
        let store = Self {
            port,
            http: reqwest::Client::builder().no_proxy().build()?,
            process,
            _directory: directory,
        };
        store.wait_until_listening().await?;
        Ok(store)
    }

    /// `127.0.0.1:port`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The lines that it logged, which moto and azurite do for each request.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Sends a request with a body to a path; the answer must be a success.
    pub async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Result<String> {
        let url = format!("http://{}{path}", self.address());
        let mut request = self.http.request(method, &url).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await?;
        let status = response.status();
        let body = response.text().await?;
        if !status.is_success() {
            bail!("{url} answered {status}: {body}");
        }
        Ok(body)
    }

    /// Puts an object into a bucket of moto, which takes requests without a signature.
    pub async fn put_s3(&self, bucket: &str, key: &str, content: &str) -> Result<()> {
        let path = format!("/{bucket}/{key}");
        self.send(reqwest::Method::PUT, &path, &S3_HEADERS, content.to_owned())
            .await
            .map(drop)
    }

    /// Gets an object of a bucket of moto, or a listing: `bucket/key`, `bucket?list-type=2`.
    pub async fn get_s3(&self, rest: &str) -> Result<String> {
        self.send(reqwest::Method::GET, &format!("/{rest}"), &S3_HEADERS, "")
            .await
    }

    /// Deletes an object from a bucket of moto.
    pub async fn delete_s3(&self, bucket: &str, key: &str) -> Result<()> {
        let path = format!("/{bucket}/{key}");
        self.send(reqwest::Method::DELETE, &path, &S3_HEADERS, "")
            .await
            .map(drop)
    }

    /// Makes a bucket in moto.
    pub async fn make_s3(&self, bucket: &str) -> Result<()> {
        self.send(reqwest::Method::PUT, &format!("/{bucket}"), &S3_HEADERS, "")
            .await
            .map(drop)
    }

    /// Makes a bucket in fake-gcs-server.
    pub async fn make_gcs(&self, bucket: &str) -> Result<()> {
        let body = format!("{{\"name\":\"{bucket}\"}}");
        let headers = [("content-type", "application/json")];
        self.send(reqwest::Method::POST, "/storage/v1/b?project=p", &headers, body)
            .await
            .map(drop)
    }

    /// Puts an object into a bucket of fake-gcs-server. The name is already encoded.
    pub async fn put_gcs(&self, bucket: &str, key: &str, content: &str) -> Result<()> {
        let path = format!("/upload/storage/v1/b/{bucket}/o?uploadType=media&name={key}");
        let headers = [("content-type", "text/plain")];
        self.send(reqwest::Method::POST, &path, &headers, content.to_owned())
            .await
            .map(drop)
    }

    async fn wait_until_listening(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.process.check_running()?;
            let Err(error) = tokio::net::TcpStream::connect(self.address()).await else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                let log = self.process.log_tail(20);
                return Err(error).context(format!("the object store does not listen; its log:\n{log}"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// moto takes the region from here when a request has no signature.
const S3_HEADERS: [(&str, &str); 1] = [(
    "authorization",
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
)];
