//! What a kustomize build gets from elsewhere: bases in Git repositories, files behind URLs, and Helm charts.
//!
//! [`Remote`] answers the questions of [`kustomize_build::Fetch`] and [`kustomize_build::Charts`] with our own clients: no
//! other program is started, and nothing is written but temporary files. What it may do is said by its [`Settings`]; a
//! build that asks for more is refused, with the setting that allows it.
//!
//! Builds are synchronous and the clients are not: a [`Remote`] must be used on a thread that may block, outside of the
//! runtime that it was made with.

mod charts;
mod template;

use std::path::PathBuf;

use kustomize_build::{
    ChartReference, ChartRelease, Charts, Fetch, FetchError, FileSystem, Repository, without_credentials,
};
use remote_base::Bases;
use tokio::runtime::Handle;

/// What a build may get, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Helm charts are rendered.
    pub charts: bool,
    /// As whom bases and files are fetched.
    pub bases: remote_base::Settings,
    /// Credentials for registries, as in `config.json` of `docker login`.
    pub docker_config: Option<PathBuf>,
}

/// Gets what a build asks for.
pub struct Remote {
    bases: Bases,
    charts: bool,
    docker_config: Option<PathBuf>,
    /// None: nothing may be fetched.
    runtime: Option<Handle>,
    registries: oci_client::registry::Memory,
}

impl Remote {
    /// Makes it for a runtime, on which the requests are sent. Without one, nothing may be fetched.
    pub fn new(settings: Settings, runtime: Option<Handle>) -> Self {
        Self {
            bases: Bases::new(settings.bases),
            charts: settings.charts,
            docker_config: settings.docker_config,
            runtime,
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
}

impl Fetch for Remote {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        let what = format!("'{}'", without_credentials(repository.raw()));
        self.fetch(&what, self.bases.repository(repository))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(&format!("'{}'", without_credentials(url)), self.bases.file(url))
    }

    fn charts(&self) -> Option<&dyn Charts> {
        self.charts.then_some(self as &dyn Charts)
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
