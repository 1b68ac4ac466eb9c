//! Records deliveries in the ledger, as the objects of the picture report them.
//!
//! By level, not by edge: all objects are read when the process begins, and again after the store was away.

use std::time::Duration;

use fleet::picture::{Changes, Known, Picture};
use fleet::row::Key;
use jiff::{SignedDuration, Timestamp};
use ledger::read;
use ledger::store::{Error, Ledger};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::Meters;

/// A store that does not take rows is tried again after so long.
const RETRY: Duration = Duration::from_secs(5);
/// What the store refused is tried again after so long, with everything.
const RETRY_REFUSED: Duration = Duration::from_secs(300);
/// Changes are gathered for so long: an object that moves on at once is read once.
const GATHER: Duration = Duration::from_millis(200);
/// Rows that are too old are taken out so often.
const PRUNE: Duration = Duration::from_secs(3600);

/// Records until it is dropped. `fresh` is notified of new rows.
pub async fn record(
    ledger: &Ledger,
    picture: &Picture,
    retention: SignedDuration,
    meters: &Meters,
    fresh: &Notify,
) {
    let recording = async {
        let mut numbers = picture.subscribe();
        let mut at = None;
        // When what was refused is tried again.
        let mut again: Option<Instant> = None;
        loop {
            let number = *numbers.borrow_and_update();
            match step(ledger, picture, at, meters, fresh).await {
                Ok((done, is_whole)) => {
                    at = Some(done);
                    if !is_whole {
                        again = again.or(Some(Instant::now() + RETRY_REFUSED));
                    }
                }
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
            if number == *numbers.borrow() {
                let due = async {
                    match again {
                        Some(again) => tokio::time::sleep_until(again).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = numbers.changed() => match changed {
                        Ok(()) => {}
                        Err(_) => return,
                    },
                    () = due => (at, again) = (None, None),
                }
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
            tokio::time::sleep(PRUNE).await; // an hour more does no harm
        }
    };
    tokio::join!(recording, pruning);
}

/// Records what changed since a number, or everything. Returns up to which number that is, and whether the store took all
/// of it: what it refuses of one object holds up no other.
async fn step(
    ledger: &Ledger,
    picture: &Picture,
    since: Option<u64>,
    meters: &Meters,
    fresh: &Notify,
) -> Result<(u64, bool), Error> {
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
    let mut is_whole = true;
    for key in keys {
        let kind = key.kind();
        if !kind.is_source() && !matches!(kind.kind, "Kustomization" | "HelmRelease" | "Pipeline") {
            continue;
        }
        let Known::Whole(object) = picture.object(&key) else {
            continue;
        };
        match one(ledger, &key, &object).await {
            Ok(added) => {
                meters.recorded.inc_by(u64::try_from(added).unwrap_or_default());
                if added > 0 {
                    fresh.notify_one();
                }
            }
            Err(error) if error.is_refusal() => {
                is_whole = false;
                meters.unrecorded.inc();
                let error = format!("{:#}", anyhow::Error::from(error));
                tracing::error!(object = %key, error, "the ledger refuses a delivery");
            }
            Err(error) => return Err(error),
        }
    }
    Ok((number, is_whole))
}

/// Records what one object tells. Returns how many rows were added.
async fn one(ledger: &Ledger, key: &Key, object: &Value) -> Result<usize, Error> {
    let kind = key.kind();
    let now = Timestamp::now();
    if let Some(revision) = read::revision(&key.cluster, kind, object) {
        ledger.note(&revision, now).await?;
    }
    match read::subject(&key.cluster, kind, object, now) {
        Some(subject) => ledger.record(&subject, now).await,
        None => Ok(0),
    }
}
