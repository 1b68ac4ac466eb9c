//! A repository that only a chart names, as one of its dependencies': no HelmRepository, no Secrets, nothing is kept.

use std::fs::File;
use std::io::Seek as _;
use std::sync::{Arc, Mutex, PoisonError};

use api::source::DEFAULT_TIMEOUT;
use tokio::sync::OnceCell;

use crate::fetch::helm_repository::{Answer, ChartError, FetchError, Repository, Secrets, find_version};
use crate::kind::helm_repository::version::{Error, Found};
use crate::reconcile::fetch::Fetcher;

/// The address, and the index as long as someone asks for charts. Clones share it.
#[derive(Clone)]
pub(crate) struct Anonymous {
    url: String,
    index: Arc<OnceCell<Arc<Mutex<File>>>>,
}

impl Anonymous {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            index: Arc::default(),
        }
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The version of a chart that a range means. The index is fetched for the first one.
    pub(super) async fn find(&self, name: &str, range: &str, fetcher: &Fetcher) -> Result<Found, Error> {
        let deadline = fetcher.deadline(DEFAULT_TIMEOUT);
        let repository = Repository::new(&self.url, &Secrets::default(), false, deadline, fetcher)?;
        let index = self.index.get_or_try_init(|| fetch(&repository)).await?;
        let (index, name, range) = (Arc::clone(index), name.to_owned(), range.to_owned());
        let search = tokio::task::spawn_blocking(move || {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            index.rewind().map_err(FetchError::Write)?;
            find_version(&*index, &name, &range)
        });
        let version = search.await.map_err(|_| ChartError::Abandoned)??;
        Ok(Found { repository, version })
    }
}

async fn fetch(repository: &Repository) -> Result<Arc<Mutex<File>>, Error> {
    match repository.fetch_index(None).await? {
        Answer::New(index) => Ok(Arc::new(Mutex::new(index.file))),
        // Only what is known can be unchanged.
        Answer::Unchanged(_) => Err(ChartError::NoChart.into()),
    }
}
