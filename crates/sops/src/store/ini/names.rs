//! Names in INI files.

/// The section of what stands before any other.
pub(super) const DEFAULT: &str = "DEFAULT";

/// Characters that end the name of a key.
pub(super) const DELIMITERS: [char; 2] = ['=', ':'];
