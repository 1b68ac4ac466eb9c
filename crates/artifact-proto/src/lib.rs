//! Generated gRPC code of proto/windlass/artifact/v1.
