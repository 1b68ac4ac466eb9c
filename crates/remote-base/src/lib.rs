//! What a kustomization names elsewhere: bases in Git repositories, and files behind URLs.
//!
//! Our own clients fetch it: no other program is started, and only temporary files are written. [`Bases`] fetches for a person, with
//! the keys in its [`Settings`]. [`Listed`] fetches for builds of a controller, where tenants write the addresses (ADR 36): from listed
//! servers only, without credentials of the controller, within limits.
//!
//! Builds are synchronous and the clients are not: the caller waits on a thread that may block.

mod files;
mod git;
mod kept;
mod listed;
mod repository_tree;

use std::path::PathBuf;
use std::time::Duration;

use git_client::pack::Pack;
use kustomize_build::{FetchError, FileSystem, Repository};
use reqwest::Response;
use tokio::time::Instant;
use transport::http::{self, Clients, Hosts};
use url::Url;

pub use listed::{Fetched, Listed, Session};
use repository_tree::RepositoryTree;

/// Keys, and servers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Files with private keys for SSH, without a passphrase. The first that exists is used.
    pub ssh_keys: Vec<PathBuf>,
    /// Keys of hosts for SSH, as in OpenSSH's file.
    pub known_hosts: Option<PathBuf>,
    /// The only servers that are asked, none of them by SSH; None for all.
    pub only: Option<Hosts>,
}

/// How long a file may take. The time for a repository is in its URL.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Fetches bases and files. Clones share connections.
#[derive(Clone)]
pub struct Bases {
    settings: Settings,
    clients: Clients,
}

impl Bases {
    /// Makes it.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            clients: Clients::default(),
        }
    }

    /// Fetches the commit that a repository is named at, as a tree of files.
    pub async fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        let ask = git::Ask {
            known: None,
            packs: git_pack::Settings::default(),
            deadline: git::deadline(repository),
        };
        match git::fetch(self, repository, ask).await? {
            Some(fetched) => Ok(tree(fetched.pack)),
            None => Err(failed(&git_client::Error::EmptyRepository)),
        }
    }

    /// Fetches a file whole.
    pub async fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        files::get(self, url, files::MAX, Self::deadline()).await
    }

    /// Asks for a URL, and returns the answer unless it says that there is none. User and password in it are for its server only.
    pub async fn answer(&self, url: Url, deadline: Instant) -> Result<Response, FetchError> {
        files::answer(self, url, deadline).await
    }

    /// Returns a client for a server.
    pub fn client(&self, settings: &http::Settings, url: &Url) -> Result<http::Client, FetchError> {
        let mut settings = settings.clone().towards(url.host_str().unwrap_or_default());
        settings.only.clone_from(&self.settings.only);
        self.clients.get(&settings).map_err(|error| failed(&error))
    }

    /// Returns when a file that is asked for now must be there.
    pub fn deadline() -> Instant {
        Instant::now() + TIMEOUT
    }
}

fn tree(pack: Pack) -> Box<dyn FileSystem> {
    Box::new(RepositoryTree::new(pack))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> FetchError {
    FetchError::Failed(error_chain::chain(error))
}
