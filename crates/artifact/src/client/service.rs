//! Calls of the artifact service, with every answer verified and broken streams resumed.

use std::{
    collections::{HashSet, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use artifact_proto::v1::{self, artifact_service_client::ArtifactServiceClient};
use bytes::Bytes;
use tonic::{metadata::AsciiMetadataValue, transport::Channel};

use super::options::{ClientOptions, Retries, SourceObject};
use super::{Error, Result, connect};
use crate::{
    digest::Digest,
    tree::{Directory, Entry, EntryKind},
};

/// Digests per request: 70 KiB, far below what a server accepts as one message.
const BLOBS_PER_REQUEST: usize = 1000;
/// For calls with one small answer. Streams have none: they live as long as they move, which HTTP/2 pings watch.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// A folder of 100,000 files in one message.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The artifact service behind an endpoint.
#[derive(Debug)]
pub(super) struct Service {
    client: ArtifactServiceClient<Channel>,
    options: ClientOptions,
}

/// What has been received of something so far.
pub(super) trait Partial {
    /// Its bytes.
    fn size(&self) -> u64;
    /// Adds the next ones.
    fn append(&mut self, bytes: Bytes) -> impl Future<Output = io::Result<()>> + Send;
}

impl Partial for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    async fn append(&mut self, bytes: Bytes) -> io::Result<()> {
        self.extend_from_slice(&bytes);
        Ok(())
    }
}

/// A blob to read. The size comes from a verified folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) digest: Digest,
    pub(super) size: u64,
}

impl Service {
    pub(super) fn new(endpoint: &str, options: &ClientOptions) -> Result<Self> {
        let channel = connect::channel(
            endpoint,
            options.server_name.as_deref(),
            &options.authority,
            KEEP_ALIVE,
        );
        let channel = channel.map_err(|source| Error::Endpoint {
            endpoint: endpoint.to_owned(),
            source,
        })?;
        let client = ArtifactServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
        Ok(Self {
            client,
            options: options.clone(),
        })
    }

    /// A call's message, with the token that we have at this moment.
    async fn request<T>(&self, message: T) -> Result<tonic::Request<T>> {
        let mut request = tonic::Request::new(message);
        if let Some(token) = self.options.token.get().await.map_err(Error::Token)? {
            let header = AsciiMetadataValue::try_from(format!("Bearer {token}"));
            let mut header = header.map_err(|error| Error::Token(std::io::Error::other(error)))?;
            header.set_sensitive(true);
            request.metadata_mut().insert("authorization", header);
        }
        Ok(request)
    }

    /// The root of the tree of an archive, if the object has it.
    pub(super) async fn stat(&self, object: &SourceObject, archive: &Digest) -> Result<Digest> {
        const CALL: &str = "Stat";
        let of = v1::stat_request::Of::Object(v1::Object {
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        });
        let asked = v1::StatRequest {
            of: Some(of),
            held: archive.to_string(),
        };
        let mut request = self.request(asked).await?;
        request.set_timeout(CALL_TIMEOUT);
        let answer = self.client.clone().stat(request).await;
        let answer = answer.map_err(Error::call(CALL, || {
            format!("the artifact {archive} among those of {object}")
        }))?;
        let artifact = answer.into_inner().artifact.unwrap_or_default();
        if artifact.digest != archive.to_string() {
            return Err(Error::answer(CALL, "it is about another artifact"));
        }
        artifact
            .tree
            .parse()
            .map_err(|_| Error::answer(CALL, "it names no tree"))
    }

    /// An archive as a whole.
    pub(super) async fn archive(&self, archive: &Digest, limit: u64) -> Result<Bytes> {
        let what = || format!("artifact {archive}");
        let mut content = Vec::new();
        self.download(archive, limit, &mut content).await?;
        let actual = Digest::from_content(&content);
        if actual != *archive {
            return Err(Error::DigestMismatch {
                expected: *archive,
                actual,
                what: what(),
            });
        }
        Ok(content.into())
    }

    /// Appends the rest of an archive to what is there of it. Whether it is the right one is for the caller to see.
    pub(super) async fn download(
        &self,
        archive: &Digest,
        limit: u64,
        content: &mut impl Partial,
    ) -> Result<()> {
        const CALL: &str = "Download";
        let what = || format!("artifact {archive}");
        let offset = i64::try_from(content.size()).unwrap_or(i64::MAX);
        let request = v1::DownloadRequest {
            digest: archive.to_string(),
            offset,
        };
        let answer = self.client.clone().download(self.request(request).await?).await;
        let mut stream = answer.map_err(Error::call(CALL, what))?.into_inner();
        while let Some(chunk) = stream.message().await.map_err(Error::call(CALL, what))? {
            if u64::try_from(chunk.offset) != Ok(content.size()) {
                return Err(Error::answer(CALL, "a chunk is out of order"));
            }
            let size = content.size() + chunk.data.len() as u64;
            if size > limit {
                let what = what();
                return Err(Error::TooLarge { what, size, limit });
            }
            content.append(chunk.data).await.map_err(Error::spool("write"))?;
        }
        Ok(())
    }

    /// The stream of changes, all artifacts first.
    pub(super) async fn watch(&self) -> Result<tonic::Streaming<v1::WatchResponse>> {
        let request = self.request(v1::WatchRequest::default()).await?;
        let answer = self.client.clone().watch(request).await;
        let what = || "changes of artifacts".to_owned();
        answer
            .map(tonic::Response::into_inner)
            .map_err(Error::call("Watch", what))
    }

    /// One folder of the tree with this root.
    pub(super) async fn directory(&self, root: &Digest, digest: &Digest) -> Result<Arc<Directory>> {
        let mut retries = Retries::new(&self.options);
        loop {
            match self.get_tree(root, digest, false).await {
                Ok(mut directories) if !directories.is_empty() => return Ok(directories.swap_remove(0).1),
                Ok(_) => retries.wait_or_give_up(Error::incomplete("GetTree")).await?,
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// The folder and all below it, parents before children.
    pub(super) async fn directories_below(
        &self,
        root: &Digest,
        digest: &Digest,
    ) -> Result<Vec<(Digest, Arc<Directory>)>> {
        let mut retries = Retries::new(&self.options);
        loop {
            match self.get_tree(root, digest, true).await {
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                result => return result,
            }
        }
    }

    async fn get_tree(
        &self,
        root: &Digest,
        folder: &Digest,
        recursive: bool,
    ) -> Result<Vec<(Digest, Arc<Directory>)>> {
        const CALL: &str = "GetTree";
        let request = v1::GetTreeRequest {
            tree: folder.to_string(),
            path: String::new(),
            recursive,
            root: root.to_string(),
        };
        let request = self.request(request).await?;
        let what = || format!("folder {folder}");
        let answer = self
            .client
            .clone()
            .get_tree(request)
            .await
            .map_err(Error::call(CALL, what))?;
        let mut stream = answer.into_inner();
        let mut received = Vec::new();
        // Only what a verified folder names is accepted, so a server cannot send without end.
        let mut expected = HashSet::from([*folder]);
        let mut seen = HashSet::new();
        while let Some(answer) = stream.message().await.map_err(Error::call(CALL, what))? {
            for directory in answer.directories {
                let (digest, directory) = verified(directory)?;
                if !expected.remove(&digest) {
                    return Err(Error::answer(
                        CALL,
                        format!("{digest} was not asked for, or came twice"),
                    ));
                }
                seen.insert(digest);
                let below = directory
                    .entries()
                    .iter()
                    .filter(|entry| recursive && entry.kind.is_directory());
                expected.extend(
                    below
                        .map(|entry| entry.digest)
                        .filter(|digest| !seen.contains(digest)),
                );
                received.push((digest, Arc::new(directory)));
            }
        }
        if expected.is_empty() {
            Ok(received)
        } else {
            Err(Error::incomplete(CALL))
        }
    }

    /// Reads blobs of the tree with this root and hands on each one when it is complete and verified.
    pub(super) async fn read_blobs(
        &self,
        root: &Digest,
        wanted: Vec<Wanted>,
        take: &mut (dyn FnMut(Digest, Bytes) + Send),
    ) -> Result<()> {
        let mut reading = Reading {
            wanted: wanted.into(),
            current: Vec::new(),
            received: 0,
        };
        let mut retries = Retries::new(&self.options);
        while !reading.wanted.is_empty() {
            let received = reading.received;
            let result = self.read_some(root, &mut reading, take).await;
            if reading.received > received {
                retries.progress();
            }
            match result {
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                result => result?,
            }
        }
        Ok(())
    }

    /// One request, from where the reading stands.
    async fn read_some(
        &self,
        root: &Digest,
        reading: &mut Reading,
        take: &mut (dyn FnMut(Digest, Bytes) + Send),
    ) -> Result<()> {
        const CALL: &str = "ReadBlobs";
        let digests: Vec<String> = reading
            .wanted
            .iter()
            .take(BLOBS_PER_REQUEST)
            .map(|wanted| wanted.digest.to_string())
            .collect();
        let mut left = digests.len();
        let first = digests.first().cloned().unwrap_or_default();
        let offset = i64::try_from(reading.current.len()).unwrap_or(i64::MAX);
        let request = v1::ReadBlobsRequest {
            digests,
            offset,
            root: root.to_string(),
        };
        let request = self.request(request).await?;
        let answer = self.client.clone().read_blobs(request).await;
        let mut stream = answer
            .map_err(Error::call(CALL, || format!("blob {first}")))?
            .into_inner();
        while left > 0 {
            let what = || {
                reading
                    .wanted
                    .front()
                    .map_or_else(String::new, |wanted| format!("blob {}", wanted.digest))
            };
            let message = stream.message().await.map_err(Error::call(CALL, what))?;
            let message = message.ok_or_else(|| Error::incomplete(CALL))?;
            if let Some((digest, blob)) = reading.append(message)? {
                take(digest, blob);
                left -= 1;
            }
        }
        Ok(())
    }
}

/// How far a sequence of blobs has been read.
struct Reading {
    wanted: VecDeque<Wanted>,
    /// Received part of the first of them.
    current: Vec<u8>,
    /// Bytes and blobs that have arrived, to see progress.
    received: u64,
}

impl Reading {
    /// Takes a chunk, and returns the blob that it completes.
    fn append(&mut self, chunk: v1::ReadBlobsResponse) -> Result<Option<(Digest, Bytes)>> {
        const CALL: &str = "ReadBlobs";
        let Some(Wanted { digest, size }) = self.wanted.front().copied() else {
            return Err(Error::answer(CALL, "more blobs came than were asked for"));
        };
        if chunk.digest != digest.to_string() || u64::try_from(chunk.offset) != Ok(self.current.len() as u64)
        {
            return Err(Error::answer(
                CALL,
                format!("a chunk of {digest} is out of order"),
            ));
        }
        if (self.current.len() + chunk.data.len()) as u64 > size {
            // Not worth reading to its end: no content of this digest has another size.
            let actual = Digest::from_content(&[&self.current, chunk.data.as_ref()].concat());
            return Err(Error::DigestMismatch {
                expected: digest,
                actual,
                what: "a blob that is too long".to_owned(),
            });
        }
        if self.current.is_empty() {
            self.current
                .reserve_exact(usize::try_from(size).unwrap_or_default());
        }
        self.current.extend_from_slice(&chunk.data);
        self.received += chunk.data.len() as u64;
        if !chunk.last {
            return Ok(None);
        }
        let blob = std::mem::take(&mut self.current);
        self.wanted.pop_front();
        self.received += 1;
        let actual = Digest::from_content(&blob);
        if actual != digest {
            return Err(Error::DigestMismatch {
                expected: digest,
                actual,
                what: "a blob".to_owned(),
            });
        }
        Ok(Some((digest, blob.into())))
    }
}

/// The folder in a message, if it has the digest that the message says.
fn verified(directory: v1::Directory) -> Result<(Digest, Directory)> {
    let expected: Digest = directory
        .digest
        .parse()
        .map_err(|_| Error::answer("GetTree", "a folder has no digest"))?;
    let entries: Result<Vec<Entry>> = directory.entries.into_iter().map(entry).collect();
    let directory = Directory::new(entries?).map_err(Error::Directory)?;
    let actual = directory.digest();
    if actual != expected {
        return Err(Error::DigestMismatch {
            expected,
            actual,
            what: "a folder".to_owned(),
        });
    }
    Ok((expected, directory))
}

fn entry(entry: v1::Entry) -> Result<Entry> {
    let invalid = |what: &str| Error::answer("GetTree", format!("an entry has no valid {what}"));
    let kind = match entry.kind() {
        v1::entry::Kind::File => EntryKind::File,
        v1::entry::Kind::Executable => EntryKind::Executable,
        v1::entry::Kind::Directory => EntryKind::Directory,
        v1::entry::Kind::Unspecified => return Err(invalid("kind")),
    };
    let digest = entry.digest.parse().map_err(|_| invalid("digest"))?;
    let size = u64::try_from(entry.size).map_err(|_| invalid("size"))?;
    Ok(Entry {
        kind,
        name: entry.name,
        digest,
        size,
    })
}
