//! The spine of controllers whose objects deliver: they wait for others, take content from a source, and make objects
//! somewhere as someone.
//!
//! | module | what it is |
//! |---|---|
//! | [`base`] | what all reconciles of a kind share: caches, queue, targets, events, metrics |
//! | [`dependencies`] | `spec.dependsOn`, with `readyExpr` and circles |
//! | [`sources`] | which changes of a source matter |
//! | [`configs`] | the ConfigMaps and Secrets that specs refer to |
//! | [`fights`] | objects that someone else changes each time they are corrected |
//! | [`freezes`] | the Freezes that apply to an object |
//! | [`checks`] | `spec.healthCheckExprs` |
//! | [`inventory`] | inventories in statuses |
//! | [`memory`] | what is remembered of each object |
//! | [`patience`] | when an object is looked at again, and how soon its waiting is told |
//! | [`setup`] | what flags make of the process |
//! | [`statements`] | signed statements of deliveries |
//! | [`writer`] | the finalizer, the status and events |
//! | [`flags`] | the command line that such controllers share |
//!
//! A kind is an [`api::meta::Delivers`]; nothing here knows which.

pub mod base;
pub mod checks;
pub mod configs;
pub mod dependencies;
pub mod fights;
pub mod flags;
pub mod freezes;
pub mod inventory;
pub mod memory;
pub mod patience;
pub mod references;
pub mod setup;
pub mod sources;
pub mod statements;
pub mod writer;
