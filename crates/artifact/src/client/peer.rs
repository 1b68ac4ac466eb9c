//! The artifact service of another store, for a process that keeps a copy of it.
//!
//! What arrives is verified like everything that a client gets: archive and tree of an artifact have the digests that its record names.
//! The record itself is believed: it comes from a server that the authority has certified.

use std::collections::HashMap;
use std::io::{self, Seek as _};

use artifact_proto::v1::{self, watch_response::Type};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;

use super::options::{ClientOptions, Retries};
use super::service::{Partial, Service, Wanted};
use super::{Error, Result};
use crate::digest::Digest;
use crate::store::{Copy, ObjectKey, Record, Store};
use crate::tree::{Directory, EntryKind};

/// The other store.
#[derive(Debug)]
pub struct Peer {
    service: Service,
    options: ClientOptions,
}

/// Changes of the other store: all artifacts first, then as they happen.
#[derive(Debug)]
pub struct Changes(tonic::Streaming<v1::WatchResponse>);

/// A change of the other store.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerChange {
    /// This is the current artifact of its object.
    Stored(Offer),
    /// The object has no artifact any more.
    Removed(ObjectKey),
    /// Everything that was there at the beginning has been said.
    Synced,
}

/// An artifact that the other store has.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Its record.
    pub record: Record,
    /// Whether its archive was taken as it is, as [`Store::is_verbatim`] says.
    pub verbatim: bool,
}

impl Peer {
    /// The store behind the endpoint of the options. Connects when it is first used.
    ///
    /// # Errors
    /// When the endpoint is no URL, or there is none.
    pub fn new(options: ClientOptions) -> Result<Self> {
        let endpoint = options.grpc_endpoint.clone().unwrap_or_default();
        let service = Service::new(&endpoint, &options)?;
        Ok(Self { service, options })
    }

    /// Follows the changes.
    ///
    /// # Errors
    /// When the service cannot be reached, or refuses.
    pub async fn watch(&self) -> Result<Changes> {
        self.service.watch().await.map(Changes)
    }

    /// Copies an artifact into a store, where it is the current one of its object then. What the store has of it is not transferred.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the other store does not have it any more; [`Error::Store`] when this one fails, and also when what came is
    /// not what the record says.
    pub async fn copy(&self, offer: Offer, store: &Store) -> Result<Record> {
        let Offer { record, verbatim } = offer;
        let (digest, size, root) = (record.digest, record.size, record.tree);
        let mut copy = store.copy(record, verbatim)?;
        if copy.wants_archive() {
            let archive = self.archive(&digest, size).await?;
            copy = blocking(move || copy.set_archive(archive).map(|()| copy)).await?;
        }
        let (unpacked, is_complete) =
            blocking(move || copy.unpack().map(|is_complete| (copy, is_complete))).await?;
        copy = unpacked;
        if !is_complete {
            copy = self.add_files(copy, root).await?;
        }
        blocking(move || copy.finish()).await
    }

    /// The archive in a file without a name. It need not be the right one.
    async fn archive(&self, digest: &Digest, size: u64) -> Result<std::fs::File> {
        let folder = self.options.spool_folder.clone();
        let file = folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in);
        let file = file.map_err(Error::spool("store"))?;
        let mut partial = PartialFile {
            file: tokio::fs::File::from_std(file),
            size: 0,
        };
        let mut retries = Retries::new(&self.options);
        while partial.size < size {
            let before = partial.size;
            let received = self.service.download(digest, size, &mut partial).await;
            if partial.size > before {
                retries.progress();
            }
            match received {
                Ok(()) if partial.size < size => {
                    retries.wait_or_give_up(Error::incomplete("Download")).await?;
                }
                Err(error) if error.is_transient() => retries.wait_or_give_up(error).await?,
                received => received?,
            }
        }
        partial.file.flush().await.map_err(Error::spool("write"))?;
        let mut file = partial.file.into_std().await;
        file.rewind().map_err(Error::spool("read"))?;
        Ok(file)
    }

    /// Adds the tree's files one by one, for an archive that does not have them.
    async fn add_files(&self, mut copy: Copy, root: Digest) -> Result<Copy> {
        let all = self.service.directories_below(&root, &root).await?;
        let folders: HashMap<Digest, _> = all.into_iter().collect();
        let mut files = Vec::new();
        let mut waiting = vec![(String::new(), root)];
        while let Some((path, digest)) = waiting.pop() {
            let folder = folders.get(&digest).ok_or_else(|| Error::incomplete("GetTree"))?;
            for (path, entry) in entries(&path, folder) {
                match entry.kind {
                    EntryKind::Directory => {
                        copy.add_directory(&path)?;
                        waiting.push((path, entry.digest));
                    }
                    EntryKind::File => files.push((path, false, entry.digest, entry.size)),
                    EntryKind::Executable => files.push((path, true, entry.digest, entry.size)),
                }
            }
        }
        for (path, executable, digest, size) in files {
            let mut content = Bytes::new();
            let wanted = vec![Wanted { digest, size }];
            self.service
                .read_blobs(&root, wanted, &mut |_, blob| content = blob)
                .await?;
            copy =
                blocking(move || copy.add_file(&path, executable, content.as_ref()).map(|()| copy)).await?;
        }
        Ok(copy)
    }
}

/// The entries of a folder, with their paths from the root on.
fn entries<'a>(
    folder: &'a str,
    directory: &'a Directory,
) -> impl Iterator<Item = (String, &'a crate::tree::Entry)> {
    directory.entries().iter().map(move |entry| {
        let path = match folder {
            "" => entry.name.clone(),
            folder => format!("{folder}/{}", entry.name),
        };
        (path, entry)
    })
}

impl Changes {
    /// The next change. It ends with an error when the other process does.
    ///
    /// # Errors
    /// When the stream breaks or ends, or says what cannot be.
    pub async fn next(&mut self) -> Result<PeerChange> {
        const CALL: &str = "Watch";
        let what = || "changes of artifacts".to_owned();
        let message = self.0.message().await.map_err(Error::call(CALL, what))?;
        let message = message.ok_or_else(|| Error::incomplete(CALL))?;
        let kind = message.r#type();
        let offer = || {
            let artifact = message.artifact.as_ref();
            artifact
                .and_then(offer)
                .ok_or_else(|| Error::answer(CALL, "an artifact is not complete"))
        };
        Ok(match kind {
            Type::Stored => PeerChange::Stored(offer()?),
            Type::Removed => PeerChange::Removed(ObjectKey::from_record(&offer()?.record)),
            Type::Synced => PeerChange::Synced,
            Type::Unspecified => return Err(Error::answer(CALL, "a change is of no known type")),
        })
    }
}

fn offer(artifact: &v1::Artifact) -> Option<Offer> {
    let v1::Object {
        kind,
        namespace,
        name,
    } = artifact.object.clone()?;
    Some(Offer {
        record: Record {
            kind,
            namespace,
            name,
            revision: artifact.revision.clone(),
            digest: artifact.digest.parse().ok()?,
            size: u64::try_from(artifact.size).ok()?,
            tree: artifact.tree.parse().ok()?,
            path: artifact.path.clone(),
            last_update_time: artifact.last_update_time.parse().ok()?,
            metadata: artifact.metadata.clone().into_iter().collect(),
        },
        verbatim: artifact.verbatim,
    })
}

struct PartialFile {
    file: tokio::fs::File,
    size: u64,
}

impl Partial for PartialFile {
    fn size(&self) -> u64 {
        self.size
    }

    async fn append(&mut self, bytes: Bytes) -> io::Result<()> {
        self.file.write_all(&bytes).await?;
        self.size += bytes.len() as u64;
        Ok(())
    }
}

/// The store's work, on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> crate::store::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Error::spool("store")(io::Error::other(error)))?;
    Ok(done?)
}
