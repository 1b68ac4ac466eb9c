//! The stream of what becomes current and what goes.
//!
//! Changes of the store only say where to look: what is sent is the object's state when its turn comes, and only if
//! it differs from what was sent last. So a client that is too slow, or a subscription that lost changes, costs the
//! states in between and never the last. Objects that the caller may not get are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use artifact::store::{Change, ObjectKey, Record, Store};
use artifact_proto::v1::{self, watch_response::Type};
use futures::Stream;
use tokio::sync::{broadcast, mpsc, watch as signal};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::convert;
use crate::serve::access::Admitted;

/// How long a watch goes on; then the client begins anew, with a token that is good at that time.
const LONGEST: Duration = Duration::from_secs(3600);
/// Messages on their way to one client.
const BUFFER: usize = 16;

pub(super) fn watch(
    store: Arc<Store>,
    request: v1::WatchRequest,
    mut running: signal::Receiver<()>,
    admitted: Admitted,
) -> impl Stream<Item = Result<v1::WatchResponse, Status>> + Send {
    let (client, answers) = mpsc::channel(BUFFER);
    tokio::spawn(async move {
        // The sender of the signal never sends; it is dropped.
        let ended = async { while running.changed().await.is_ok() {} };
        let mut watcher = Watcher {
            store,
            request,
            sent: BTreeMap::new(),
            client: client.clone(),
            admitted,
        };
        tokio::select! {
            result = watcher.run() => {
                if let Err(End::Failed(status)) = result {
                    client.try_send(Err(status)).ok();
                }
            }
            () = tokio::time::sleep(LONGEST) => {
                client.try_send(Err(Status::unavailable("the watch ends after an hour: begin anew"))).ok();
            }
            () = client.closed() => {}
            () = ended => {
                client.try_send(Err(Status::unavailable("the server is stopping"))).ok();
            }
        }
    });
    ReceiverStream::new(answers)
}

struct Watcher {
    store: Arc<Store>,
    request: v1::WatchRequest,
    /// Records that the client has.
    sent: BTreeMap<ObjectKey, Record>,
    client: mpsc::Sender<Result<v1::WatchResponse, Status>>,
    admitted: Admitted,
}

/// Why a watch ends.
enum End {
    /// The client is gone.
    Gone,
    /// No one knows whether the client may see more.
    Failed(Status),
}

impl Watcher {
    async fn run(&mut self) -> Result<(), End> {
        // First, so that no change between the list and the first wait is lost.
        let mut changes = self.store.subscribe();
        self.send_differences().await?;
        self.send(Type::Synced, None).await?;
        loop {
            match changes.recv().await {
                Ok(Change::Stored(record) | Change::Removed(record)) => {
                    self.send_state(ObjectKey::from_record(&record)).await?;
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.send_differences().await?,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Compares everything with what was sent.
    async fn send_differences(&mut self) -> Result<(), End> {
        let stored = self.store.current_records();
        let keys: BTreeSet<ObjectKey> = stored
            .iter()
            .map(ObjectKey::from_record)
            .chain(self.sent.keys().cloned())
            .collect();
        for key in keys {
            self.send_state(key).await?;
        }
        Ok(())
    }

    /// Sends the object's state if the client does not know it.
    async fn send_state(&mut self, key: ObjectKey) -> Result<(), End> {
        if !self.wants(&key) || !self.admitted.may_get(&key).await.map_err(End::Failed)? {
            return Ok(());
        }
        let current = self.store.current(&key.kind, &key.namespace, &key.name);
        match (current, self.sent.get(&key)) {
            (Some(record), sent) if sent != Some(&record) => {
                self.send(Type::Stored, Some(&record)).await?;
                self.sent.insert(key, record);
            }
            (None, Some(last)) => {
                self.send(Type::Removed, Some(&last.clone())).await?;
                self.sent.remove(&key);
            }
            _ => {}
        }
        Ok(())
    }

    fn wants(&self, key: &ObjectKey) -> bool {
        let v1::WatchRequest { kind, namespace } = &self.request;
        (kind.is_empty() || kind.to_lowercase() == key.kind)
            && (namespace.is_empty() || *namespace == key.namespace)
    }

    async fn send(&self, r#type: Type, record: Option<&Record>) -> Result<(), End> {
        let is_verbatim = |record| r#type == Type::Stored && self.store.is_verbatim(record);
        let response = v1::WatchResponse {
            r#type: r#type.into(),
            artifact: record.map(|record| convert::artifact(record, is_verbatim(record))),
        };
        self.client.send(Ok(response)).await.map_err(|_| End::Gone)
    }
}
