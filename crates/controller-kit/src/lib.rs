//! Parts that every controller needs, and only those: a closed list.
//!
//! | module | what it is |
//! |---|---|
//! | [`main`], [`Program`], [`App`], [`Context`] | the life of a process: ties the rest together, so that a `main` is short |
//! | [`flags`], [`duration`] | the shared flags, under Flux's names |
//! | [`process`], [`telemetry`], [`admin`], [`metrics`] | crypto, allocator, signals; logs; endpoints; what is measured |
//! | [`access_from`] | who may refer to a source from another namespace |
//! | [`credentials`] | what a controller needs to call another: an authority to trust, and a token |
//! | [`impersonation`], [`kubeconfig`] | working as someone's service account; on someone's cluster |
//! | [`client`], [`leader`], [`Elections`] | the connection to the Kubernetes API; who of several replicas works |
//! | [`runtime`], [`ObjectKey`] | from watches to keys |
//! | [`rules`] | objects that controllers obey, as they are and as they were |
//! | [`queue`], [`jitter`], [`pace`] | which object is worked on next, and when |
//! | [`conditions`], [`status`], [`finalizer`] | what is written back: pure on one side, one patch on the other |
//! | [`record`] | the frame around a reconcile of a kind without objects of its own |
//! | [`events`] | Kubernetes Events, in the background |
//!
//! A controller brings its kind, its settings and its reconcile; it takes from here everything around that.

pub mod access_from;
pub mod admin;
pub mod client;
pub mod conditions;
pub mod credentials;
pub mod duration;
pub mod events;
pub mod finalizer;
pub mod flags;
pub mod impersonation;
pub mod jitter;
pub mod kubeconfig;
pub mod leader;
pub mod metrics;
pub mod pace;
pub mod process;
pub mod queue;
pub mod record;
pub mod rules;
pub mod runtime;
pub mod status;
pub mod telemetry;

mod app;
mod elections;
mod object_key;
mod standby;

#[cfg(test)]
mod mock_api;

pub use crate::flags::App;
pub use app::{Context, LeadershipLost, Parse, Program, Standby, main, run, run_together};
pub use elections::Elections;
pub use object_key::{ObjectKey, check_name};
pub use standby::Listeners;

/// The controller of the documentation, so that it compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/a-controller-of-your-own.md")]
struct AControllerOfYourOwn;
