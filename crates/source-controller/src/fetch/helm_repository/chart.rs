//! Charts of a repository: which version, and its archive.

use std::fs::File;
use std::io::{Read, Seek as _, Write as _};

use artifact::digest::{Digest, Hasher};
use helm_index::{ChartVersion, PickError};
use reqwest::header::HeaderMap;
use url::Url;

use super::{FetchError, Repository};
use transport::http;

/// Expected content where a web page may come.
const ARCHIVE: &str = "the archive of a chart";

/// A chart that cannot be had from a repository.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChartError {
    /// The stored index cannot be read.
    #[error("failed to load index")]
    ReadIndex(#[source] helm_index::Error),
    /// The index has no chart of this name.
    #[error("no chart name found")]
    NoChart,
    /// No version of the chart can be chosen.
    #[error(transparent)]
    Pick(#[from] PickError),
    /// The index does not say where the chart is.
    #[error("chart '{0}' has no downloadable URLs")]
    NoUrl(String),
    /// It says so in a way that is no address.
    #[error(transparent)]
    ResolveUrl(#[from] helm_index::ResolveError),
    /// The chart is somewhere else than on an HTTP server.
    #[error("failed to download the chart from '{url}': its scheme is neither http nor https")]
    Scheme {
        /// Without credentials.
        url: String,
    },
    /// The archive could not be downloaded.
    #[error(transparent)]
    Download(#[from] FetchError),
    /// The archive is larger than `--helm-chart-max-size`.
    #[error("chart exceeds the maximum chart size of {0} bytes")]
    TooLarge(u64),
    /// The archive is not the one that the index names.
    #[error("failed to verify the chart from '{url}': its digest is {found}, and the index says {expected}")]
    Digest {
        /// Where from.
        url: String,
        /// As downloaded.
        found: Digest,
        /// As in the index.
        expected: String,
    },
    /// A blocking step was torn down, by shutdown or by a defect.
    #[error("failed to finish the work on the chart")]
    Abandoned,
}

impl From<http::Error> for ChartError {
    fn from(error: http::Error) -> Self {
        Self::Download(error.into())
    }
}

/// The archive of a chart.
pub(crate) struct Chart {
    /// Where it was downloaded, without credentials.
    pub(crate) url: String,
    pub(crate) digest: Digest,
    /// At its beginning.
    pub(crate) file: File,
}

/// The version of a chart that an index (as it is stored) has for a range. Blocks.
pub(crate) fn find_version(index: impl Read, chart: &str, range: &str) -> Result<ChartVersion, ChartError> {
    let versions = helm_index::find(index, chart).map_err(ChartError::ReadIndex)?;
    let versions = versions.ok_or(ChartError::NoChart)?;
    Ok(helm_index::pick(&versions, chart, range)?.clone())
}

/// Returns whether a newer index may have what is missing.
pub(crate) fn has_no_such_version(error: &ChartError) -> bool {
    let picked = [PickError::NoVersions];
    match error {
        ChartError::NoChart | ChartError::Pick(PickError::NoMatch { .. }) => true,
        ChartError::Pick(error) => picked.contains(error),
        _ => false,
    }
}

impl Repository {
    /// Where a version is downloaded: the first of its addresses, relative to the repository's.
    pub(crate) fn chart_url(&self, version: &ChartVersion) -> Result<Url, ChartError> {
        let reference = version.urls.first();
        let reference = reference.ok_or_else(|| ChartError::NoUrl(version.name.clone()))?;
        let resolved = helm_index::resolve_url(self.url.as_str(), reference)?;
        let invalid = || ChartError::Scheme {
            url: "an invalid URL".to_owned(),
        };
        let url = Url::parse(&resolved).map_err(|_| invalid())?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            _ => Err(ChartError::Scheme {
                url: http::public(&url),
            }),
        }
    }

    /// Downloads a version. What is not as large or not the same as the index says is refused.
    pub(crate) async fn download(&self, version: &ChartVersion) -> Result<Chart, ChartError> {
        let mut url = self.chart_url(version)?;
        let _ = url.set_username(""); // an index hands out no credentials; fails only for URLs that can have none
        let _ = url.set_password(None);
        let response = self.get(&url, HeaderMap::new()).await?;
        let mut response = http::checked(response, self.deadline).await?;
        http::refuse_page(&response, ARCHIVE)?;
        let mut file = tempfile::tempfile_in(&self.directory).map_err(FetchError::Write)?;
        let mut hasher = Hasher::new();
        let mut size = 0;
        while let Some(chunk) = http::next_chunk(&mut response, self.deadline).await? {
            if size == 0 && http::begins_a_page(&chunk) {
                let (url, expected) = (http::public(&url), ARCHIVE);
                return Err(http::Error::WebPage { url, expected }.into());
            }
            size += chunk.len() as u64;
            if size > self.limits.chart {
                return Err(ChartError::TooLarge(self.limits.chart));
            }
            hasher.update(&chunk);
            file.write_all(&chunk).map_err(FetchError::Write)?;
        }
        file.rewind().map_err(FetchError::Write)?;
        let chart = Chart {
            url: http::public(&url),
            digest: hasher.finish(),
            file,
        };
        check_digest(&chart, &version.digest)?;
        Ok(chart)
    }
}

/// The index may have no digest, or one of another kind: then there is nothing to compare.
fn check_digest(chart: &Chart, expected: &str) -> Result<(), ChartError> {
    let hex = expected.strip_prefix("sha256:").unwrap_or(expected);
    let is_sha256 = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let found = chart.digest.to_string();
    if is_sha256 && found != format!("sha256:{}", hex.to_ascii_lowercase()) {
        return Err(ChartError::Digest {
            url: chart.url.clone(),
            found: chart.digest,
            expected: expected.to_owned(),
        });
    }
    Ok(())
}
