//! Which version of a chart a HelmRepository has, for those who want charts of it.
//!
//! The stored index answers. When it does not have what is wanted, the index is fetched at once, and stored for the
//! repository if it is new: whoever publishes a chart and asks for it need not wait for the repository's interval. A new
//! index wakes those who did not find what they want in the one before, so that without need no one asks for it again at
//! once: some servers make a new index for each request.

use std::time::Duration;

use api::source::HelmRepository;
use artifact::store::Store;
use controller_kit::ObjectKey;
use helm_index::ChartVersion;

use super::{References, fetched, key_of, refreshed_key, remember, repository_of};
use crate::error::Error as SourceError;
use crate::fetch::helm_repository::{
    self as repository, Answer, ChartError, Repository, Validators, has_no_such_version,
};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::store;

/// An index that was checked within this time is not asked for again, unless someone has a reason to.
const FRESH: Duration = Duration::from_secs(60);

/// No version of a chart can be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The repository cannot be asked, or has no index.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// The index has no such chart or version, or nothing that can be downloaded.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The new index could not be stored.
    #[error("failed to store the index of the Helm repository")]
    Store(#[source] Box<SourceError>),
}

/// A version of a chart, and the repository to download it from ([`Repository::download`]).
pub(crate) struct Found {
    pub(crate) repository: Repository,
    pub(crate) version: ChartVersion,
}

/// Version that is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) chart: &'a str,
    pub(crate) range: &'a str,
    /// True if the index is asked for although that was done a moment ago: someone asks for the first time.
    pub(crate) urgent: bool,
}

/// Finds the version of a chart that a range means in a repository of the default type.
pub(crate) async fn find(
    object: &HelmRepository,
    references: &References,
    wanted: Wanted<'_>,
    store: &Store,
    fetcher: &Fetcher,
) -> Result<Found, Error> {
    let Wanted { chart, range, urgent } = wanted;
    let repository = repository_of(object, references, fetcher).map_err(unwrapped)?;
    let stored = find_stored(object, chart, range, store).await;
    let is_known = matches!(stored, Ok(Some(_)));
    fetcher.helm.cache.count(&key_of(object), is_known);
    let missing = match stored {
        Ok(Some(version)) => return Ok(Found { repository, version }),
        Ok(None) => None,
        Err(error) if has_no_such_version(&error) => Some(error),
        Err(error) => return Err(error.into()),
    };
    let is_left_alone = object.spec.suspend || object.metadata.deletion_timestamp.is_some();
    let is_fresh = !urgent && fetcher.helm.was_checked(&key_of(object), FRESH);
    let is_new = match is_left_alone || is_fresh {
        true => Ok(false),
        false => refresh(object, &repository, store, fetcher).await,
    };
    match (is_new, missing) {
        (Ok(true), _) => match find_stored(object, chart, range, store).await? {
            Some(version) => Ok(Found { repository, version }),
            None => Err(ChartError::NoChart.into()),
        },
        // The stored index is all there is, and what it says is worth more than that it could not be renewed.
        (Ok(false), Some(missing)) => Err(missing.into()),
        (Ok(false), None) => Err(ChartError::NoChart.into()),
        (Err(error), _) => Err(error),
    }
}

/// Looks in the stored index; None when there is no index.
async fn find_stored(
    object: &HelmRepository,
    chart: &str,
    range: &str,
    store: &Store,
) -> Result<Option<ChartVersion>, ChartError> {
    let key = key_of(object);
    let Some(record) = store.current(&key.kind, &key.namespace, &key.name) else {
        return Ok(None);
    };
    let (store, chart, range) = (store.clone(), chart.to_owned(), range.to_owned());
    let search = tokio::task::spawn_blocking(move || match store.open_archive(&record.digest) {
        Ok(index) => repository::find_version(index, &chart, &range).map(Some),
        // It was replaced or collected meanwhile.
        Err(_) => Ok(None),
    });
    search.await.map_err(|_| ChartError::Abandoned)?
}

/// Fetches the index and stores it, unless it is the stored one. Whether it is new.
async fn refresh(
    object: &HelmRepository,
    repository: &Repository,
    store: &Store,
    fetcher: &Fetcher,
) -> Result<bool, Error> {
    let key = key_of(object);
    let stored = store.current(&key.kind, &key.namespace, &key.name);
    let revision = stored.and_then(|record| record.revision.parse().ok());
    let known: Option<Validators> =
        revision.map(|revision| fetcher.helm.recall(&key, &object.spec.url, &revision));
    let index = match repository.fetch_index(known.as_ref()).await? {
        Answer::New(index) => index,
        Answer::Unchanged(validators) => {
            remember(object, validators, fetcher);
            return Ok(false);
        }
    };
    let content = fetched(object, index, fetcher);
    let object_key = ObjectKey {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    };
    store::store::<HelmRepository>(&object_key, content, store, fetcher)
        .await
        .map_err(|failure| Error::Store(Box::new(failure.error)))?;
    fetcher
        .helm
        .tell_of_refresh(refreshed_key(&key.namespace, &key.name));
    Ok(true)
}

fn unwrapped(error: SourceError) -> Error {
    match error {
        SourceError::HelmRepository(error) => Error::Repository(error),
        error => Error::Store(Box::new(error)),
    }
}

#[cfg(test)]
mod tests;
