//! Writes into the ledger what the objects of the picture tell of their deliveries.
//!
//! By level, not by edge: all objects are read when the process begins, and again after the store was away.

use std::time::Duration;

use fleet::picture::{Changes, Known, Picture};
use fleet::row::Key;
use jiff::{SignedDuration, Timestamp};
use ledger::read;
use ledger::store::{Error, Ledger};

use crate::metrics::Meters;

/// A store that does not take rows is tried again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// Changes are gathered for so long: an object that moves on at once is read once.
const GATHER: Duration = Duration::from_millis(200);
/// Rows that are too old are taken out so often.
const PRUNE: Duration = Duration::from_secs(3600);

/// Records until it is dropped.
pub async fn record(ledger: &Ledger, picture: &Picture, retention: SignedDuration, meters: &Meters) {
    let recording = async {
        let mut numbers = picture.subscribe();
        let mut at = None;
        loop {
            let number = *numbers.borrow_and_update();
            match step(ledger, picture, at, meters).await {
                Ok(done) => at = Some(done),
                Err(error) => {
                    let error = format!("{:#}", anyhow::Error::from(error));
                    tracing::error!(
                        error,
                        "the ledger does not take deliveries; they are written when it does"
                    );
                    at = None;
                    meters.unrecorded.inc();
                    tokio::time::sleep(RETRY).await; // until the store may be there again
                    continue;
                }
            }
            if number == *numbers.borrow() && numbers.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(GATHER).await;
        }
    };
    let pruning = async {
        loop {
            match ledger.prune(Timestamp::now() - retention).await {
                Ok(0) => {}
                Ok(rows) => tracing::info!(rows, "old rows of the ledger were taken out"),
                Err(error) => {
                    let error = format!("{:#}", anyhow::Error::from(error));
                    tracing::warn!(error, "old rows of the ledger were not taken out");
                }
            }
            tokio::time::sleep(PRUNE).await; // old rows hurt nobody for an hour
        }
    };
    tokio::join!(recording, pruning);
}

/// Records what changed since a number, or everything. Returns up to which number that is.
async fn step(ledger: &Ledger, picture: &Picture, since: Option<u64>, meters: &Meters) -> Result<u64, Error> {
    let changes = since.map(|since| picture.changes_since(since));
    let (number, mut keys): (u64, Vec<Key>) = match changes {
        Some((number, Changes::Rows(rows))) => {
            let there = rows.into_iter().filter(|(_, row)| row.is_some());
            (number, there.map(|(key, _)| key).collect())
        }
        _ => {
            let (number, rows) = picture.rows();
            (number, rows.into_iter().map(|(key, _)| key).collect())
        }
    };
    // Keys are in the order in which the data moves: a source's commit is known when something comes of it.
    keys.sort();
    for key in keys {
        let kind = key.kind();
        if !kind.is_source() && !matches!(kind.kind, "Kustomization" | "HelmRelease") {
            continue;
        }
        let Known::Whole(object) = picture.object(&key) else {
            continue;
        };
        if let Some(revision) = read::revision(&key.cluster, kind, &object) {
            ledger.note(&revision).await?;
        }
        let now = Timestamp::now();
        if let Some(subject) = read::subject(&key.cluster, kind, &object, now) {
            let added = ledger.record(&subject, now).await?;
            meters.recorded.inc_by(u64::try_from(added).unwrap_or_default());
        }
    }
    Ok(number)
}
