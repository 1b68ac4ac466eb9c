//! Context that all reconciles share.

use std::sync::Arc;
use std::time::Duration;

use api::helm::HelmRelease;
use api::meta::ValuesKind;
use controller_kit::ObjectKey;
use controller_kit::queue::Backoff;
use jiff::Timestamp;
use reconcile_kit::base::{Base, placement};
use reconcile_kit::freezes::Freezes;
use reconcile_kit::patience;
use tokio_util::sync::CancellationToken;
use verification_policy::images::Judge;

use crate::charts::Charts;
use crate::flags::Policy;
use crate::memory::{self, Memory};
use crate::sources::Sources;
use crate::values;

/// Context that all reconciles share.
pub struct Context {
    /// Context that reconciles of any kind share.
    pub base: Base<HelmRelease>,
    /// The sources of charts that the watches have seen.
    pub sources: Sources,
    /// Memory of earlier reconciles.
    pub memory: Memory,
    /// Charts that were loaded.
    pub charts: Charts,
    /// When nothing new is delivered.
    pub freezes: Freezes,
    /// Which images are delivered.
    pub images: Arc<Judge>,
    /// Policy set by flags.
    pub policy: Policy,
    /// ConfigMaps and Secrets that specs refer to are watched, all of them.
    pub watches_configs: bool,
    /// After how long what failed is tried again.
    pub backoff: Backoff,
    /// Set off when the process is to end.
    pub shutdown: CancellationToken,
}

impl Context {
    /// Returns how long a wait of an object stays unreported; None when it is time to report it.
    pub fn patience(&self, key: &ObjectKey) -> Option<Duration> {
        self.memory.with(key, |entry| {
            patience::left(&mut entry.blocked_since, Timestamp::now())
        })
    }

    /// Drops everything about an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.base.forget(key);
    }

    /// Enqueues the HelmReleases of our shard that are concerned by something.
    pub fn enqueue(&self, concerned: impl Fn(&HelmRelease) -> bool) {
        let concerned = self.base.concerned(concerned).into_iter();
        concerned.for_each(|key| self.wake(key));
    }

    /// Has an object looked at. A run of it that waits is ended, if the gate for that is open.
    pub fn wake(&self, key: ObjectKey) {
        if self.policy.cancel_on_change {
            memory::cancel(&self.memory, &key);
        }
        self.base.queue.add(key);
    }

    /// Returns whether what an object is released with, and where, comes from this ConfigMap or Secret.
    pub fn reads(&self, object: &HelmRelease, kind: ValuesKind, config: &ObjectKey) -> bool {
        let name = &config.name;
        object.metadata.namespace.as_deref() == Some(&config.namespace)
            && (values::refers_to(object, kind, name) || placement(object).refers_to(kind, name))
    }
}
