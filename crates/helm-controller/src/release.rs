//! The state machine of a HelmRelease: from the stored release to the desired one.
//!
//! In: the object, what is desired of its release (`desired`), and the world through a trait (`perform`). Out: the status that
//! the object shall have, events, and how the run ended. The loop (`drive`) observes Helm's storage, says in which `state` the
//! release is, which action is `next`, lets it be performed, and records its `outcome`; then again. Everything but the loop
//! and the trait is pure. Words and order are Flux's, since dashboards and the flux CLI match them; what differs is in
//! docs/compatibility/flux.md.

mod action;
mod attempt;
mod by_hand;
mod delete;
mod desired;
mod digests;
mod drift;
mod drive;
mod events;
mod history;
mod ledger;
mod next;
mod outcome;
mod perform;
mod performed;
mod policy;
mod reasons;
mod requests;
mod state;
mod stranger;
mod summary;
mod target;
#[cfg(test)]
mod testing;
mod unlock;
mod verify;

pub use action::Action;
pub use attempt::begin;
pub use by_hand::{Back, go_back};
pub use delete::uninstall;
pub use desired::Desired;
pub use drift::{Change, Drift};
pub use drive::{Ended, drive};
pub use events::Event;
pub use history::latest;
pub use perform::Perform;
pub use performed::{Failure, FailureKind, Performed};
pub use policy::timeout;
pub use target::{must_reinstall, release_name, release_namespace, storage_namespace};
