//! Context that all reconciles share.

use std::time::Duration;

use api::kustomize::Kustomization;
use api::meta::ValuesKind;
use controller_kit::ObjectKey;
use jiff::Timestamp;
use reconcile_kit::base::{Base, placement};
use reconcile_kit::freezes::Freezes;
use reconcile_kit::patience;
use reconcile_kit::statements::Statements;
use remote_base::Listed;
use verification_policy::images::Judge;

use crate::builds::Builds;
use crate::decryption::Decryption;
use crate::flags::{Policy, PrunePolicy};
use crate::good::Store;
use crate::memory::Memory;
use crate::reconcile::variables;
use crate::sources::Sources;

/// Context that all reconciles share.
pub struct Context {
    /// Context that reconciles of any kind share.
    pub base: Base<Kustomization>,
    /// The sources that the watches have seen.
    pub sources: Sources,
    /// Memory of earlier reconciles.
    pub memory: Memory,
    /// Build results, shared by all that would build the same.
    pub builds: Builds,
    /// Finds the keys for what is encrypted.
    pub decryption: Decryption,
    /// The last revisions that were healthy.
    pub good: Store,
    /// When nothing new is delivered.
    pub freezes: Freezes,
    /// Which images are delivered.
    pub images: Judge,
    /// Fetches what builds name elsewhere, if servers are listed.
    pub remote: Option<Listed>,
    /// Signs statements of deliveries, if they are wanted.
    pub statements: Option<Statements>,
    /// Fetches artifacts.
    pub artifacts: artifact::client::Client,
    /// The first failed object ends a wait for health.
    pub fail_fast: bool,
    /// Policy set by flags.
    pub policy: Policy,
    /// Objects that are not pruned without confirmation.
    pub prune: PrunePolicy,
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

    /// Enqueues the Kustomizations of our shard that are concerned by something.
    pub(super) fn enqueue(&self, concerned: impl Fn(&Kustomization) -> bool) {
        let concerned = self.base.concerned(concerned).into_iter();
        concerned.for_each(|key| self.base.queue.add(key));
    }

    /// Returns whether what an object is applied with, and where, comes from this ConfigMap or Secret.
    pub(super) fn reads(&self, object: &Kustomization, kind: ValuesKind, config: &ObjectKey) -> bool {
        let is_near = object.metadata.namespace.as_deref() == Some(&config.namespace);
        let name = &config.name;
        (is_near && (variables::refers_to(object, kind, name) || placement(object).refers_to(kind, name)))
            || (kind == ValuesKind::Secret && self.decryption.reads(object, config))
    }
}
