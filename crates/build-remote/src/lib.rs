//! What a kustomize build gets from elsewhere: bases in Git repositories, files behind URLs, and Helm charts.
//!
//! [`Remote`] answers the questions of [`kustomize_build::Fetch`] and [`kustomize_build::Charts`] with our own clients: no
//! other program is started, and nothing is written but temporary files. What it may do is said by its [`Settings`]; a
//! build that asks for more is refused, with the setting that allows it.
//!
//! Builds are synchronous and the clients are not: a [`Remote`] must be used on a thread that may block, outside of the
//! runtime that it was made with.

mod charts;
mod files;
mod git;
mod repository_tree;
mod template;

use std::path::PathBuf;
use std::time::Duration;

use kustomize_build::{
    ChartReference, ChartRelease, Charts, Fetch, FetchError, FileSystem, Repository, without_credentials,
};
use tokio::runtime::Handle;
use tokio::time::Instant;
use transport::http::{self, Clients};
use url::Url;

/// What a build may get, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Helm charts are rendered.
    pub charts: bool,
    /// Files with private keys for SSH, without a passphrase. The first that exists is used.
    pub ssh_keys: Vec<PathBuf>,
    /// Keys of hosts for SSH, as in OpenSSH's file.
    pub known_hosts: Option<PathBuf>,
    /// Credentials for registries, as in `config.json` of `docker login`.
    pub docker_config: Option<PathBuf>,
}

/// How long a file, an index or a chart may take. That of a repository is in its URL.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Gets what a build asks for.
pub struct Remote {
    settings: Settings,
    /// None: nothing may be fetched.
    runtime: Option<Handle>,
    clients: Clients,
    registries: oci_client::registry::Memory,
}

impl Remote {
    /// Makes it for a runtime, on which the requests are sent. Without one, nothing may be fetched.
    pub fn new(settings: Settings, runtime: Option<Handle>) -> Self {
        Self {
            settings,
            runtime,
            clients: Clients::default(),
            registries: oci_client::registry::Memory::default(),
        }
    }

    /// Waits for what is fetched, or refuses to fetch it.
    fn fetch<T>(
        &self,
        what: &str,
        fetched: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(fetched),
            None => Err(FetchError::Refused(format!(
                "remote resources are not supported: {what}: this build may not use the network; allow it with --allow-remote, or copy what it names into the source"
            ))),
        }
    }

    fn client(&self, settings: &http::Settings, url: &Url) -> Result<http::Client, FetchError> {
        let settings = settings.clone().towards(url.host_str().unwrap_or_default());
        self.clients.get(&settings).map_err(|error| failed(&error))
    }

    fn deadline() -> Instant {
        Instant::now() + TIMEOUT
    }
}

impl Fetch for Remote {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        let what = format!("'{}'", without_credentials(repository.raw()));
        let pack = self.fetch(&what, git::fetch(self, repository))?;
        Ok(Box::new(repository_tree::RepositoryTree::new(pack)))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(&format!("'{}'", without_credentials(url)), files::get(self, url))
    }

    fn charts(&self) -> Option<&dyn Charts> {
        self.settings.charts.then_some(self as &dyn Charts)
    }
}

impl Charts for Remote {
    fn pull(&self, chart: &ChartReference) -> Result<Box<dyn FileSystem>, FetchError> {
        let from = without_credentials(&chart.repository);
        let what = format!("the Helm chart '{}' of {from}", chart.name);
        self.fetch(&what, charts::pull(self, chart))
    }

    fn template(&self, release: &ChartRelease) -> Result<String, String> {
        template::template(release)
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> FetchError {
    FetchError::Failed(error_chain::chain(error))
}
