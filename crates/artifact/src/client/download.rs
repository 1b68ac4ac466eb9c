//! The way without the artifact service: download the archive, verify it, keep it unpacked in a file without a name.
//!
//! Only the index is in memory. The file has no name, so nothing is left of it when the process ends in any way.

mod guard;

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use reqwest::{StatusCode, Url, header};

use self::guard::Guard;
use super::options::{ArtifactRef, ClientOptions, SourceObject};
use super::{Error, Result};
use crate::{
    archive::{self, EntryContent, Limits},
    digest::{Digest, Hasher},
    external::HEADER,
    tree::{Builder, Directory, Tree},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest silence within a download.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Broken connections within one download that are continued where they broke; what fails then is tried anew.
const RESUMES: u32 = 5;

/// Downloads archives.
#[derive(Debug)]
pub(super) struct Downloader {
    /// Where there is no artifact service: addresses are followed as in Flux.
    http: reqwest::Client,
    /// Where there is one.
    guarded: Option<(Guard, reqwest::Client)>,
    /// Hosts whose artifacts of other kinds than ExternalArtifact are taken.
    hosts: Vec<String>,
    hostname: Option<String>,
    limits: Limits,
    spool_folder: Option<PathBuf>,
}

/// An unpacked archive.
#[derive(Debug)]
pub(super) struct LocalArchive {
    root: Digest,
    directories: HashMap<Digest, Arc<Directory>>,
    /// Offset and size in `file`.
    blobs: HashMap<Digest, (u64, u64)>,
    file: Arc<File>,
}

impl Downloader {
    pub(super) fn new(options: &ClientOptions) -> Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
        };
        let guarded = match options.grpc_endpoint.as_deref().and_then(Guard::from_endpoint) {
            Some(guard) => {
                let client = guard.client(builder()).map_err(Error::SetUpHttp)?;
                Some((guard, client))
            }
            None => None,
        };
        Ok(Self {
            http: builder().build().map_err(Error::SetUpHttp)?,
            guarded,
            hosts: options.http_hosts.clone(),
            hostname: options.hostname.clone(),
            limits: options.limits.clone(),
            spool_folder: options.spool_folder.clone(),
        })
    }

    /// Returns whether an object may have an artifact that the service does not know.
    pub(super) fn may_have(&self, object: &SourceObject) -> bool {
        object.is_external() || !self.hosts.is_empty()
    }

    /// Downloads, verifies and unpacks an archive.
    pub(super) async fn download(&self, reference: &ArtifactRef, digest: Digest) -> Result<LocalArchive> {
        let spool = self.spool(reference, digest, self.limits.max_total_bytes).await?;
        let (limits, folder) = (self.limits.clone(), self.spool_folder.clone());
        let unpacking = tokio::task::spawn_blocking(move || unpack(spool.file, &limits, folder.as_deref()));
        unpacking
            .await
            .map_err(|error| Error::spool("unpack")(io::Error::other(error)))?
    }

    /// Downloads and verifies an archive into memory.
    pub(super) async fn bytes(&self, reference: &ArtifactRef, digest: Digest, limit: u64) -> Result<Bytes> {
        let spool = self.spool(reference, digest, limit).await?;
        let reading = tokio::task::spawn_blocking(move || {
            let mut content = vec![0; usize::try_from(spool.size).map_err(io::Error::other)?];
            spool.file.read_exact_at(&mut content, 0)?;
            Ok(content)
        });
        let content = reading
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(Error::spool("read"))?;
        Ok(content.into())
    }

    /// Downloads an archive to the disk and verifies it.
    async fn spool(&self, reference: &ArtifactRef, digest: Digest, limit: u64) -> Result<Spool> {
        let url = self.url(&reference.url)?;
        let object = &reference.object;
        let http = match &self.guarded {
            None => &self.http,
            Some((guard, http)) => {
                if !object.is_external() && !self.is_of_a_shard(&url) {
                    let object = object.to_string();
                    return Err(Error::Forbidden { object });
                }
                guard.check(&url, object).await?;
                http
            }
        };
        let mut spool = Spool::new(self.spool_folder.as_deref())?;
        let mut resumes = 0;
        loop {
            match self.fetch(http, &url, object, &mut spool, limit).await {
                // Nothing was lost: the rest may come over another connection.
                Err(Error::Download { .. }) if spool.size > 0 && resumes < RESUMES => resumes += 1,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let actual = spool.hasher.clone().finish();
        if actual != digest {
            return Err(Error::DigestMismatch {
                expected: digest,
                actual,
                what: url.to_string(),
            });
        }
        Ok(spool)
    }

    /// One request, from where the spool stands.
    async fn fetch(
        &self,
        http: &reqwest::Client,
        url: &Url,
        object: &SourceObject,
        spool: &mut Spool,
        limit: u64,
    ) -> Result<()> {
        let failed = |source: reqwest::Error| Error::Download {
            url: url.to_string(),
            source: source.without_url(),
        };
        let mut request = http.get(url.clone());
        let is_guarded = self.guarded.is_some();
        if is_guarded && object.is_external() {
            request = request.header(HEADER, format!("{}/{}", object.namespace, object.name));
        }
        if spool.size > 0 {
            request = request.header(header::RANGE, format!("bytes={}-", spool.size));
        }
        let mut response = request.send().await.map_err(failed)?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if continues(&response, spool.size) => {}
            // The whole again: this server knows no ranges.
            StatusCode::OK => spool.restart()?,
            // Whoever wrote the address is not told what answers there.
            status if is_guarded && !status.is_server_error() => {
                return Err(Error::NotFound {
                    what: format!("the artifact of {object} at its address"),
                });
            }
            StatusCode::NOT_FOUND => {
                return Err(Error::NotFound {
                    what: url.to_string(),
                });
            }
            status => {
                return Err(Error::Status {
                    url: url.to_string(),
                    status: status.as_u16(),
                });
            }
        }
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            let size = spool.size + chunk.len() as u64;
            if size > limit {
                return Err(Error::TooLarge {
                    what: url.to_string(),
                    size,
                    limit,
                });
            }
            spool.append(&chunk)?;
        }
        Ok(())
    }

    fn is_of_a_shard(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return false;
        };
        let authority = format!("{}:{port}", host.trim_end_matches('.'));
        self.hosts
            .iter()
            .any(|known| known.replacen(".:", ":", 1) == authority)
    }

    fn url(&self, text: &str) -> Result<Url> {
        let invalid = || Error::Url { url: text.to_owned() };
        let mut url = Url::parse(text).map_err(|_| invalid())?;
        if let Some(hostname) = &self.hostname {
            let authority = Url::parse(&format!("http://{hostname}")).map_err(|_| invalid())?;
            url.set_host(authority.host_str()).map_err(|_| invalid())?;
            url.set_port(authority.port()).map_err(|()| invalid())?;
        }
        Ok(url)
    }
}

/// Returns whether the answer goes on at this offset.
fn continues(response: &reqwest::Response, offset: u64) -> bool {
    let range = response
        .headers()
        .get(header::CONTENT_RANGE)
        .and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {offset}-")))
}

/// Spool file of a download.
struct Spool {
    file: File,
    hasher: Hasher,
    size: u64,
}

impl Spool {
    fn new(folder: Option<&Path>) -> Result<Self> {
        Ok(Self {
            file: unnamed(folder)?,
            hasher: Hasher::new(),
            size: 0,
        })
    }

    /// Chunks are small and go to the page cache, so this is called on the runtime's threads.
    fn append(&mut self, chunk: &[u8]) -> Result<()> {
        self.file.write_all(chunk).map_err(Error::spool("write"))?;
        self.hasher.update(chunk);
        self.size += chunk.len() as u64;
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .map_err(Error::spool("write"))?;
        self.hasher = Hasher::new();
        self.size = 0;
        Ok(())
    }
}

fn unnamed(folder: Option<&Path>) -> Result<File> {
    let file = folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in);
    file.map_err(Error::spool("make room for"))
}

/// Writes all files one behind the other into a new file.
fn unpack(mut archive: File, limits: &Limits, folder: Option<&Path>) -> Result<LocalArchive> {
    archive.seek(SeekFrom::Start(0)).map_err(Error::spool("read"))?;
    let mut output = BufWriter::new(unnamed(folder)?);
    let mut blobs = HashMap::new();
    let mut builder = Builder::new();
    let mut end = 0;
    archive::read(archive, limits, |entry| {
        match entry.content {
            EntryContent::Directory => builder.folder(entry.path)?,
            EntryContent::File {
                executable,
                size,
                reader,
            } => {
                let mut tee = Tee {
                    inner: reader,
                    hasher: Hasher::new(),
                };
                io::copy(&mut tee, &mut output)?;
                let digest = tee.hasher.finish();
                builder.file(entry.path, executable, digest, size)?;
                blobs.insert(digest, (end, size));
                end += size;
            }
        }
        Ok(())
    })
    .map_err(Error::Unpack)?;
    let file = output
        .into_inner()
        .map_err(|error| Error::spool("unpack")(error.into_error()))?;
    let (tree, order) = builder.finish();
    Ok(LocalArchive {
        root: tree.root(),
        directories: shared(&tree, &order),
        blobs,
        file: Arc::new(file),
    })
}

fn shared(tree: &Tree, order: &[Digest]) -> HashMap<Digest, Arc<Directory>> {
    let directory = |digest: &Digest| Some((*digest, Arc::new(tree.directory(digest)?.clone())));
    order.iter().filter_map(directory).collect()
}

impl LocalArchive {
    pub(super) fn root(&self) -> Digest {
        self.root
    }

    pub(super) fn directory(&self, digest: &Digest) -> Result<Arc<Directory>> {
        self.directories.get(digest).cloned().ok_or_else(|| Error::Gone {
            what: format!("folder {digest}"),
        })
    }

    /// Reads and verifies a file; the disk may have changed it since it was unpacked.
    pub(super) async fn read(&self, digest: &Digest, path: &str) -> Result<Bytes> {
        let (expected, what) = (*digest, format!("{path:?}"));
        let (offset, size) = self.blobs.get(digest).copied().ok_or_else(|| Error::Gone {
            what: format!("blob {digest}"),
        })?;
        let file = self.file.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let mut content = vec![0; usize::try_from(size).map_err(io::Error::other)?];
            file.read_exact_at(&mut content, offset)?;
            Ok(content)
        });
        let content = reading
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(Error::spool("read"))?;
        let actual = Digest::from_content(&content);
        if actual != expected {
            return Err(Error::DigestMismatch {
                expected,
                actual,
                what,
            });
        }
        Ok(content.into())
    }
}

/// Computes the digest of what is read.
struct Tee<'a> {
    inner: &'a mut dyn Read,
    hasher: Hasher,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
