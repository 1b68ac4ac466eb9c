//! Artifacts that are not current any more are removed after their time.

use std::time::Duration;

use artifact::store::{Change, Store};
use jiff::Timestamp;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::metrics::Meters;

/// Garbage is collected a little after it has become that.
const COLLECTION_DELAY: Duration = Duration::from_secs(1);

/// Removes artifacts that are not current any more. Sleeps as long as nothing new is stored.
pub(crate) async fn collect(
    store: Store,
    retention_ttl: Duration,
    meters: &Meters,
    token: CancellationToken,
) {
    let mut changes = store.subscribe();
    let mut may_have_garbage = true;
    loop {
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(retention_ttl + COLLECTION_DELAY), if may_have_garbage => {
                collect_now(&store, meters).await;
                may_have_garbage = store.records().len() > store.current_records().len();
            }
            change = changes.recv(), if !may_have_garbage => match change {
                Ok(Change::Stored(_)) | Err(RecvError::Lagged(_)) => may_have_garbage = true,
                Ok(Change::Removed(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

async fn collect_now(store: &Store, meters: &Meters) {
    let store = store.clone();
    let collected = tokio::task::spawn_blocking(move || store.collect_garbage(Timestamp::now())).await;
    match collected {
        Ok(Ok(collected)) if collected.records > 0 => {
            meters.collected(&collected);
            let (artifacts, bytes) = (collected.records, collected.bytes);
            tracing::info!(
                logger = "storage",
                artifacts,
                bytes,
                "collected artifacts that were replaced"
            );
        }
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(error)) => {
            tracing::error!(
                logger = "storage",
                error = error_chain::chain(&error),
                "failed to collect garbage"
            );
        }
    }
}
