//! Documents of YAML, as go-yaml v3 reads and writes them.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
