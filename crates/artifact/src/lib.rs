//! Artifacts: trees of files, addressed by digest on every level.
//!
//! This crate is the middle of `source -> artifact -> build`: a source controller puts files in
//! ([`store::Store::ingest`]), a consumer takes out just the files that its build reads ([`client`]). In between
//! stand the shared types, which need neither side:
//!
//! - [`digest`] and [`revision`]: what content is called, and what people call it
//! - [`tree`]: folders as canonical text, so that a folder's digest covers all that is below it
//! - [`archive`]: hostile tar.gz in, reproducible tar.gz out
//! - [`ignore`]: which files of a source do not belong into its artifact
//!
//! It knows neither Kubernetes nor any source protocol, and it does not serve: the gRPC and HTTP servers over
//! the store are the source controller's.

pub mod archive;
#[cfg(feature = "client")]
pub mod client;
pub mod digest;
pub mod external;
pub mod ignore;
pub mod revision;
#[cfg(feature = "store")]
pub mod store;
pub mod tree;

pub use digest::Digest;
pub use revision::Revision;
