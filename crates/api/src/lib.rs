//! The kinds that Windlass knows, as Rust types: one module per API group, one file per kind.
//!
//! This is the contract with the cluster, and the first thing in the flow of the data: controllers read specs and
//! write statuses of these types, and [`crd::all`] makes the CRDs that are shipped from them. The wire format is
//! Flux's; see `docs/compatibility/`. Types read leniently (what is unknown or absent does no harm) and write
//! exactly (what is not set is not written). No client, no I/O, no decisions of a controller.
//!
//! A list is read whole or not at all, so one object that cannot be read would stop a controller for everybody.
//! Three things are done about it. The CRDs do not demand a spec (nor do Flux's), and an object without one reads
//! as the default: that is what `attr = "cfg_attr(all(), serde(default))"` on each kind says, in the one way that
//! kube-derive lets through to the struct that it makes. A duration that is too long for Go reads as the longest
//! one. For what is left, a status that someone wrote by hand, watch through [`kube::core::DeserializeGuard`].

pub mod crd;
pub mod delivery;
pub mod facts;
pub mod flux_operator;
pub mod helm;
pub mod image;
pub mod kustomize;
pub mod meta;
pub mod notification;
pub mod source;
pub mod source_extensions;
pub mod weave;
