//! A file that is being written: deleted when it is dropped, whole when it is put in its place.

use std::{
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// The file. In tests every step of it may find the disk full.
#[derive(Debug)]
pub(super) struct Temporary {
    file: NamedTempFile,
    #[cfg(test)]
    room: Room,
}

impl Temporary {
    pub(super) fn create(folder: &Path, #[cfg(test)] room: &Room) -> io::Result<Self> {
        #[cfg(test)]
        room.take(1)?;
        Ok(Self {
            file: NamedTempFile::new_in(folder)?,
            #[cfg(test)]
            room: room.clone(),
        })
    }

    /// Makes what was written durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        self.room.take(1)?;
        self.file.as_file().sync_all()
    }

    /// Renames the file to its place; nothing is written to it from here on.
    pub(super) fn place(self, place: &Path) -> io::Result<()> {
        #[cfg(test)]
        self.room.take(1)?;
        self.file.persist(place).map(drop).map_err(|error| error.error)
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        self.room.take(bytes.len() as u64)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// How much still fits on the disk, as a test wants it: bytes, and one for each change of a folder.
#[cfg(test)]
#[derive(Debug, Clone)]
pub(super) struct Room(std::sync::Arc<std::sync::atomic::AtomicU64>);

#[cfg(test)]
impl Default for Room {
    fn default() -> Self {
        Self(std::sync::Arc::new(u64::MAX.into()))
    }
}

#[cfg(test)]
impl Room {
    pub(super) fn set(&self, left: u64) {
        self.0.store(left, std::sync::atomic::Ordering::SeqCst);
    }

    fn take(&self, amount: u64) -> io::Result<()> {
        use std::sync::atomic::Ordering::SeqCst;
        let taken = self.0.fetch_update(SeqCst, SeqCst, |left| match left {
            u64::MAX => Some(left),
            _ => left.checked_sub(amount),
        });
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }
}
