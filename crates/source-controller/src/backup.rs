//! A copy of the current artifacts in a bucket, for when all stores are lost (ADR 30).
//!
//! What is stored is put into the bucket afterwards: no delivery waits for it. An object without an artifact in the store gets the one in
//! the bucket before its remote is asked, if that was made for the very same spec. So a cluster that is made anew delivers what
//! ran before, though Git and registries are away.
//!
//! Only who leads writes. Names say what is in an object ([`names`]), so nothing has to be locked, and two that lead for a moment
//! write the same.

mod connection;
mod error;
mod names;
mod restore;
mod sweep;
mod upload;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::source::BucketSpec;
use artifact::store::{ObjectKey, Record, Store};
use kube::Client;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::connection::Connection;
use self::names::{Index, Spec};
use crate::kind::Kind;
use crate::metrics::BackupMeters;
use crate::reconcile::fetch::Fetcher;

/// How long objects wait after a start until it is known what the bucket has. Later they do not wait for it.
const LISTING: Duration = Duration::from_secs(10);

/// A backup in a bucket. Clones share it.
#[derive(Clone)]
pub(crate) struct Backup(Arc<Inner>);

struct Inner {
    store: Store,
    fetcher: Fetcher,
    connection: Connection,
    /// Begins the names of all objects in the bucket: empty, or with a slash at its end.
    prefix: String,
    /// The records in the bucket; None until they have been listed.
    index: Mutex<Option<Index>>,
    /// Until when objects wait for that.
    listed_by: Instant,
    listed: watch::Sender<bool>,
    /// The newest of what is to be done about each object.
    wanted: Mutex<BTreeMap<ObjectKey, Wanted>>,
    touched: Notify,
    meters: BackupMeters,
}

/// What is to be done in the bucket about an object.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Keep(Box<Kept>, Spec),
    Forget,
}

/// A record as it is in the bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    record: Record,
    /// As [`Store::is_verbatim`] says.
    verbatim: bool,
}

impl Backup {
    /// A backup in the bucket that the spec describes, with Secrets of this namespace. Connects when it is first used.
    pub(crate) fn new(
        spec: BucketSpec,
        (client, namespace): (Client, &str),
        store: Store,
        fetcher: Fetcher,
        meters: BackupMeters,
    ) -> Self {
        let prefix = spec.prefix.clone().unwrap_or_default();
        Self(Arc::new(Inner {
            connection: Connection::new(spec, client, namespace, store.clone(), fetcher.clone()),
            store,
            fetcher,
            prefix,
            index: Mutex::default(),
            listed_by: Instant::now() + LISTING,
            listed: watch::Sender::new(false),
            wanted: Mutex::default(),
            touched: Notify::new(),
            meters,
        }))
    }

    /// Says that this is the current artifact of an object, made for this spec. It is put into the bucket later, if it is not there.
    pub(crate) fn keep<K: Kind>(&self, object: &K, record: Record) {
        let Some(spec) = Spec::of(object) else { return };
        let key = ObjectKey::from_record(&record);
        let verbatim = self.0.store.is_verbatim(&record);
        let kept = Box::new(Kept { record, verbatim });
        self.want(key, Wanted::Keep(kept, spec));
    }

    /// Says that an object is gone. So is what the bucket has of it, later.
    pub(crate) fn forget(&self, key: ObjectKey) {
        self.want(key, Wanted::Forget);
    }

    fn want(&self, key: ObjectKey, wanted: Wanted) {
        let mut all = self.0.wanted();
        all.insert(key, wanted);
        self.0
            .meters
            .pending
            .set(i64::try_from(all.len()).unwrap_or(i64::MAX));
        self.0.touched.notify_one();
    }

    /// Gives an object without an artifact in the store the one of the backup; None if there is none for this spec. What fails is logged:
    /// the remote has it as well.
    pub(crate) async fn restore<K: Kind>(&self, object: &K, key: &ObjectKey) -> Option<Record> {
        let spec = Spec::of(object)?;
        match self.0.restore(key, &spec).await {
            Ok(record) => record,
            Err(error) => {
                let error = error_chain::chain(&error);
                tracing::warn!(logger = "backup", error, "failed to restore an artifact");
                None
            }
        }
    }

    /// Puts into the bucket what is to be there, until the token is cancelled.
    pub(crate) async fn run(&self, token: &CancellationToken) {
        tokio::select! {
            () = token.cancelled() => {}
            () = self.0.work() => {}
        }
    }
}

impl Inner {
    /// A panic of another holder leaves a map.
    fn wanted(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Wanted>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same of the index.
    fn index(&self) -> MutexGuard<'_, Option<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
