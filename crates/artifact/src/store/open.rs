//! Opening a store: verify everything that a record refers to, mend what can be fixed, drop the rest.
//!
//! This is what makes it safe to write blobs without syncing them, and what finds bit rot. Reads all content once.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Read,
    path::Path,
    sync::{Arc, Mutex},
};

use tokio::sync::broadcast;

use super::error::{Error, Result, What};
use super::files::{Files, Kind, remove_if_there};
use super::record::Stored;
use super::state::{CHANGES, Inner, Options, State};
use super::{Ingest, ObjectKey, Record, Store};
use crate::{
    archive::{self, EntryContent, Limits, Symlinks},
    digest::Digest,
};

/// Findings of [`Store::open`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct IntegrityReport {
    /// Artifacts that are whole.
    pub artifacts: usize,
    /// Paths of those whose blobs or folders had to be made again from their archive.
    pub repaired: Vec<String>,
    /// Artifacts that are gone.
    pub dropped: Vec<Dropped>,
    /// Temporary files and content without a record that were deleted.
    pub swept: usize,
}

/// An artifact that is gone: its source must be fetched again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Path of the artifact, or name of the record's file when that cannot be read.
    pub path: String,
    /// The problem, in words.
    pub reason: String,
}

pub(super) fn open(root: &Path, options: Options) -> Result<(Store, IntegrityReport)> {
    let (files, swept) = Files::prepare(root)?;
    let mut report = IntegrityReport {
        swept,
        ..IntegrityReport::default()
    };
    let records = read_records(&files, &mut report)?;
    let inner = Arc::new(Inner {
        files,
        options,
        state: Mutex::new(State::default()),
        changes: broadcast::channel(CHANGES).0,
    });
    let mut intact = Intact::default();
    for stored in records {
        match adopt(&inner, &mut intact, &stored.record)? {
            Verdict::Whole => {}
            Verdict::Repaired => report.repaired.push(stored.record.path.clone()),
            Verdict::Lost(reason) => {
                inner.files.remove_record(&stored.record.path)?;
                report.drop(stored.record.path, reason);
                continue;
            }
        }
        report.artifacts += 1;
        let mut state = inner.lock();
        state.sequence = state.sequence.max(stored.sequence);
        state
            .objects
            .entry(ObjectKey::from_record(&stored.record))
            .or_default()
            .push(stored);
    }
    let state = inner.lock();
    report.swept += inner
        .files
        .sweep(|kind, digest| state.references.holds(kind, digest))?;
    drop(state);
    Ok((Store { inner }, report))
}

enum Verdict {
    Whole,
    Repaired,
    Lost(&'static str),
}

/// Contents that have been verified; content is shared by many artifacts.
#[derive(Default)]
struct Intact {
    archives: HashMap<Digest, bool>,
    directories: HashSet<Digest>,
    blobs: HashSet<(Digest, u64)>,
}

/// Records in the order in which they were stored. Files that are none are deleted.
fn read_records(files: &Files, report: &mut IntegrityReport) -> Result<Vec<Stored>> {
    let mut records = BTreeMap::new();
    for (file, text) in files.records()? {
        let parsed = text.and_then(|text| serde_json::from_slice::<Stored>(&text).ok());
        match parsed
            .filter(|stored| file == files.record_path(&stored.record.path) && has_its_path(&stored.record))
        {
            Some(stored) => {
                // Equal numbers never happen, and would be no reason to lose a record.
                records.insert((stored.sequence, stored.record.path.clone()), stored);
            }
            None => {
                remove_if_there(&file).map_err(Error::io("delete a record"))?;
                let name = file
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                report.drop(name, "the record cannot be read");
            }
        }
    }
    Ok(records.into_values().collect())
}

fn has_its_path(record: &Record) -> bool {
    let ObjectKey {
        kind,
        namespace,
        name,
    } = ObjectKey::from_record(record);
    record
        .path
        .strip_prefix(&format!("{kind}/{namespace}/{name}/"))
        .is_some_and(|file| !file.contains('/'))
}

/// Verifies what the record refers to, and counts it if it is whole.
fn adopt(inner: &Arc<Inner>, intact: &mut Intact, record: &Record) -> Result<Verdict> {
    if !intact.archive(&inner.files, &record.digest, record.size)? {
        return Ok(Verdict::Lost("the archive is missing or damaged"));
    }
    let whole = intact.tree(&inner.files, &record.tree)?;
    // Lives until the record holds what it added.
    let mut ingest = Ingest::new(inner.clone());
    if !whole && !rebuild(inner, &mut ingest, record)? {
        return Ok(Verdict::Lost(
            "a file or folder is missing or damaged, and the archive does not have it",
        ));
    }
    let mut state = inner.lock();
    state.references.insert_archive(record.digest, record.size);
    state
        .references
        .adopt_directory(&record.tree, &mut |digest| inner.files.directory(digest))?;
    drop(state);
    Ok(if whole { Verdict::Whole } else { Verdict::Repaired })
}

/// Makes blobs and folders again from the archive, whose digest is right. False if it is no archive of this tree.
pub(super) fn rebuild(inner: &Inner, ingest: &mut Ingest, record: &Record) -> Result<bool> {
    let archive = inner.files.content(Kind::Archive, &record.digest, 0)?;
    rebuild_from(archive, ingest, record)
}

/// The same from any archive that may have the tree.
pub(super) fn rebuild_from(archive: impl Read, ingest: &mut Ingest, record: &Record) -> Result<bool> {
    // The archive is as big as it was when it was accepted.
    let limits = Limits {
        max_entries: u64::MAX,
        max_total_bytes: u64::MAX,
        max_file_bytes: u64::MAX,
        max_ratio: u64::MAX,
        symlinks: Symlinks::Skip,
    };
    let read = archive::read(archive, &limits, |entry| {
        match entry.content {
            EntryContent::Directory => ingest.add_directory(entry.path)?,
            EntryContent::File {
                executable, reader, ..
            } => ingest.add_file(entry.path, executable, reader)?,
        }
        Ok(())
    });
    if let Err(error) = read {
        tracing::warn!(
            path = record.path,
            error = &error as &dyn std::error::Error,
            "failed to rebuild an artifact"
        );
        return Ok(false);
    }
    Ok(ingest.finish_tree()? == record.tree)
}

impl Intact {
    fn archive(&mut self, files: &Files, digest: &Digest, size: u64) -> Result<bool> {
        if let Some(known) = self.archives.get(digest) {
            return Ok(*known);
        }
        let intact = files.is_intact(Kind::Archive, digest, size)?;
        self.archives.insert(*digest, intact);
        Ok(intact)
    }

    /// Only what is intact is remembered: what is not may be rebuilt before it is met again.
    fn tree(&mut self, files: &Files, root: &Digest) -> Result<bool> {
        let mut folders = vec![*root];
        let mut seen = Vec::new();
        while let Some(digest) = folders.pop() {
            if self.directories.contains(&digest) {
                continue;
            }
            let directory = match files.directory(&digest) {
                Ok(directory) => directory,
                Err(
                    Error::NotFound {
                        what: What::Directory,
                        ..
                    }
                    | Error::Corrupt { .. },
                ) => return Ok(false),
                Err(error) => return Err(error),
            };
            for entry in directory.entries() {
                if entry.kind.is_directory() {
                    folders.push(entry.digest);
                } else if !self.blob(files, &entry.digest, entry.size)? {
                    return Ok(false);
                }
            }
            seen.push(digest);
        }
        self.directories.extend(seen);
        Ok(true)
    }

    fn blob(&mut self, files: &Files, digest: &Digest, size: u64) -> Result<bool> {
        if self.blobs.contains(&(*digest, size)) {
            return Ok(true);
        }
        let intact = files.is_intact(Kind::Blob, digest, size)?;
        if intact {
            self.blobs.insert((*digest, size));
        }
        Ok(intact)
    }
}

impl IntegrityReport {
    fn drop(&mut self, path: String, reason: &str) {
        self.dropped.push(Dropped {
            path,
            reason: reason.to_owned(),
        });
    }
}
