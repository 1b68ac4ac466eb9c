//! What a build depended on, and whether another tree would give the same build.
//!
//! A build tells which paths it read, listed or looked for in vain. Their digests make its closure: a commit that
//! touches nothing in it needs no build and no apply (ADR 1).

use std::collections::{BTreeMap, BTreeSet};

use artifact::Digest;
use artifact::client::{Error, RemoteTree};
use artifact::tree::EntryKind;

/// The paths that a build depended on, and what was there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Closure {
    found: BTreeMap<String, Found>,
}

#[derive(Debug, Clone, PartialEq)]
enum Found {
    Nothing,
    File(Digest),
    /// Digest of the names and kinds in a folder; what is below it is in the closure by itself where it was read.
    Listing(Digest),
}

impl Closure {
    /// Looks up what a build read.
    pub async fn of(tree: &RemoteTree, paths: &BTreeSet<String>) -> Result<Self, Error> {
        let mut found = BTreeMap::new();
        for path in paths {
            found.insert(path.clone(), look_up(tree, path).await?);
        }
        Ok(Self { found })
    }

    /// Says whether a build from this tree would read the same.
    pub async fn holds_in(&self, tree: &RemoteTree) -> Result<bool, Error> {
        for (path, found) in &self.found {
            if look_up(tree, path).await? != *found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

async fn look_up(tree: &RemoteTree, path: &str) -> Result<Found, Error> {
    if path.is_empty() {
        return listing(tree, path).await;
    }
    match tree.entry(path).await? {
        None => Ok(Found::Nothing),
        Some(entry) if entry.kind == EntryKind::Directory => listing(tree, path).await,
        Some(entry) => Ok(Found::File(entry.digest)),
    }
}

async fn listing(tree: &RemoteTree, path: &str) -> Result<Found, Error> {
    let mut names = String::new();
    for entry in tree.list(path).await? {
        names.push(if entry.kind == EntryKind::Directory {
            'd'
        } else {
            'f'
        });
        names.push_str(&entry.name);
        names.push('\n');
    }
    Ok(Found::Listing(Digest::of(names.as_bytes())))
}
