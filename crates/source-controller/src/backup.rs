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

use api::source::BucketSpec;
use artifact::store::{ObjectKey, Record, Store};
use kube::Client;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::connection::Connection;
use self::names::{Index, Spec};
use crate::kind::Kind;
use crate::metrics::BackupMeters;
use crate::reconcile::fetch::Fetcher;

/// A backup in a bucket. Clones share it.
#[derive(Clone)]
pub(crate) struct Backup(Arc<Inner>);

struct Inner {
    store: Store,
    fetcher: Fetcher,
    connection: Connection,
    /// Begins the names of all objects in the bucket: empty, or with a slash at its end.
    prefix: String,
    index: tokio::sync::Mutex<Listing>,
    /// The newest of what is to be done about each object.
    wanted: Mutex<BTreeMap<ObjectKey, Wanted>>,
    touched: Notify,
    meters: BackupMeters,
}

/// Known facts about the bucket.
#[derive(Default)]
enum Listing {
    /// It has not been listed yet.
    #[default]
    Unknown,
    /// It could not be; it is not tried again before that.
    Failed(tokio::time::Instant),
    Known(Index),
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
            index: tokio::sync::Mutex::default(),
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
        self.0.wanted().insert(key, wanted);
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
}
