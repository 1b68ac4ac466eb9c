//! Generated gRPC code of proto/windlass/console/v1: messages, client and server of the console's streams.
//!
//! The files in `src/gen` are written by `make generate` from `proto/`. What the messages mean is written in the .proto file; the
//! server is `console-grpc`.

/// Messages, client and server of package `windlass.console.v1`.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    reason = "generated: the .proto file has the documentation"
)]
pub mod v1 {
    include!("gen/windlass.console.v1.rs");
}

/// The encoded FileDescriptorSet of all packages here, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/descriptor_set.bin");
