//! Server-side apply with an inventory: plan, stages, dry run, prune.
//!
//! Fourth stage of the way of the data: objects that were built go in, and what was done with each comes out.
//! One [`Engine`] per process; its methods may be called from many reconciles at once.
//!
//! ```text
//! Vec<Object> ─ prepare ─▶ Prepared ─ apply ─▶ Applied      Prepared::inventory() is recorded before apply,
//!                                                           Prepared::ignoring(rules) leaves fields to others
//!                          differences ─▶ what an apply would change, and nothing is written
//!                          preview, preview_prune ─▶ the same for people, who may have few rights
//!                          inventory::diff(old, new) ─ prune ─▶ Pruned ─ wait_terminated
//!                          ManagedIndex::subscribe() ─▶ Drift
//! one Object ─ apply_one, create_one, patch_one, delete_one ─▶ what the server says
//! ```
//!
//! What must hold:
//! - Nothing is applied unless the server's dry run accepts everything that can be asked for beforehand; all errors come
//!   back together, with file and line.
//! - An object that was applied and not touched since costs no request, however often it is applied.
//! - What is applied, by which field manager, under which labels and in which order is what Flux does, so that the two
//!   can take over from each other.
//!
//! Decisions are pure and have modules of their own (`plan`, `stage`, `policy`, `normalize`, `takeover`, `failure`,
//! `ignore`, [`changes`], [`inventory`], `managed::index`); `request` sends, `apply` and `prune` carry out. Nothing here
//! waits for health, knows a Kustomization, or writes a status.

mod apply;
mod cascade;
mod change;
pub mod changes;
mod engine;
mod failure;
mod fingerprint;
mod ignore;
pub mod inventory;
pub mod managed;
pub mod mapper;
mod normalize;
mod one;
mod page;
mod plan;
mod policy;
mod prepare;
mod preview;
mod prune;
mod redact;
mod request;
mod settings;
pub mod stage;
mod takeover;
mod terminated;
mod terminating;
mod usable;

pub use crate::cascade::{Cascade, Deleted};
pub use crate::change::{Action, Change};
pub use crate::request::MadePatch;
pub use apply::{Applied, Difference, Differs};
pub use changes::{FieldChange, FieldChanges, SetBy};
pub use engine::Engine;
pub use failure::{ApplyError, Class, Failure, ObjectError, Step, summarize};
pub use fingerprint::{Digest, Facts};
pub use ignore::{IgnoreError, IgnoreRule, IgnoreRules, Ignored};
pub use inventory::Inventory;
pub use managed::{Drift, ManagedIndex, What};
pub use one::ApplyOne;
pub use policy::Policy;
pub use prepare::Prepared;
pub use preview::{Expected, Fate, Means, Patcher, Preview};
pub use prune::{Guard, PruneOptions, Pruned, Refused, Share, SkipReason};
pub use request::Address;
pub use settings::{ApplyOptions, CommonMetadata, Owner, Settings};
