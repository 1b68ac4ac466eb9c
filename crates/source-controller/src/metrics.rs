//! Metrics of sources beyond those of every controller: fetches, the store, its readers, Helm indexes.
//!
//! In: what fetches, servers and the garbage collector report. What the store has is read from it at the scrape, so
//! that nothing is counted twice and nothing ticks in between.

mod fetches;
mod index_cache;
mod served;
mod storage;

use artifact::store::{Collected, Store};
use controller_kit::metrics::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

pub(crate) use self::fetches::{Fetches, FetchesOfKind, Result as FetchResult};
pub(crate) use self::index_cache::IndexCache;
pub(crate) use self::served::{Call, Served};

/// Counters of the backup. Clones share their values.
#[derive(Clone, Default)]
pub(crate) struct BackupMeters {
    pub(crate) pending: Gauge,
    pub(crate) failures: Counter,
    pub(crate) restored: Counter,
}

/// Counters of what source-controller does. Clones share their values.
#[derive(Clone, Default)]
pub(crate) struct Meters {
    pub(crate) fetches: Fetches,
    pub(crate) served: Served,
    index_cache: IndexCache,
    collected_artifacts: Counter,
    collected_bytes: Counter,
    synced: Gauge,
    pub(crate) backup: BackupMeters,
}

impl Meters {
    /// Counters that are zero; what finds charts counts in a cache of its own.
    pub(crate) fn new(index_cache: IndexCache) -> Self {
        Self {
            index_cache,
            ..Self::default()
        }
    }

    /// Registers all of them, and what the store has.
    pub(crate) fn register(&self, metrics: &Metrics, store: Store) {
        metrics.register(|registry| {
            self.fetches.register(registry);
            self.served.register(registry);
            self.index_cache.register(registry);
            registry.register(
                "windlass_store_collected_artifacts",
                "Artifacts that were removed because newer ones took their place",
                self.collected_artifacts.clone(),
            );
            registry.register(
                "windlass_store_collected_bytes",
                "Bytes that were freed by that",
                self.collected_bytes.clone(),
            );
            registry.register(
                "windlass_replica_synced",
                "Whether this process leads, or has caught up with the leader",
                self.synced.clone(),
            );
            registry.register(
                "windlass_backup_pending",
                "Objects whose artifacts are yet to be put into the bucket of the backup, or deleted there",
                self.backup.pending.clone(),
            );
            registry.register(
                "windlass_backup_failures",
                "Attempts to do that which failed",
                self.backup.failures.clone(),
            );
            registry.register(
                "windlass_backup_restored",
                "Artifacts that were restored from the backup",
                self.backup.restored.clone(),
            );
            registry.register_collector(Box::new(storage::Storage(store)));
        });
    }

    /// Notes whether this process leads, or has all that the leader has.
    pub(crate) fn synced(&self, is_synced: bool) {
        self.synced.set(i64::from(is_synced));
    }

    /// Counts what a garbage collection removed.
    pub(crate) fn collected(&self, collected: &Collected) {
        self.collected_artifacts.inc_by(collected.records as u64);
        self.collected_bytes.inc_by(collected.bytes);
    }
}

#[cfg(test)]
mod tests;
