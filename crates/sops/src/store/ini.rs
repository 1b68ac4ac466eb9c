//! Sections of `name = value`, as Go's `gopkg.in/ini.v1` reads and writes them.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// The section of what stands before any other.
const DEFAULT: &str = "DEFAULT";
/// Characters that end the name of a key.
const DELIMITERS: [char; 2] = ['=', ':'];
