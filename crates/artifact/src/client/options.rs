//! Options of a client, and references to artifacts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::error::{Error, Result};
use super::supply::Supply;
use crate::archive::Limits;

/// The kind whose artifacts anybody may make.
pub(super) const EXTERNAL_KIND: &str = "ExternalArtifact";

/// How a [`Client`] reaches artifacts.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The artifact service, for example `https://source-controller:9091`. None: everything over HTTP.
    pub grpc_endpoint: Option<String>,
    /// Name in the service's certificate, where the endpoint is an address that is not in it.
    pub server_name: Option<String>,
    /// Certificates (PEM) of the authority of an `https` endpoint.
    pub authority: Supply,
    /// The token that calls of the service carry.
    pub token: Supply,
    /// Bytes of blobs and folders that are kept in memory.
    pub cache_bytes: usize,
    /// How often a failed download or broken stream is tried again. Flux's --http-retry, by default 9.
    pub http_retries: u32,
    /// Wait before the first retry; it doubles up to `retry_max`.
    pub retry_min: Duration,
    /// Longest wait between two tries.
    pub retry_max: Duration,
    /// `host` or `host:port` to use instead of that in the artifact's URL, for controllers outside of the cluster.
    pub hostname: Option<String>,
    /// Largest file that is read into memory.
    pub max_file_bytes: u64,
    /// Hosts (`host:port`) with artifacts of kinds that the service has, beside it: those of other shards. What an object's
    /// status says is believed if it is there.
    pub http_hosts: Vec<String>,
    /// Limits for the contents of a downloaded archive.
    pub limits: Limits,
    /// Where downloaded archives are unpacked. None: the system's folder for temporary files.
    pub spool_folder: Option<PathBuf>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            grpc_endpoint: None,
            server_name: None,
            authority: Supply::Nothing,
            token: Supply::Nothing,
            cache_bytes: 32 * 1024 * 1024,
            http_retries: 9,
            retry_min: Duration::from_millis(200),
            retry_max: Duration::from_secs(5),
            hostname: None,
            max_file_bytes: 64 * 1024 * 1024,
            http_hosts: Vec::new(),
            limits: Limits::default(),
            spool_folder: None,
        }
    }
}

/// A source object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceObject {
    /// Its kind, as in manifests.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl SourceObject {
    /// Names an object.
    #[must_use]
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns whether others than the controller behind the artifact service make artifacts of its kind.
    pub(super) fn is_external(&self) -> bool {
        self.kind == EXTERNAL_KIND
    }
}

impl fmt::Display for SourceObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// An artifact as a source object's status names it. The status can be forged: only the artifact service, or for the kinds that
/// others make a download, proves that the object has the artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRef {
    /// The object.
    pub object: SourceObject,
    /// status.artifact.url
    pub url: String,
    /// status.artifact.digest
    pub digest: String,
    /// status.artifact.revision, for messages.
    pub revision: String,
}

/// Counts tries, and waits between them.
pub(super) struct Retries {
    left: u32,
    all: u32,
    first: Duration,
    wait: Duration,
    longest: Duration,
}

impl Retries {
    pub(super) fn new(options: &ClientOptions) -> Self {
        let (all, first, longest) = (options.http_retries, options.retry_min, options.retry_max);
        Self {
            left: all,
            all,
            first,
            wait: first,
            longest,
        }
    }

    /// Waits for the next try, or returns the error when there is none left.
    pub(super) async fn wait_or_give_up(&mut self, error: Error) -> Result<()> {
        if self.left == 0 {
            return Err(error);
        }
        self.left -= 1;
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(self.longest);
        Ok(())
    }

    /// Begins anew: the last try got somewhere.
    pub(super) fn progress(&mut self) {
        (self.left, self.wait) = (self.all, self.first);
    }
}
