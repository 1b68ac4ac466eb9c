//! Settings that a controller fixes once per process, and options of each call.
//!
//! Plain data with defaults; read by every step, decides nothing itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Fixes how a controller writes: under which name, which labels, how many requests at once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Field manager of every apply, for example `kustomize-controller`.
    pub field_manager: String,
    /// Prefix of the owner labels and of the annotations that steer apply, for example `kustomize.toolkit.fluxcd.io`.
    pub group: String,
    /// Prefix of the annotations that steer apply, if it is another one.
    pub policy_group: Option<String>,
    /// How many objects of one call are worked on at once (Flux's `--concurrent-ssa`).
    pub concurrency: usize,
    /// How many requests may be under way to one cluster, of all calls and identities together. They take turns: a call has at
    /// most `concurrency` of them waiting, so that one with a thousand objects does not hold up one with three.
    pub requests_in_flight: usize,
    /// Kinds (group, kind) that are applied after cluster and class definitions and before everything else.
    pub custom_stage_kinds: BTreeSet<(String, String)>,
    /// Whether the fields that kubectl wrote are taken over, and undone where the manifest does not have them: what
    /// kustomize-controller does, and helm-controller does not. A restart by `kubectl rollout` outlives a corrected drift.
    pub undoes_kubectl: bool,
    /// Managers whose fields are taken over and undone like kubectl's (Flux's `--override-manager`).
    pub disallowed_field_managers: Vec<String>,
    /// How long one request may take before it counts as a transient failure.
    pub request_timeout: Duration,
}

impl Default for Settings {
    /// Writes as Flux's kustomize-controller does.
    fn default() -> Self {
        Self {
            field_manager: "kustomize-controller".to_owned(),
            group: "kustomize.toolkit.fluxcd.io".to_owned(),
            policy_group: None,
            concurrency: 4,
            requests_in_flight: 64,
            custom_stage_kinds: BTreeSet::new(),
            undoes_kubectl: true,
            disallowed_field_managers: Vec::new(),
            request_timeout: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Names the label that holds the owner's name.
    pub fn name_label(&self) -> String {
        format!("{}/name", self.group)
    }

    /// Returns the prefix of the annotations that steer apply.
    pub fn policies(&self) -> &str {
        self.policy_group.as_deref().unwrap_or(&self.group)
    }

    /// Names the label that holds the owner's namespace.
    pub fn namespace_label(&self) -> String {
        format!("{}/namespace", self.group)
    }
}

/// The object in whose name others are applied: a Kustomization or a HelmRelease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Namespace of the owner.
    pub namespace: String,
    /// Name of the owner.
    pub name: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Labels and annotations that every object gets (`spec.commonMetadata`); they override what the object has.
#[derive(Clone, Debug, Default)]
pub struct CommonMetadata {
    /// Labels to set.
    pub labels: BTreeMap<String, String>,
    /// Annotations to set.
    pub annotations: BTreeMap<String, String>,
}

/// Options of one apply.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Deletes and recreates objects whose immutable fields changed (`spec.force`).
    pub force: bool,
    /// Keeps the API server's answer to each write in [`Change::live`](crate::Change::live). Costs memory for each
    /// object and a whole object per answer instead of its metadata, so leave it off where no health is asked for.
    pub want_live: bool,
    /// Finds out which fields of existing objects a write changed, for [`Change::fields`](crate::Change::fields). Costs
    /// one read for each object that is changed, and whole answers.
    pub want_changes: bool,
    /// These are only some of the owner's objects: what is known of the others stays.
    pub partial: bool,
    /// How long definitions (CRDs, namespaces, classes) may take to become usable, and recreated objects to go away.
    pub stage_timeout: Duration,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        // Flux waits 60 s for a stage (ssa.DefaultApplyOptions).
        Self {
            force: false,
            want_live: false,
            want_changes: false,
            partial: false,
            stage_timeout: Duration::from_secs(60),
        }
    }
}
