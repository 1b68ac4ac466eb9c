//! Sections of `name = value`, as Go's `gopkg.in/ini.v1` reads and writes them.

mod names;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
