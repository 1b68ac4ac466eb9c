//! Release records in a cluster: Secrets of one namespace, one for each revision of a release (Helm's driver `secrets`).
//!
//! A history is listed by labels, as metadata only; a record is read when it is needed. Who has asked for the newest one goes
//! on to an action that needs it too, which need not ask again: it is kept until then, or until something is written. What
//! someone else writes meanwhile does no harm. Revisions are created, never replaced by each other: if two writers create
//! the same one, the second gets [`StorageError::Exists`].

mod error;
mod requests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helm_release::history::Revision;
use helm_release::record::{self, Written};
use helm_release::{Labels, Record, history::History};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;

pub use error::StorageError;
use requests::{Answer, Requests};

/// Where the records of releases are.
#[derive(Clone)]
pub struct Storage {
    requests: Requests,
    /// Release that was read last, until someone takes it.
    read: Arc<Mutex<Option<Read>>>,
}

/// The revisions of a release, and the newest record.
struct Read {
    name: String,
    history: History,
    last: Option<Record>,
}

/// Records of one release that are looked at before it counts as one that is changed all the time.
const ATTEMPTS: usize = 3;

impl Storage {
    /// Takes a namespace, read and written as `client`.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            requests: Requests::new(client, namespace),
            read: Arc::default(),
        }
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        self.requests.namespace()
    }

    /// Returns as whom it is read and written.
    pub fn client(&self) -> &Client {
        self.requests.client()
    }

    /// Lists the revisions of a release, without reading any.
    ///
    /// # Errors
    /// When the name is none, or the API server does not tell.
    pub async fn history(&self, name: &str) -> Result<History, StorageError> {
        if !is_label_value(name) {
            return Err(StorageError::Name(name.to_owned()));
        }
        let (owner, helm) = record::OWNER;
        let labels = self
            .requests
            .labels(&format!("{owner}={helm},name={name}"))
            .await?;
        Ok(labels.iter().filter_map(Revision::from_labels).collect())
    }

    /// Reads the newest revision of a release, if it has any.
    ///
    /// # Errors
    /// When the API server does not tell, or the record is none.
    pub async fn last(&self, name: &str) -> Result<Option<Record>, StorageError> {
        let read = self.read_newest(name).await?;
        let last = read.last.clone();
        *self.read() = Some(read);
        Ok(last)
    }

    /// The revisions of a release and the newest record. What [`last`](Self::last) has just read is not read again.
    ///
    /// # Errors
    /// When the API server does not tell, or the record is none.
    pub async fn newest(&self, name: &str) -> Result<(History, Option<Record>), StorageError> {
        let known = self.read().take_if(|read| read.name == name);
        let read = match known {
            Some(read) => read,
            None => self.read_newest(name).await?,
        };
        Ok((read.history, read.last))
    }

    async fn read_newest(&self, name: &str) -> Result<Read, StorageError> {
        let mut history = self.history(name).await?;
        for _ in 0..ATTEMPTS {
            let Some(last) = history.last() else {
                break;
            };
            let record = self.get(name, last.version).await?;
            if record.is_some() {
                return Ok(Read {
                    name: name.to_owned(),
                    history,
                    last: record,
                });
            }
            // It is gone by now: someone else has taken it away.
            history = self.history(name).await?;
        }
        Ok(Read {
            name: name.to_owned(),
            history,
            last: None,
        })
    }

    fn read(&self) -> MutexGuard<'_, Option<Read>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the last read, which is outdated.
    fn forget(&self) {
        self.read().take();
    }

    /// Reads a revision of a release, if there is such a one.
    ///
    /// # Errors
    /// When the API server does not tell, or the record is none.
    pub async fn get(&self, name: &str, version: i64) -> Result<Option<Record>, StorageError> {
        let key = record::name(name, version);
        let Some(Secret { data, metadata, .. }) = self.requests.get(&key).await? else {
            return Ok(None);
        };
        let data = data.and_then(|mut data| data.remove(record::KEY));
        let data = data.map(|data| data.0).unwrap_or_default();
        let labels: Labels = metadata.labels.unwrap_or_default();
        let read = blocking(move || Record::read(&data, labels)).await?;
        read.map(Some)
            .map_err(|source| StorageError::Unreadable { key, source })
    }

    /// Stores a revision for the first time.
    ///
    /// # Errors
    /// When there is one of that number already, when a Secret cannot hold it, or the API server refuses it.
    pub async fn create(&self, record: &Record) -> Result<(), StorageError> {
        let (data, at) = (encoded(record).await?, Timestamp::now());
        let labels = record.labels(Written::Created(at));
        self.forget();
        match self.requests.create(&record.name(), labels, data).await? {
            Answer::Done => Ok(()),
            Answer::Not => Err(StorageError::Exists),
        }
    }

    /// Stores a revision again.
    ///
    /// # Errors
    /// When it is not there any more, when a Secret cannot hold it, or the API server refuses it.
    pub async fn update(&self, record: &Record) -> Result<(), StorageError> {
        let (data, at) = (encoded(record).await?, Timestamp::now());
        let labels = record.labels(Written::Modified(at));
        self.forget();
        match self.requests.update(&record.name(), labels, data).await? {
            Answer::Done => Ok(()),
            Answer::Not => Err(StorageError::Gone(record.name())),
        }
    }

    /// Takes a revision away. It may be gone already.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self, name: &str, version: i64) -> Result<(), StorageError> {
        self.forget();
        self.requests.delete(&record::name(name, version)).await
    }

    /// Takes the oldest revisions away, so that one more makes no more than `max`; all stay when it is 0. The deployed one
    /// always stays.
    ///
    /// # Errors
    /// When the API server does not tell, or refuses; what can be taken away is, all the same.
    pub async fn make_room(&self, name: &str, max: usize) -> Result<(), StorageError> {
        if max == 0 {
            return Ok(());
        }
        let history = self.history(name).await?;
        self.make_room_in(name, &history, max).await
    }

    /// Does the same with a history that is known.
    ///
    /// # Errors
    /// When the API server refuses; what can be taken away is, all the same.
    pub async fn make_room_in(&self, name: &str, history: &History, max: usize) -> Result<(), StorageError> {
        let mut refused = Vec::new();
        for version in history.in_the_way(max) {
            refused.extend(self.delete(name, version).await.err());
        }
        let errors = refused.len();
        match refused.into_iter().next() {
            None => Ok(()),
            Some(first) if errors == 1 => Err(first),
            Some(first) => Err(StorageError::Several {
                errors,
                first: Box::new(first),
            }),
        }
    }
}

/// Compression takes its time.
async fn encoded(record: &Record) -> Result<Vec<u8>, StorageError> {
    let (key, release) = (record.name(), record.release.clone());
    let written = blocking(move || record::encode(&release)).await?;
    written.map_err(|source| StorageError::Unwritable { key, source })
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StorageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StorageError::Stopped)
}

/// Returns whether a text may be the value of a label, and so stand in a selector.
fn is_label_value(text: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = text.bytes();
    text.len() <= 63
        && is_end(text.bytes().next())
        && is_end(text.bytes().next_back())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_label_value_never_comes_into_a_selector() {
        for (name, expected) in [
            ("web", true),
            ("a.b-c_d", true),
            ("", false),
            ("a,owner=x", false),
            ("a b", false),
            ("-a", false),
            ("a-", false),
            ("ü", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(is_label_value(name), expected, "{name}");
        }
    }
}
