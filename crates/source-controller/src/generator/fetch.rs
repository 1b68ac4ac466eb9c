//! Fetch: opens the sources. What is in the store is only looked at; what is not is downloaded, checked and unpacked.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Seek as _, Write as _};
use std::time::Duration;

use artifact::archive::{self, EntryContent, Limits};
use artifact::digest::Hasher;
use artifact::store::{self, Ingest, Store};
use artifact::{Digest, tree};
use tokio::time::Instant;
use url::Url;

use super::observe::{Content, Input};
use super::source::Source;
use crate::reconcile::fetch::Fetcher;
use transport::http as transport;

/// Largest archive that is downloaded.
const MAX_BYTES: u64 = 512 << 20;
const TIMEOUT: Duration = Duration::from_secs(300);

/// Why a source could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to parse the artifact's address '{0}'")]
    Url(String),
    #[error("failed to verify artifact: digest '{0}' is not a SHA-256")]
    Digest(String),
    #[error("failed to download artifact")]
    Download(#[from] transport::Error),
    #[error("failed to download artifact from {url}: larger than {MAX_BYTES} bytes")]
    TooLarge { url: String },
    /// Without the digest that was found: with it, someone could ask for what was there.
    #[error("failed to verify artifact: the digest of {url} does not match '{wanted}'")]
    Mismatch { url: String, wanted: Digest },
    /// Nothing is told of what answers there: the address is a tenant's.
    #[error("failed to download artifact from {url}: it is not there, or must not be fetched from there")]
    Refused { url: String },
    #[error("failed to keep the download")]
    Keep(#[from] io::Error),
    #[error("failed to extract archive of source '{alias}'")]
    Unpack {
        alias: String,
        #[source]
        source: archive::ReadError,
    },
    #[error("failed to extract archive of source '{alias}'")]
    Store {
        alias: String,
        #[source]
        source: store::Error,
    },
}

/// Archives of remote sources, by alias, as temporary files.
pub(super) type Downloads = HashMap<String, std::fs::File>;

/// Downloads what is not in the store.
pub(super) async fn download(
    inputs: &BTreeMap<String, Input>,
    fetcher: &Fetcher,
) -> Result<Downloads, Error> {
    let mut downloads = Downloads::new();
    for (alias, input) in inputs {
        if input.content == Content::Remote {
            downloads.insert(alias.clone(), get(input, fetcher).await?);
        }
    }
    Ok(downloads)
}

async fn get(input: &Input, fetcher: &Fetcher) -> Result<std::fs::File, Error> {
    let wanted: Digest = input
        .digest
        .parse()
        .map_err(|_| Error::Digest(input.digest.chars().take(200).collect()))?;
    let url = Url::parse(&input.url).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| Error::Url(input.url.chars().take(200).collect()))?;
    let shown = transport::public(&url);
    check_address(&url).await?;
    let direct = transport::Settings {
        direct: true,
        ..transport::Settings::default()
    };
    let client = fetcher.clients.get(&direct)?;
    let deadline = Instant::now() + TIMEOUT;
    // No redirect is followed, and our own server refuses the header, by whatever address it was reached.
    let request = client.get(url.clone()).header(artifact::external::HEADER, "1");
    let mut response = transport::within(deadline, &url, request.send()).await?;
    if !response.status().is_success() {
        return Err(Error::Refused { url: shown });
    }
    let mut file = tempfile::tempfile_in(&fetcher.directory)?;
    let (mut hasher, mut size) = (Hasher::new(), 0);
    while let Some(chunk) = transport::next_chunk(&mut response, deadline).await? {
        size += chunk.len() as u64;
        if size > MAX_BYTES {
            return Err(Error::TooLarge { url: shown });
        }
        hasher.update(&chunk);
        file.write_all(&chunk)?;
    }
    let found = hasher.finish();
    if found != wanted {
        return Err(Error::Mismatch { url: shown, wanted });
    }
    file.rewind()?;
    Ok(file)
}

/// Refuses addresses at which no one can have artifacts, whatever name leads there.
async fn check_address(url: &Url) -> Result<(), Error> {
    let refused = || Error::Refused {
        url: transport::public(url),
    };
    let host = url.host_str().ok_or_else(refused)?.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or_default();
    let mut found = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| refused())?;
    match found.any(|found| artifact::external::leads_nowhere(found.ip())) {
        true => Err(refused()),
        false => Ok(()),
    }
}

/// Opens all sources. Blocks. What is unpacked is held by `ingest`.
pub(super) fn open(
    inputs: &BTreeMap<String, Input>,
    mut downloads: Downloads,
    store: &Store,
    ingest: &mut Ingest,
) -> Result<HashMap<String, Source>, Error> {
    let mut sources = HashMap::new();
    for (alias, input) in inputs {
        let source = match &input.content {
            Content::Tree(root) => Source::stored(store.clone(), *root),
            Content::Archive(digest) => {
                let archive = store.open_archive(digest).map_err(|source| Error::Store {
                    alias: alias.clone(),
                    source,
                })?;
                unpack(alias, archive, ingest)?
            }
            Content::Remote => {
                let file = downloads
                    .remove(alias)
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                unpack(alias, file, ingest)?
            }
        };
        sources.insert(alias.clone(), source);
    }
    Ok(sources)
}

fn unpack(alias: &str, archive: impl io::Read, ingest: &mut Ingest) -> Result<Source, Error> {
    let mut files = tree::Builder::new();
    archive::read(archive, &Limits::default(), |entry| {
        match entry.content {
            EntryContent::Directory => files.folder(entry.path)?,
            EntryContent::File {
                executable, reader, ..
            } => {
                let (digest, size) = ingest.hold_file(entry.path, reader)?;
                files.file(entry.path, executable, digest, size)?;
            }
        }
        Ok(())
    })
    .map_err(|source| Error::Unpack {
        alias: alias.to_owned(),
        source,
    })?;
    Ok(Source::unpacked(files.finish().0))
}
