//! Capabilities of a server, for templates that ask: its version and the API versions that it serves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::version::Info;

use super::{Error, RestMapper};

/// A server changes its version when it is upgraded; so long does no one notice.
const VERSION_FOR: Duration = Duration::from_secs(300);

impl RestMapper {
    /// Returns the version of the server, asked for at most once in a while.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn server_version(&self) -> Result<Arc<Info>, Error> {
        let mut known = self.version.lock().await;
        if let Some((at, version)) = known.as_ref()
            && at.elapsed() < VERSION_FOR
        {
            return Ok(Arc::clone(version));
        }
        let version = self.client.apiserver_version().await;
        let version = Arc::new(version.map_err(|error| Error::Discover(Arc::new(error)))?);
        *known = Some((Instant::now(), Arc::clone(&version)));
        Ok(version)
    }

    /// Returns the API versions (`apps/v1`) and the kinds in them (`apps/v1/Deployment`) that the server serves now: what
    /// was read before may be older than a CRD. All who ask at the same time are answered by one read.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn served_now(&self) -> Result<Vec<String>, Error> {
        let asked = Instant::now();
        self.read_unless(|state| state.read_at.is_some_and(|began| began >= asked))
            .await?;
        Ok(self.state().catalog.api_versions())
    }

    /// Returns the same as it was read last, by whomever.
    ///
    /// # Errors
    /// When it was never read, and the server does not answer.
    pub async fn served_lately(&self) -> Result<Vec<String>, Error> {
        self.read_unless(|state| state.read_at.is_some()).await?;
        Ok(self.state().catalog.api_versions())
    }
}
