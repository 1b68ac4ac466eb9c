//! Limits for encrypted files.

/// How deep a document may be nested: deeper than any reader here allows.
pub const MAX_NESTING: usize = 300;
