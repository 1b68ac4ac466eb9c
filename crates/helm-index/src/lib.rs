//! The index of a Helm repository, read as a stream.
