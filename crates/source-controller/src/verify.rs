//! Verification: who made what was fetched. One module per kind of remote that carries signatures.
//!
//! In: a remote, the digest of what was fetched from it, the spec's demand and the Secrets it names, already read. Out:
//! that the demand is met, or why not. Nothing here writes conditions or knows the store.

pub(crate) mod oci;
