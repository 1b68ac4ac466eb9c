//! Types that every group shares: conditions, references, the artifact record, durations, history, and the
//! names (annotations, labels, finalizer, condition types and reasons) that clients look for.
//!
//! Everything here is data and pure functions on it. Writing conditions belongs to the controllers; only the
//! words are here.

mod access;
mod artifact;
mod condition;
mod duration;
mod filled;
mod history;
mod inventory;
mod kube_config;
mod names;
mod object;
mod patches;
mod reference;

pub mod condition_types;
pub mod reasons;

pub use access::{AccessFrom, NamespaceSelector};
pub use artifact::Artifact;
pub use condition::{Condition, FALSE, TRUE, UNKNOWN};
pub use duration::{Duration, ParseDurationError};
pub use history::{HISTORY_LIMIT, Snapshot, upsert_snapshot};
pub use inventory::{ResourceInventory, ResourceRef};
pub use kube_config::{KubeConfigReference, SecretKeyReference};
pub use names::*;
pub use object::{Delivers, HasConditions, StatusObject};
pub use patches::{CommonMetadata, CustomHealthCheck, IgnoreRule, Image, Patch, Selector};
pub use reference::{
    DependencyReference, LocalObjectReference, NamespacedObjectKindReference, ValuesKind, ValuesReference,
};

pub(crate) use filled::{filled, is_false, is_zero, plain_integer};
pub(crate) use object::{delivers, has_conditions, status_object};
