//! tar.gz: hostile ones in ([`read()`]), reproducible ones out ([`write()`]).
//!
//! Both sides stream: one entry at a time, never a whole archive in memory. Reading knows nothing of where files
//! go, it hands each entry to a function of the caller; writing asks a [`Content`] for folders and blobs.

mod read;
mod write;

pub use self::{
    read::{Entry, EntryContent, Error as ReadError, Limits, Summary, Symlinks, read},
    write::{Content, Error as WriteError, Written, write},
};

#[cfg(test)]
mod tests;
