//! A generated file.

use std::collections::BTreeMap;

/// A folder, and the files that a generator wants there by name.
pub(crate) struct Generated {
    /// Relative to the root of the repository.
    pub(super) folder: &'static str,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// True if other files there are left over, since the generator owns the folder.
    pub(super) is_whole: bool,
}
