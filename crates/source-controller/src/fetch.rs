//! Protocols: how content of a remote gets here. One module per kind of remote; the heavy dependencies stay inside.
//!
//! In: what an object's spec asks for, with credentials already read. Out: the remote's revision, and its content as a
//! stream of files. Nothing here knows Kubernetes, conditions or the store.

pub(crate) mod helm_chart;
pub(crate) mod helm_repository;
pub(crate) mod identity;
