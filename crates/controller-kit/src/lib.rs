//! What every controller needs, and only that: a closed list.
//!
//! | module | what it is |
//! |---|---|
//! | [`flags`], [`duration`] | the shared flags, under Flux's names |
//! | [`client`] | the connection to the Kubernetes API |
//! | [`metrics`] | what is measured |
//! | [`runtime`], [`ObjectKey`] | from watches to keys |
//! | [`queue`], [`jitter`] | which object is worked on next, and when |
//! | [`conditions`], [`status`], [`finalizer`] | what is written back: pure on one side, one patch on the other |
//! | [`events`] | Kubernetes Events, in the background |
//!
//! A controller brings its kind, its settings and its reconcile; it takes from here everything around that.

pub mod client;
pub mod conditions;
pub mod duration;
pub mod events;
pub mod finalizer;
pub mod flags;
pub mod jitter;
pub mod metrics;
pub mod queue;
pub mod runtime;
pub mod status;

mod object_key;

#[cfg(test)]
mod mock_api;

pub use object_key::ObjectKey;
