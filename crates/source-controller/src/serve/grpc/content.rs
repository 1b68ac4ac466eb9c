//! Streams of folders, blobs and archives.
//!
//! A stream is a state that lives between messages and a step that reads the next ones from disk, on a thread that may
//! block. A step gives many small messages or one big one, so that a thousand small files do not cost a thousand
//! changes of the thread.

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    io::Read,
    sync::Arc,
};

use artifact::{
    Digest,
    store::{Content, Store},
    tree::{Directory, clean_path},
};
use artifact_proto::v1;
use bytes::Bytes;
use futures::{Stream, TryStreamExt as _, stream};
use tonic::Status;

use super::convert;

/// Bytes of a chunk, and about the bytes that one step reads.
const CHUNK: usize = 256 * 1024;
/// About what an entry of a folder takes in a message, beside its name.
const ENTRY: usize = 90;

type Step<S, T> = Result<Option<(Vec<T>, S)>, Status>;

/// Calls `step` whenever the client has taken all messages of the step before. The stream ends when it gives None.
fn stream_of<S, T>(
    state: S,
    step: impl Fn(S) -> Step<S, T> + Clone + Send + 'static,
) -> impl Stream<Item = Result<T, Status>> + Send
where
    S: Send + 'static,
    T: Send + 'static,
{
    let steps = stream::try_unfold(state, move |state| {
        let step = step.clone();
        async move { blocking(move || step(state)).await }
    });
    steps
        .map_ok(|messages| stream::iter(messages.into_iter().map(Ok)))
        .try_flatten()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|_| Err(Status::internal("the artifact service failed")))
}

/// The folder at a path, and all below it if asked for, parents before children and each once.
pub(super) async fn tree(
    store: Arc<Store>,
    root: Digest,
    path: String,
    recursive: bool,
) -> Result<impl Stream<Item = Result<v1::GetTreeResponse, Status>> + Send, Status> {
    let found = store.clone();
    // Before the stream begins, so that a missing folder is the answer of the call.
    let folder = blocking(move || find_folder(&found, root, &path)).await?;
    let walk = Walk {
        waiting: VecDeque::from([folder]),
        seen: HashSet::from([folder]),
    };
    Ok(stream_of(walk, move |walk| next_folders(&store, walk, recursive)))
}

struct Walk {
    waiting: VecDeque<Digest>,
    seen: HashSet<Digest>,
}

fn next_folders(store: &Store, mut walk: Walk, recursive: bool) -> Step<Walk, v1::GetTreeResponse> {
    let mut directories = Vec::new();
    let mut size = 0;
    while size < CHUNK {
        let Some(digest) = walk.waiting.pop_front() else {
            break;
        };
        let directory = load(store, &digest)?;
        size += directory
            .entries()
            .iter()
            .map(|entry| ENTRY + entry.name.len())
            .sum::<usize>();
        for entry in directory
            .entries()
            .iter()
            .filter(|entry| recursive && entry.kind.is_directory())
        {
            if walk.seen.insert(entry.digest) {
                walk.waiting.push_back(entry.digest);
            }
        }
        directories.push(convert::directory(&digest, &directory));
    }
    if directories.is_empty() {
        return Ok(None);
    }
    Ok(Some((vec![v1::GetTreeResponse { directories }], walk)))
}

#[allow(clippy::result_large_err, reason = "tonic's own type")]
fn find_folder(store: &Store, root: Digest, path: &str) -> Result<Digest, Status> {
    let path = clean_path(path).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let mut digest = root;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let directory = load(store, &digest)?;
        let entry = directory.entry(name).filter(|entry| entry.kind.is_directory());
        digest = entry
            .ok_or_else(|| Status::not_found(format!("the tree has no folder {path:?}")))?
            .digest;
    }
    // A digest that is not there is not found before the stream begins.
    load(store, &digest).map(|_| digest)
}

#[allow(clippy::result_large_err, reason = "tonic's own type")]
fn load(store: &Store, digest: &Digest) -> Result<Directory, Status> {
    store.directory(digest).map_err(|error| convert::status(&error))
}

/// Blobs in the order of the digests, the first from an offset on.
pub(super) fn blobs(
    store: Arc<Store>,
    digests: Vec<Digest>,
    offset: u64,
) -> impl Stream<Item = Result<v1::ReadBlobsResponse, Status>> + Send {
    let state = Blobs {
        waiting: digests.into(),
        offset,
        open: None,
        failed: None,
    };
    stream_of(state, move |blobs| next_chunks(&store, blobs))
}

struct Blobs {
    waiting: VecDeque<Digest>,
    /// Where to begin in the next blob.
    offset: u64,
    open: Option<(Digest, Chunks)>,
    /// Told after the chunks that were read before it happened.
    failed: Option<Status>,
}

fn next_chunks(store: &Store, mut blobs: Blobs) -> Step<Blobs, v1::ReadBlobsResponse> {
    if let Some(status) = blobs.failed.take() {
        return Err(status);
    }
    let mut messages = Vec::new();
    let mut size = 0;
    while size < CHUNK {
        match blobs.next(store) {
            Ok(Some(message)) => {
                size += message.data.len() + ENTRY;
                messages.push(message);
            }
            Ok(None) => break,
            Err(status) => {
                blobs.failed = Some(status);
                break;
            }
        }
    }
    let ended = messages.is_empty() && blobs.failed.is_none();
    Ok((!ended).then_some((messages, blobs)))
}

impl Blobs {
    #[allow(clippy::result_large_err, reason = "tonic's own type")]
    fn next(&mut self, store: &Store) -> Result<Option<v1::ReadBlobsResponse>, Status> {
        if self.open.is_none() {
            let Some(digest) = self.waiting.pop_front() else {
                return Ok(None);
            };
            let offset = std::mem::take(&mut self.offset);
            let content = store
                .read_blob(&digest, offset)
                .map_err(|error| convert::status(&error))?;
            self.open = Some((digest, Chunks::new(content, offset)));
        }
        let Some((digest, chunks)) = &mut self.open else {
            return Ok(None);
        };
        let (offset, data) = chunks.next()?;
        let last = chunks.ended();
        let message = v1::ReadBlobsResponse {
            digest: digest.to_string(),
            offset: convert::signed(offset),
            data,
            last,
        };
        if last {
            self.open = None;
        }
        Ok(Some(message))
    }
}

/// An archive from an offset on.
pub(super) fn archive(
    store: Arc<Store>,
    digest: Digest,
    offset: u64,
) -> impl Stream<Item = Result<v1::DownloadResponse, Status>> + Send {
    stream_of(None, move |chunks: Option<Chunks>| {
        let mut chunks = match chunks {
            Some(chunks) if chunks.ended() => return Ok(None),
            Some(chunks) => chunks,
            None => {
                let content = store
                    .read_archive(&digest, offset)
                    .map_err(|error| convert::status(&error))?;
                Chunks::new(content, offset)
            }
        };
        let (offset, data) = chunks.next()?;
        let message = v1::DownloadResponse {
            offset: convert::signed(offset),
            data,
        };
        Ok(Some((vec![message], Some(chunks))))
    })
}

/// The rest of a file, in chunks.
struct Chunks {
    file: File,
    offset: u64,
    size: u64,
}

impl Chunks {
    fn new(content: Content, offset: u64) -> Self {
        Self {
            size: content.size,
            file: content.into_file(),
            offset,
        }
    }

    fn ended(&self) -> bool {
        self.offset >= self.size
    }

    /// The next chunk and its offset; an empty one at the end.
    #[allow(clippy::result_large_err, reason = "tonic's own type")]
    fn next(&mut self) -> Result<(u64, Bytes), Status> {
        let offset = self.offset;
        let length = (self.size - offset).min(CHUNK as u64);
        let mut data = Vec::with_capacity(usize::try_from(length).unwrap_or(CHUNK));
        let read = self.file.by_ref().take(length).read_to_end(&mut data);
        if read.ok().map(|read| read as u64) != Some(length) {
            // The file is shorter than it was a moment ago, or cannot be read.
            return Err(Status::data_loss("the content is damaged"));
        }
        self.offset += length;
        Ok((offset, data.into()))
    }
}
