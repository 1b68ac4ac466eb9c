//! Serving artifacts: the last step of a source's way, and the only one that other processes see.
//!
//! [`grpc`] gives folders and blobs by digest to our own controllers, over [`tls`], to callers that [`access`] lets;
//! [`http`] gives whole archives to everything that knows Flux's way, by status.artifact.url. Both only read the store,
//! and wait for what is about to be copied into it ([`arrivals`]). [`plane`] opens the store, verifies it, and
//! starts both.

pub mod access;
pub mod arrivals;
pub mod grpc;
pub mod http;
pub mod plane;
pub mod tls;
