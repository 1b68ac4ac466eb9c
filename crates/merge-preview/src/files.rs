//! What of a repository becomes the artifact of a source after a merge, as the content of a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use artifact::ignore::{IGNORE_FILE, Matcher};
use delivery_diff::Content;
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};
use manifest::ObjectId;
use serde_json::Value;

use crate::merge::{Merged, Place};
use crate::reach;
use crate::snapshot::{Snapshot, below, start_of};
use crate::tree::Error;

/// A larger `.sourceignore` file is refused by source-controller, too.
const MAX_IGNORE: u64 = 1 << 20;

/// The files of a source after a merge.
pub struct Files {
    snapshot: Snapshot,
    changed: BTreeSet<String>,
    /// The source that has these files.
    source: ObjectId,
    place: String,
}

impl Files {
    /// Those that are in the folders that the source wants, and not ignored by `.sourceignore` files or its `spec.ignore`. Blocks.
    ///
    /// # Errors
    /// When a `.sourceignore` file cannot be read.
    pub fn new(
        merged: Arc<Merged>,
        (ignore, folders): (Option<&str>, &[String]),
        source: ObjectId,
        place: String,
    ) -> Result<Self, Error> {
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| flux_spec::build::path::clamp(folder))
            .collect();
        let before = wanted(&merged, &merged.before, ignore, &folders)?;
        let files = wanted(&merged, &merged.after, ignore, &folders)?;
        let is_other = |path: &&String| match (before.get(*path), files.get(*path)) {
            (Some(one), Some(other)) => !one.is_same_as(other),
            _ => true,
        };
        let changed = before
            .keys()
            .chain(files.keys())
            .filter(is_other)
            .cloned()
            .collect();
        Ok(Self {
            snapshot: Snapshot { merged, files },
            changed,
            source,
            place,
        })
    }

    /// The paths of files that a merge would add, change or delete.
    pub fn changed(&self) -> &BTreeSet<String> {
        &self.changed
    }

    /// The paths of all files below a folder.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.snapshot.below(folder)
    }

    /// Returns whether something below a folder changes, or the file of that path.
    pub(crate) fn changes_below(&self, folder: &str) -> bool {
        let mut changed = below(self.changed.range(start_of(folder)..).map(String::as_str), folder);
        changed.next().is_some() || self.changed.contains(folder)
    }
}

fn wanted(
    merged: &Merged,
    files: &BTreeMap<String, Place>,
    ignore: Option<&str>,
    folders: &[String],
) -> Result<BTreeMap<String, Place>, Error> {
    let is_wanted = |path: &str| {
        let is_in = |folder: &String| {
            let rest = path.strip_prefix(folder.as_str());
            folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        folders.is_empty() || folders.iter().any(is_in)
    };
    let mut matcher = Matcher::new(ignore);
    for (path, place) in files.iter().filter(|(path, _)| is_wanted(path)) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == IGNORE_FILE {
            let text = merged.read(place, MAX_IGNORE)?;
            // What cannot be a folder of an artifact has no files in it either.
            let _ = matcher.add_file(folder, &String::from_utf8_lossy(&text));
        }
    }
    let kept = files
        .iter()
        .filter(|(path, _)| is_wanted(path) && !matcher.is_ignored(path, false));
    Ok(kept.map(|(path, place)| (path.clone(), place.clone())).collect())
}

impl FileSystem for Files {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        self.snapshot.read(path)
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        self.snapshot.kind(path)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.snapshot.list(path)
    }
}

impl Content for Files {
    fn stands_for(&self, source: &ObjectId) -> bool {
        *source == self.source
    }

    fn reaches(&self, object: &Value) -> bool {
        reach::reaches(self, object)
    }

    fn word(&self) -> &'static str {
        "pull request"
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}
