//! Charts that a chart names, from the HelmRepositories of its namespace: one with the same address, or with the name that is
//! used as an alias. An address that no HelmRepository has is asked without credentials.

use std::io::Read as _;

use api::source::{DEFAULT_TIMEOUT, HelmRepository};
use helm_package::dependencies::{Fetch, Fetched};
use tokio::runtime::Handle;

use super::references::access;
use crate::error::chain;
use crate::fetch::helm_chart::{self, Access};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::observe::Lookup;

/// Gets charts on a blocking thread of the runtime.
pub(super) struct Dependencies {
    lookup: Lookup,
    fetcher: Fetcher,
    runtime: Handle,
}

/// What went wrong, in Flux's words.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("no HelmRepository '{name}' found for '@{name}' in '{namespace}' namespace")]
    NoRepository { name: String, namespace: String },
    #[error("failed to get chart repository for URL '{url}': {problem}")]
    Repository { url: String, problem: String },
    #[error("failed to get chart '{name}' version '{version}' from '{repository}': {problem}")]
    Version {
        name: String,
        version: String,
        repository: String,
        problem: String,
    },
    #[error("chart download of version '{version}' failed: {problem}")]
    Download { version: String, problem: String },
}

impl Dependencies {
    pub(super) fn new(lookup: Lookup, fetcher: Fetcher, runtime: Handle) -> Self {
        Self {
            lookup,
            fetcher,
            runtime,
        }
    }

    async fn get(&self, repository: &str, name: &str, version: &str) -> Result<Fetched, Error> {
        let access = self.access(repository).await?;
        let found = helm_chart::find(&access, name, version, &self.fetcher).await;
        let found = found.map_err(|error| Error::Version {
            name: name.to_owned(),
            version: version.to_owned(),
            repository: repository.to_owned(),
            problem: chain(&error),
        })?;
        let failed = |problem: String| Error::Download {
            version: found.version.clone(),
            problem,
        };
        let mut file = helm_chart::download(&found, &self.fetcher)
            .await
            .map_err(|error| failed(chain(&error)))?;
        let mut archive = Vec::new();
        file.read_to_end(&mut archive)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Fetched {
            version: found.version,
            archive,
        })
    }

    async fn access(&self, repository: &str) -> Result<Access, Error> {
        let failed = |problem: String| Error::Repository {
            url: repository.to_owned(),
            problem,
        };
        let reader = self.lookup.reader();
        let all = reader.objects::<HelmRepository>().await;
        let mut all = all.map_err(|error| failed(error.to_string()))?.into_iter();
        let known = match repository.strip_prefix('@') {
            Some(name) => {
                let found = all.find(|known| known.metadata.name.as_deref() == Some(name));
                Some(found.ok_or_else(|| Error::NoRepository {
                    name: name.to_owned(),
                    namespace: self.lookup.namespace().to_owned(),
                })?)
            }
            None => {
                let wanted = normalized(repository);
                all.find(|known| normalized(&known.spec.url) == wanted)
            }
        };
        match known {
            Some(known) => access(&known, &reader)
                .await
                .map_err(|error| failed(error.message())),
            None => anonymous(repository).map_err(failed),
        }
    }
}

impl Fetch for Dependencies {
    fn fetch(
        &self,
        repository: &str,
        name: &str,
        version: &str,
    ) -> Result<Fetched, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.runtime.block_on(self.get(repository, name, version))?)
    }
}

/// A repository that is only an address.
fn anonymous(url: &str) -> Result<Access, String> {
    let is_oci = url.starts_with("oci://");
    if !is_oci {
        return Err("repositories over http are not supported by this controller yet".to_owned());
    }
    Ok(Access {
        url: url.to_owned(),
        insecure: false,
        timeout: DEFAULT_TIMEOUT,
        secret: None,
        certificates: None,
    })
}

fn normalized(url: &str) -> &str {
    url.trim_end_matches('/')
}
