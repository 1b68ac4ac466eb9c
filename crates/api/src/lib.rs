//! The kinds that Windlass knows, as Rust types: one module per API group, one file per kind.
//!
//! This is the contract with the cluster, and the first thing in the flow of the data: controllers read specs and
//! write statuses of these types, and [`crd::all`] makes the CRDs that are shipped from them. The wire format is
//! Flux's; see `docs/compatibility/`. Types read leniently (what is unknown or absent does no harm) and write
//! exactly (what is not set is not written). No client, no I/O, no decisions of a controller.

pub mod crd;
pub mod helm;
pub mod kustomize;
pub mod meta;
pub mod notification;
pub mod source;
