//! How much room the store takes, and how much its volume has.

use std::{io, path::Path};

use super::{
    files::Kind,
    references::{Amount, References},
};

/// Disk usage of artifacts. Shared content counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The archives.
    pub archives: Amount,
    /// The files of trees.
    pub blobs: Amount,
    /// The texts of folders.
    pub directories: Amount,
}

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Bytes that it holds.
    pub size: u64,
    /// Bytes that this process may still write.
    pub available: u64,
}

impl Usage {
    pub(super) fn from_references(references: &References) -> Self {
        Self {
            archives: references.amount(Kind::Archive),
            blobs: references.amount(Kind::Blob),
            directories: references.amount(Kind::Directory),
        }
    }
}

impl Volume {
    pub(super) fn from_folder(folder: &Path) -> io::Result<Self> {
        let volume = rustix::fs::statvfs(folder)?;
        Ok(Self {
            size: volume.f_blocks.saturating_mul(volume.f_frsize),
            available: volume.f_bavail.saturating_mul(volume.f_frsize),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;
    use crate::store::state::Options;
    use crate::store::{RecordMeta, Store};

    fn on_disk(root: &Path) -> Usage {
        let amount = |folder: &str| {
            let files: Vec<u64> = fs::read_dir(root.join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .collect();
            Amount {
                files: files.len(),
                bytes: files.iter().sum(),
            }
        };
        Usage {
            archives: amount("archives"),
            blobs: amount("blobs"),
            directories: amount("directories"),
        }
    }

    fn put(store: &Store, revision: &str, files: &[(&str, &str)]) {
        let mut ingest = store.ingest();
        for (path, content) in files {
            ingest.add_file(path, false, content.as_bytes()).unwrap();
        }
        let meta = RecordMeta {
            kind: "GitRepository".to_owned(),
            namespace: "apps".to_owned(),
            name: "web".to_owned(),
            filename: format!("{revision}.tar.gz"),
            ..RecordMeta::default()
        };
        ingest.finish(meta).unwrap();
    }

    #[test]
    fn what_is_counted_is_what_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(folder.path(), Options::default()).unwrap().0;
        let store = open();
        assert_eq!(store.usage(), Usage::default());
        put(&store, "1", &[("a/b/c", "first"), ("same", "same")]);
        put(
            &store,
            "2",
            &[("a/b/c", "the second one"), ("a/b/d", "same"), ("same", "same")],
        );
        put(&store, "3", &[("same", "same")]);
        assert_eq!(store.usage(), on_disk(folder.path()));
        assert_eq!(store.usage().blobs.files, 3);

        let mut ingest = store.ingest();
        ingest.set_archive(&b"a chart"[..]).unwrap();
        ingest.hold_file("held", &b"held"[..]).unwrap();
        assert_eq!(store.usage(), on_disk(folder.path()));
        drop(ingest);
        assert_eq!(store.usage(), on_disk(folder.path()));

        let before = store.usage();
        let total = |usage: Usage| usage.archives.bytes + usage.blobs.bytes + usage.directories.bytes;
        let collected = store.collect_garbage(Timestamp::now()).unwrap();
        assert_eq!(collected.records, 1);
        assert_eq!(collected.bytes, total(before) - total(store.usage()));
        assert_eq!(store.usage(), on_disk(folder.path()));

        let known = store.usage();
        drop(store);
        let store = open();
        assert_eq!(store.usage(), known, "a restart counts the same");
        store.remove_object("GitRepository", "apps", "web").unwrap();
        assert_eq!(store.usage(), Usage::default());
    }

    #[test]
    fn the_volume_says_its_size_and_what_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
        let volume = store.volume().unwrap();
        assert!(volume.size > 0 && volume.available <= volume.size, "{volume:?}");
    }
}
