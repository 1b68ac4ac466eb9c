//! Generated gRPC code of proto/windlass/artifact/v1: messages, client and server of the artifact service.
//!
//! The files in `src/gen` are written by `make generate` from `proto/` and committed, so that no build needs
//! protoc; a test of that command fails when they are stale. Nothing else lives here: what the messages mean is
//! written in the .proto file, the code that speaks them is in `artifact` (client) and `source-controller`
//! (server).

/// Messages, client and server of package `windlass.artifact.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    reason = "generated: the .proto file has the documentation"
)]
pub mod v1 {
    include!("gen/windlass.artifact.v1.rs");
}

/// The encoded FileDescriptorSet of all packages here, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/descriptor_set.bin");
