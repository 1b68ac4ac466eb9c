//! Helm's actions on a cluster: install, upgrade, rollback, uninstall, test.
//!
//! A chart, values and what the caller asks for go in ([`order`]); objects in the cluster, release records and an
//! [`Outcome`] come out. What is written, in which order, under which names and with which words is Helm's, so that real
//! helm and Flux can go on from what was left here, and the other way round.
//!
//! ```text
//! order ─ render ─▶ record (pending) ─▶ hooks ─▶ resources ─▶ wait ─▶ hooks ─▶ record (deployed, failed)
//! ```
//!
//! What must hold:
//! - A record says what is about to happen before anything is applied, so that a process that dies at any moment leaves a
//!   release that can be recovered; and a record that cannot be stored means that nothing is applied.
//! - A wait holds no worker ([`Pace`]), and ends at once when it is cancelled.
//! - Who may not do something in the cluster cannot do it through an action: all requests go out as [`Cluster::client`].
//!
//! Nothing here knows a HelmRelease or the artifact service.

mod admission;
mod apply;
mod cluster;
mod crds;
pub mod dry_run;
mod error;
pub mod hooks;
mod install;
mod ledger;
mod log;
mod lookup;
pub mod order;
mod outcome;
mod patch;
mod preview;
mod render;
mod resources;
mod rollback;
pub mod storage;
mod strays;
mod test;
mod uninstall;
mod upgrade;
mod wait;

pub use admission::Admission;
pub use apply::TAKEN_OVER;
pub use cluster::{Cluster, Context, Pace, Tell, Unpaced};
pub use crds::files as crd_files;
pub use error::{Error, ErrorKind};
pub use install::install;
pub use log::Log;
pub use order::{
    Content, CrdPolicy, Install, Propagation, Rollback, ServerSide, Test, Uninstall, Upgrade, WaitStrategy,
    Waiting,
};
pub use outcome::Outcome;
pub use preview::{Former, Previewed, former, preview};
pub use rollback::rollback;
pub use storage::{Storage, StorageError};
pub use test::test;
pub use uninstall::uninstall;
pub use upgrade::upgrade;
