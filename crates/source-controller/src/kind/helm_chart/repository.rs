//! A repository of charts, of either type: which version is meant, and its archive.

mod anonymous;

use std::error::Error as StdError;
use std::fs::File;

use api::source::HelmRepository;
use artifact::digest::Digest;
use artifact::store::Store;
use helm_package::Step;

use crate::error::{Error, HelmChartError};
use crate::fetch::helm_chart::{self, Access};
use crate::fetch::helm_repository::{self as indexed, ChartError, FetchError, has_no_such_version};
use crate::kind::helm_repository::{self, version};
use crate::reconcile::fetch::Fetcher;

pub(super) use self::anonymous::Anonymous;
use oci_client::registry;
use transport::http;
use verification_policy::sources::Origin;

/// Where charts are.
#[derive(Clone)]
pub(crate) enum Repository {
    /// In a container registry.
    Registry(Access),
    /// On a server with an index, which the store has for a HelmRepository.
    Index {
        object: Box<HelmRepository>,
        references: helm_repository::References,
        store: Store,
        /// True if the index is asked for anew when it has not what is wanted, though that was done a moment ago.
        urgent: bool,
    },
    /// On a server with an index that no HelmRepository is for.
    Anonymous(Anonymous),
}

/// A version of a chart that a repository has.
pub(super) struct Found {
    pub(super) version: String,
    place: Place,
}

enum Place {
    Registry(Box<helm_chart::Found>),
    Server(Box<version::Found>),
}

/// A step on the way to a chart, in Flux's words.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("failed to get chart version for remote reference")]
    Find(#[source] Box<dyn StdError + Send + Sync>),
    #[error("failed to download chart for remote reference")]
    Download(#[source] ChartError),
}

impl Repository {
    /// Where it is, for VerificationPolicies.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Registry(access) => Origin::of_url(&access.url, access.insecure),
            Self::Index { object, .. } => helm_repository::origin(object),
            Self::Anonymous(anonymous) => Origin::of_url(anonymous.url(), false),
        }
    }

    /// Finds the newest version of a chart in a range; without a range the newest that is no pre-release.
    pub(super) async fn find(&self, name: &str, range: &str, fetcher: &Fetcher) -> Result<Found, Error> {
        match self {
            Self::Registry(access) => {
                let found = helm_chart::find(access, name, range, fetcher).await;
                let found = found.map_err(HelmChartError::of_search)?;
                Ok(Found {
                    version: found.version.clone(),
                    place: Place::Registry(Box::new(found)),
                })
            }
            Self::Index {
                object,
                references,
                store,
                urgent,
            } => {
                let wanted = version::Wanted {
                    chart: name,
                    range,
                    urgent: *urgent,
                };
                let found = version::find(object, references, wanted, store, fetcher).await;
                found.map(on_server).map_err(not_found)
            }
            Self::Anonymous(server) => {
                let found = server.find(name, range, fetcher).await;
                found.map(on_server).map_err(not_found)
            }
        }
    }
}

impl Found {
    /// Downloads the archive into a temporary file, which is at its beginning then.
    pub(super) async fn download(&self, fetcher: &Fetcher) -> Result<File, Error> {
        match &self.place {
            Place::Registry(found) => helm_chart::download(found, fetcher)
                .await
                .map_err(HelmChartError::of_search),
            Place::Server(found) => {
                let chart = found.repository.download(&found.version).await;
                chart.map(|chart| chart.file).map_err(|error| {
                    let unauthorized = is_unauthorized(&error);
                    failed(Step::Pull, Failed::Download(error), unauthorized)
                })
            }
        }
    }

    /// Where signatures are looked for: in registries only.
    pub(super) fn origin(self) -> Option<(registry::Repository, Digest)> {
        match self.place {
            Place::Registry(found) => Some((found.place.request.repository, found.place.resolved.digest)),
            Place::Server(_) => None,
        }
    }
}

fn on_server(found: version::Found) -> Found {
    Found {
        version: found.version.version.clone(),
        place: Place::Server(Box::new(found)),
    }
}

/// As in Flux, a version that is not there is the reference's fault, and everything else the pull's.
fn not_found(error: version::Error) -> Error {
    use indexed::Error as OfRepository;
    match error {
        version::Error::Store(error) => *error,
        version::Error::Repository(OfRepository::Abandoned)
        | version::Error::Chart(ChartError::Abandoned) => Error::Abandoned,
        version::Error::Repository(
            error @ (OfRepository::InvalidUrl(_)
            | OfRepository::Secret { .. }
            | OfRepository::Authentication(..)
            | OfRepository::Credentials(_)
            | OfRepository::Tls(_)
            | OfRepository::Client(_)),
        ) => Error::HelmRepository(error),
        version::Error::Repository(OfRepository::FetchIndex(error)) => {
            let unauthorized = is_refused(&error);
            failed(Step::Pull, Failed::Find(Box::new(error)), unauthorized)
        }
        version::Error::Repository(error) => failed(Step::Pull, Failed::Find(Box::new(error)), false),
        version::Error::Chart(error) => {
            let step = match &error {
                ChartError::Pick(_) => Step::Reference,
                error if has_no_such_version(error) => Step::Reference,
                _ => Step::Pull,
            };
            failed(step, Failed::Find(Box::new(error)), false)
        }
    }
}

fn failed(step: Step, error: Failed, unauthorized: bool) -> Error {
    if unauthorized {
        return Error::Chart(HelmChartError::Authenticate(Box::new(error)));
    }
    let source = Box::new(error);
    Error::Chart(HelmChartError::Build(helm_package::Error { step, source }))
}

fn is_unauthorized(error: &ChartError) -> bool {
    matches!(error, ChartError::Download(error) if is_refused(error))
}

fn is_refused(error: &FetchError) -> bool {
    matches!(error, FetchError::Request(error) if error.kind() == http::Kind::Unauthorized)
}
