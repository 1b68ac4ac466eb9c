//! Limits for indexes.

/// The largest entry (one version of one chart), and the largest field besides the entries, in bytes of the index.
pub const MAX_ENTRY: usize = 512 << 10;

/// The largest index that is read whole because it is not written entry by entry, in bytes.
pub const MAX_WHOLE: u64 = 8 << 20;
