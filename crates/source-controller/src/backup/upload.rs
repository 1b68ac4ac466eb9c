//! From the store into the bucket: the archive first, then the record, then what it takes the place of is deleted.

use std::collections::BTreeMap;
use std::io::Seek as _;
use std::time::Duration;

use artifact::store::{self, ObjectKey};
use bucket_client::Upload;
use bucket_client::remote::Remote;
use futures::{StreamExt as _, stream};
use tokio::time::Instant;

use super::connection::PATIENCE;
use super::error::{Error, failed};
use super::names::{self, Name};
use super::restore::blocking;
use super::{Inner, Kept, Wanted};

/// Objects at a time.
const AT_ONCE: usize = 4;
/// Wait after a failure, doubled up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Bytes in a second that a connection has at least.
const SLOWEST: u64 = 256 << 10;

impl Inner {
    /// Does what is wanted, for ever.
    pub(super) async fn work(&self) {
        self.list().await;
        let mut pause = PAUSE;
        // An earlier process may have left something.
        let mut sweep_at = Some(Instant::now() + super::sweep::SOON);
        loop {
            if sweep_at.is_some_and(|at| Instant::now() >= at) {
                sweep_at = None;
                self.sweep().await;
            }
            let due = std::mem::take(&mut *self.wanted());
            if due.is_empty() {
                self.meters.pending.set(0);
                let sweep_due = tokio::time::sleep_until(sweep_at.unwrap_or_else(Instant::now));
                tokio::select! {
                    () = self.touched.notified() => {}
                    () = sweep_due, if sweep_at.is_some() => {}
                }
                continue;
            }
            self.meters
                .pending
                .set(i64::try_from(due.len()).unwrap_or(i64::MAX));
            let failed = self.carry_out(due).await;
            sweep_at.get_or_insert_with(|| Instant::now() + super::sweep::LATER);
            if failed.is_empty() {
                pause = PAUSE;
                continue;
            }
            for (key, wanted) in failed {
                // What has been wanted since then counts.
                self.wanted().entry(key).or_insert(wanted);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Does some things, and returns those that failed.
    async fn carry_out(&self, due: BTreeMap<ObjectKey, Wanted>) -> BTreeMap<ObjectKey, Wanted> {
        let outcomes = stream::iter(due).map(|(key, wanted)| async move {
            match self.carry_out_one(&key, &wanted).await {
                Ok(()) => None,
                Err(error) => Some((key, wanted, error)),
            }
        });
        let mut failed = BTreeMap::new();
        let mut outcomes = std::pin::pin!(outcomes.buffer_unordered(AT_ONCE));
        while let Some(outcome) = outcomes.next().await {
            let Some((key, wanted, error)) = outcome else {
                continue;
            };
            self.meters.failures.inc();
            // One is enough: most often it is the bucket.
            if failed.is_empty() {
                let (
                    ObjectKey {
                        kind,
                        namespace,
                        name,
                    },
                    error,
                ) = (&key, error_chain::chain(&error));
                tracing::error!(
                    logger = "backup",
                    kind,
                    namespace,
                    name,
                    error,
                    "failed to back up: trying again"
                );
            }
            failed.insert(key, wanted);
        }
        failed
    }

    async fn carry_out_one(&self, key: &ObjectKey, wanted: &Wanted) -> Result<(), Error> {
        let known = self.index().as_ref().map(|index| index.of(key));
        let known = known.unwrap_or_default();
        let keep = match wanted {
            Wanted::Keep(kept, spec) => {
                let (spec, digest) = (spec.clone(), kept.record.digest);
                let name = Name { spec, digest };
                if known == [name.clone()] {
                    return Ok(());
                }
                let remote = self.connection.get().await?;
                if !known.contains(&name) && !self.put(&remote, key, &name, kept).await? {
                    // It has been replaced, of which we hear as well.
                    return Ok(());
                }
                Some(name)
            }
            Wanted::Forget => None,
        };
        let remote = self.connection.get().await?;
        // Not those that we know of: whoever led before may have written more.
        let there = self.records(&remote, &names::folder(key)).await?.into_iter();
        let old = there
            .map(|(_, name)| name)
            .filter(|name| Some(name) != keep.as_ref());
        for old in old {
            let object = format!("{}{}", self.prefix, old.key(key));
            let deleted = remote.delete(&object, Instant::now() + PATIENCE).await;
            deleted.map_err(failed("delete", &object))?;
            if let Some(index) = &mut *self.index() {
                index.remove(key, &old);
            }
        }
        Ok(())
    }

    /// Puts archive and record; false if the store does not have them any more.
    async fn put(&self, remote: &Remote, of: &ObjectKey, name: &Name, kept: &Kept) -> Result<bool, Error> {
        let record = &kept.record;
        let archive = match self.store.open_archive(&record.digest) {
            Ok(archive) => Upload::from_file(archive.into_file(), record.size, record.digest),
            Err(store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        self.put_object(remote, &names::archive(&record.digest), archive, record.size)
            .await?;
        if kept.verbatim {
            let (store, tree) = (self.store.clone(), record.tree);
            let folder = self.fetcher.directory.clone();
            let written = blocking(move || {
                let mut file = tempfile::tempfile_in(folder)?;
                let written = store.write_tree(&tree, &mut file)?;
                file.rewind()?;
                Ok::<_, Error>((file, written))
            });
            match written.await {
                Ok((file, written)) => {
                    let upload = Upload::from_file(file, written.size, written.digest);
                    self.put_object(remote, &names::tree(&record.digest), upload, written.size)
                        .await?;
                }
                Err(Error::Store(store::Error::NotFound { .. })) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let text = serde_json::to_vec_pretty(kept).map_err(|error| Error::Disk(error.into()))?;
        let size = text.len() as u64;
        self.put_object(remote, &name.key(of), Upload::from_bytes(text), size)
            .await?;
        if let Some(index) = &mut *self.index() {
            index.insert(of.clone(), name.clone());
        }
        Ok(true)
    }

    async fn put_object(&self, remote: &Remote, key: &str, upload: Upload, size: u64) -> Result<(), Error> {
        let key = format!("{}{key}", self.prefix);
        let deadline = Instant::now() + PATIENCE + Duration::from_secs(size / SLOWEST);
        let put = remote.put(&key, upload, deadline).await;
        put.map_err(failed("put", &key))
    }
}
