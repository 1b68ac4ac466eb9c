//! A health verdict per object, and why; waiting by watching.
//!
//! Last stage before the status is written: objects that were applied go in, a verdict for each and the first cause
//! of what is wrong come out. [`verdict`] is pure (the rules of kstatus, as Flux uses them), [`why`] reads a cause out
//! of a workload's Pods and Events, and [`Hub`] waits for a set of objects with watches that all waiters share.
//! Nothing here writes to a cluster, keeps whole objects, or polls.

mod compute;
mod conditions;
mod custom;
mod fields;
pub mod hub;
mod kinds;
pub mod report;
pub mod resolve;
mod text;
pub mod verdict;
pub mod wait;
pub mod why;

pub use custom::{Check, CheckError, Checks};
pub use hub::Hub;
pub use report::{ObjectReport, Outcome, Report};
pub use resolve::{Resolve, ResolveError, Resolved};
pub use verdict::{Status, Verdict};
pub use wait::{Target, WaitRequest};
