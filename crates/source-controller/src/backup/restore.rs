//! From the bucket into the store.

use std::fs::File;
use std::io::Seek as _;
use std::time::Duration;

use artifact::store::{Copy, ObjectKey, Record};
use bucket_client::remote::{Listed, Remote};
use tokio::time::Instant;

use super::connection::PATIENCE;
use super::error::{Error, failed};
use super::names::{self, Index, Name, RECORDS, Spec};
use super::{Inner, Kept};

/// Wait before the bucket is listed again, doubled up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Larger than any record that the store accepts.
const MAX_RECORD_BYTES: u64 = 1 << 20;
/// Time for an archive.
const LONG: Duration = Duration::from_secs(600);
/// Bytes of the files of an archive, compressed.
const MAX_TREE_BYTES: u64 = 1 << 30;

impl Inner {
    /// Copies the artifact of an object into the store. None if the bucket has none for this spec, or cannot be listed.
    pub(super) async fn restore(&self, key: &ObjectKey, spec: &Spec) -> Result<Option<Record>, Error> {
        let listed = self.listed.subscribe();
        let until = self.listed_by;
        let wait = async move {
            let mut listed = listed;
            // The sender is this one.
            listed.wait_for(|listed| *listed).await.is_ok()
        };
        if tokio::time::timeout_at(until, wait).await.is_err() {
            // Who has no artifact by then asks again.
            return Ok(None);
        }
        let mut names = self
            .index()
            .as_ref()
            .map(|index| index.of(key))
            .unwrap_or_default();
        names.retain(|name| name.spec == *spec);
        if names.is_empty() {
            return Ok(None);
        }
        let remote = self.connection.get().await?;
        let mut newest: Option<Kept> = None;
        // There is more than one only if who wrote it was killed in between.
        for name in names {
            let kept = self.kept(&remote, key, &name).await?;
            let time = |kept: &Kept| kept.record.last_update_time;
            if newest.as_ref().is_none_or(|known| time(known) < time(&kept)) {
                newest = Some(kept);
            }
        }
        let Some(kept) = newest else { return Ok(None) };
        let record = self.copy(&remote, kept).await?;
        self.meters.restored.inc();
        tracing::info!(
            logger = "backup",
            kind = record.kind,
            namespace = record.namespace,
            name = record.name,
            revision = record.revision,
            "restored an artifact"
        );
        Ok(Some(record))
    }

    /// Lists what is in the bucket, once, since only we write. Tries until it succeeds.
    pub(super) async fn list(&self) {
        let mut pause = PAUSE;
        loop {
            match self.listed().await {
                Ok(index) => {
                    *self.index() = Some(index);
                    self.listed.send_replace(true);
                    return;
                }
                Err(error) => {
                    self.meters.failures.inc();
                    let error = error_chain::chain(&error);
                    tracing::error!(
                        logger = "backup",
                        error,
                        "failed to list the backup: trying again"
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn listed(&self) -> Result<Index, Error> {
        let remote = self.connection.get().await?;
        let all = self.records(&remote, RECORDS).await?;
        Ok(all.into_iter().collect())
    }

    /// The records whose names begin so.
    pub(super) async fn records(
        &self,
        remote: &Remote,
        below: &str,
    ) -> Result<Vec<(ObjectKey, Name)>, Error> {
        let prefix = format!("{}{below}", self.prefix);
        let all = remote.names(&prefix, Instant::now() + PATIENCE).await;
        let all = all.map_err(failed("list", &prefix))?.into_iter();
        let parse = |listed: Listed| names::parse(listed.key.strip_prefix(&self.prefix)?);
        Ok(all.filter_map(parse).collect())
    }

    async fn kept(&self, remote: &Remote, of: &ObjectKey, name: &Name) -> Result<Kept, Error> {
        let key = format!("{}{}", self.prefix, name.key(of));
        let damaged = |problem| Error::Damaged {
            key: key.clone(),
            problem,
        };
        let read = remote
            .read(&key, MAX_RECORD_BYTES, Instant::now() + PATIENCE)
            .await;
        let text = read
            .map_err(failed("get", &key))?
            .ok_or_else(|| damaged("it is not there"))?;
        let kept: Kept = serde_json::from_slice(&text).map_err(|_| damaged("it is no record"))?;
        if ObjectKey::from_record(&kept.record) != *of || kept.record.digest != name.digest {
            return Err(damaged("it is about another artifact than its name"));
        }
        Ok(kept)
    }

    async fn copy(&self, remote: &Remote, kept: Kept) -> Result<Record, Error> {
        let Kept { record, verbatim } = kept;
        let (digest, size) = (record.digest, record.size);
        let mut copy = self.store.copy(record, verbatim)?;
        if copy.wants_archive() {
            let archive = self.download(remote, &names::archive(&digest), size).await?;
            copy = blocking(move || copy.set_archive(archive).map(|()| copy)).await?;
        }
        let (unpacked, is_complete) = blocking(move || copy.unpack().map(|done| (copy, done))).await?;
        copy = unpacked;
        if !is_complete {
            let tree = self
                .download(remote, &names::tree(&digest), MAX_TREE_BYTES)
                .await?;
            copy = blocking(move || copy.unpack_from(tree).map(|_| copy)).await?;
        }
        blocking(move || Copy::finish(copy)).await
    }

    /// An object in a file without a name.
    async fn download(&self, remote: &Remote, key: &str, limit: u64) -> Result<File, Error> {
        let key = format!("{}{key}", self.prefix);
        let mut file = tokio::fs::File::from_std(tempfile::tempfile_in(&self.fetcher.directory)?);
        let there = remote
            .download(&key, limit, &mut file, Instant::now() + LONG)
            .await;
        let there = there.map_err(|source| Error::Get {
            key: key.clone(),
            source,
        })?;
        if !there {
            let problem = "it is not there";
            return Err(Error::Damaged { key, problem });
        }
        let mut file = file.into_std().await;
        file.rewind()?;
        Ok(file)
    }
}

/// The store's work, on a thread that may block.
pub(super) async fn blocking<T: Send + 'static, E: Into<Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::Abandoned)?.map_err(Into::into)
}
