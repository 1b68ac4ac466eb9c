//! Helm charts of repositories with an index, and of registries.

use std::io::{Cursor, Read as _};

use kustomize_build::{ChartReference, FetchError, FileSystem, MemoryFs};
use oci_client::name::Name;
use oci_client::registry::Repository;
use oci_client::{HELM_CHART, Reference, credentials};
use remote_base::Bases;
use transport::auth::Access;
use transport::http;
use url::Url;

use crate::{Remote, failed};

/// The largest index that is read; the largest public one has 20 MB.
const MAX_INDEX: u64 = 100 << 20;
/// The largest archive of a chart, as in source-controller.
const MAX_ARCHIVE: u64 = 20 << 20;

/// The newest version that is no pre-release, and with them.
const NEWEST: &str = "*";
const NEWEST_WITH_PRERELEASES: &str = ">0.0.0-0";

/// Pulls a chart; its files are in a folder of its name.
pub(crate) async fn pull(remote: &Remote, chart: &ChartReference) -> Result<Box<dyn FileSystem>, FetchError> {
    let range = match (chart.version.as_str(), chart.with_prereleases) {
        ("", true) => NEWEST_WITH_PRERELEASES,
        ("", false) => NEWEST,
        (version, _) => version,
    };
    let archive = if chart.repository.starts_with("oci://") {
        of_registry(remote, chart, range).await?
    } else {
        of_index(remote, chart, range).await?
    };
    unpack(&archive, chart)
}

async fn of_index(remote: &Remote, chart: &ChartReference, range: &str) -> Result<Vec<u8>, FetchError> {
    let deadline = Bases::deadline();
    let invalid = |error: &dyn std::fmt::Display| FetchError::Failed(error.to_string());
    let mut index = Url::parse(&chart.repository).map_err(|error| invalid(&error))?;
    let folder = index.path().trim_end_matches('/').to_owned();
    index.set_path(&format!("{folder}/index.yaml"));
    let response = remote.bases.answer(index, deadline).await?;
    let served = http::read(response, MAX_INDEX, deadline)
        .await
        .map_err(|error| failed(&error))?;
    let mut stored = Vec::new();
    helm_index::normalize(&mut Cursor::new(served), Cursor::new(Vec::new()), &mut stored)
        .map_err(|error| failed(&error))?;
    let versions = helm_index::find(stored.as_slice(), &chart.name).map_err(|error| failed(&error))?;
    let versions = versions.unwrap_or_default();
    let chosen = helm_index::pick(&versions, &chart.name, range).map_err(|error| failed(&error))?;
    let address = chosen
        .urls
        .first()
        .ok_or_else(|| FetchError::Failed(format!("version {} has no URL in the index", chosen.version)))?;
    let address = helm_index::resolve_url(&chart.repository, address).map_err(|error| failed(&error))?;
    let url = Url::parse(&address).map_err(|error| invalid(&error))?;
    let archive = http::read(remote.bases.answer(url, deadline).await?, MAX_ARCHIVE, deadline)
        .await
        .map_err(|error| failed(&error))?;
    let wanted = chosen.digest.trim_start_matches("sha256:");
    let digest = artifact::Digest::from_content(&archive).hex();
    if !wanted.is_empty() && digest != wanted {
        return Err(FetchError::Failed(format!(
            "version {} has the digest {digest}, and the index says {wanted}",
            chosen.version
        )));
    }
    Ok(archive.into())
}

async fn of_registry(remote: &Remote, chart: &ChartReference, range: &str) -> Result<Vec<u8>, FetchError> {
    let url = format!("{}/{}", chart.repository.trim_end_matches('/'), chart.name);
    let name = Name::parse(&url).map_err(|error| failed(&error))?;
    let host = Url::parse(&format!("https://{}", name.host()))
        .map_err(|error| FetchError::Failed(error.to_string()))?;
    let config = remote.docker_config.as_ref();
    let credentials = match config.and_then(|path| std::fs::read(path).ok()) {
        Some(config) => credentials::in_config_file(&config, &name).map_err(|error| failed(&error))?,
        None => None,
    };
    let repository = Repository {
        insecure: name.is_local(),
        name,
        credentials,
        client: remote.bases.client(&Access::default().settings, &host)?,
        memory: remote.registries.clone(),
        deadline: Bases::deadline(),
    };
    let exact = go_semver::Version::parse(range).is_ok();
    let request = oci_client::Request {
        url,
        repository,
        reference: match exact {
            true => Reference::Tag(range.replace('+', "_")),
            false => Reference::SemVer {
                range: range.to_owned(),
                filter: None,
            },
        },
        layer_media_type: Some(HELM_CHART.to_owned()),
    };
    let resolved = oci_client::resolve(&request)
        .await
        .map_err(|error| failed(&error))?;
    let content = oci_client::pull(&request, resolved.digest).await;
    let mut layer = content.map_err(|error| failed(&error))?.layer;
    let read = tokio::task::spawn_blocking(move || {
        let mut archive = Vec::new();
        layer.by_ref().take(MAX_ARCHIVE + 1).read_to_end(&mut archive)?;
        if archive.len() as u64 > MAX_ARCHIVE {
            return Err(std::io::Error::other(format!(
                "the chart has more than {MAX_ARCHIVE} bytes"
            )));
        }
        layer.finish().map_err(std::io::Error::other)?;
        Ok(archive)
    });
    read.await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))
}

/// Unpacks an archive as Helm does, within Helm's limits.
fn unpack(archive: &[u8], chart: &ChartReference) -> Result<Box<dyn FileSystem>, FetchError> {
    let files = helm_chart::unpack(archive, helm_chart::Helm::V4).map_err(|error| failed(&error))?;
    let mut tree = MemoryFs::default();
    for file in files {
        tree.insert(format!("{}/{}", chart.name, file.name), file.data.to_vec());
    }
    Ok(Box::new(tree))
}
