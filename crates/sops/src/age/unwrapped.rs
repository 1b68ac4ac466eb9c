//! Result of unwrapping a file key.

use zeroize::Zeroizing;

/// Result of unwrapping a recipient's part of a file.
pub(super) enum Unwrapped {
    FileKey(Zeroizing<Vec<u8>>),
    /// It is for someone else.
    Other,
}
