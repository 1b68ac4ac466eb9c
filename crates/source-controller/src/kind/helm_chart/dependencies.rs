//! Charts that a chart names, from the HelmRepositories of its namespace: one with the same address, or with the name that is
//! used as an alias. An address that no HelmRepository has is asked without credentials.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use api::source::{DEFAULT_TIMEOUT, HelmRepository};
use helm_package::dependencies::{Fetch, Fetched};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use transport::http;
use url::Url;
use verification_policy::sources::Refusal;

use super::references;
use super::repository::{Anonymous, Repository};
use crate::fetch::helm_chart::Access;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;

/// Gets charts on a blocking thread of the runtime, for one chart.
pub(super) struct Dependencies {
    reader: Reader,
    fetcher: Fetcher,
    runtime: Handle,
    /// The HelmRepositories of the namespace, once they are needed.
    known: OnceCell<Vec<HelmRepository>>,
    /// Repositories that were asked already, as the chart calls them.
    asked: Mutex<Vec<(String, Repository)>>,
}

/// Error, in Flux's words.
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
    #[error("dependency is {0}")]
    Refused(#[from] Refusal),
}

impl Dependencies {
    pub(super) fn new(reader: Reader, fetcher: Fetcher, runtime: Handle) -> Self {
        Self {
            reader,
            fetcher,
            runtime,
            known: OnceCell::new(),
            asked: Mutex::default(),
        }
    }

    async fn get(&self, repository: &str, name: &str, version: &str) -> Result<Fetched, Error> {
        let found = self.repository(repository).await?;
        let origin = found.origin().with_name(name);
        let admission = &self.fetcher.admission;
        admission.admit(&origin)?;
        let what = format!("chart '{name}', which it needs and which is not in its folder charts/,");
        admission.cannot_verify(&what, &origin)?;
        let found = found.find(name, version, &self.fetcher).await;
        let found = found.map_err(|error| Error::Version {
            name: name.to_owned(),
            version: version.to_owned(),
            repository: shown(repository),
            problem: problem(&error),
        })?;
        let failed = |problem: String| Error::Download {
            version: found.version.clone(),
            problem,
        };
        let mut file = found
            .download(&self.fetcher)
            .await
            .map_err(|error| failed(problem(&error)))?;
        let mut archive = Vec::new();
        file.read_to_end(&mut archive)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Fetched {
            version: found.version,
            archive,
        })
    }

    /// A repository; the same one each time, so that an index that no one keeps is fetched once.
    async fn repository(&self, name: &str) -> Result<Repository, Error> {
        let known = || {
            let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let found = asked.iter().find(|(asked, _)| asked == name);
            found.map(|(_, repository)| repository.clone())
        };
        if let Some(repository) = known() {
            return Ok(repository);
        }
        let repository = match self.object(name).await? {
            Some(object) => {
                let urgent = true; // whoever builds a chart wants what there is now
                let found = references::repository(object, urgent, &self.reader).await;
                found.map_err(|error| unusable(name, error.message()))?
            }
            None => anonymous(name),
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((name.to_owned(), repository.clone()));
        Ok(repository)
    }

    /// The HelmRepository with this name or address. None: no one made one for the address.
    async fn object(&self, wanted: &str) -> Result<Option<&HelmRepository>, Error> {
        let list = || async { self.reader.objects::<HelmRepository>().await };
        let known = self.known.get_or_try_init(list).await;
        let mut known = known.map_err(|error| unusable(wanted, error.to_string()))?.iter();
        match wanted.strip_prefix('@') {
            Some(name) => {
                let found = known.find(|known| known.metadata.name.as_deref() == Some(name));
                found.map(Some).ok_or_else(|| Error::NoRepository {
                    name: name.to_owned(),
                    namespace: self.reader.namespace().to_owned(),
                })
            }
            None => Ok(known.find(|known| normalized(&known.spec.url) == normalized(wanted))),
        }
    }
}

/// Returns the error without the names of the steps, which are those of a chart and not of its dependencies.
fn problem(error: &crate::error::Error) -> String {
    const STEPS: [&str; 4] = [
        "invalid chart reference: ",
        "chart pull error: ",
        "failed to get chart version for remote reference: ",
        "failed to download chart for remote reference: ",
    ];
    let message = error.message();
    let rest = STEPS.iter().fold(message.as_str(), |text, step| {
        text.strip_prefix(step).unwrap_or(text)
    });
    rest.to_owned()
}

fn unusable(url: &str, problem: String) -> Error {
    Error::Repository {
        url: shown(url),
        problem,
    }
}

/// The address without user and password, which someone may have put there.
fn shown(url: &str) -> String {
    Url::parse(url).map_or_else(
        |_| url.to_owned(),
        |parsed| match parsed.username() {
            "" if parsed.password().is_none() => url.to_owned(),
            _ => http::public(&parsed),
        },
    )
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
fn anonymous(url: &str) -> Repository {
    if !url.starts_with("oci://") {
        return Repository::Anonymous(Anonymous::new(url));
    }
    Repository::Registry(Access {
        url: url.to_owned(),
        insecure: false,
        timeout: DEFAULT_TIMEOUT,
        secret: None,
        certificates: None,
        login: None,
    })
}

fn normalized(url: &str) -> &str {
    url.trim_end_matches('/')
}
