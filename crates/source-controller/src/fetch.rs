//! Fetches for Helm's kinds: repositories with an index, and charts in them or in registries.
//!
//! In: what an object's spec asks for, with credentials already read. Out: the remote's revision, and its content as a
//! stream of files. The protocols are in crates of their own: `transport`, `git-client`, `oci-client`, `bucket-client`.

pub(crate) mod helm_chart;
pub(crate) mod helm_repository;
