//! Inputs of a build, and whether another tree would give the same result.
//!
//! A build tells how it looked at which path: whether there is something, what is in a folder, what a file says. The
//! answers make its closure, those that said "nothing" too: a commit that changes none of them needs no build and
//! no apply (ADR 1). It holds for a build that failed as well.

use std::collections::{BTreeMap, BTreeSet};

use artifact::Digest;
use artifact::client::{Error, RemoteTree};
use artifact::tree::{Entry, EntryKind};

/// How a path was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Whether there is a file or a folder.
    Kind,
    /// Which files and folders are in it.
    Listing,
    /// The file's contents.
    Contents,
}

/// All that a build looked at.
pub type Looks = BTreeMap<String, BTreeSet<Look>>;

/// The tree of an artifact, as far as a closure asks.
pub trait Content: Sync {
    /// The entry at a path; None if there is nothing, and for the root.
    fn entry(&self, path: &str) -> impl Future<Output = Result<Option<Entry>, Error>> + Send;
    /// The entries of a folder.
    fn list(&self, path: &str) -> impl Future<Output = Result<Vec<Entry>, Error>> + Send;
}

impl Content for RemoteTree {
    async fn entry(&self, path: &str) -> Result<Option<Entry>, Error> {
        Self::entry(self, path).await
    }

    async fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
        Self::list(self, path).await
    }
}

/// Paths that a build looked at, and what it found there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Closure {
    found: Vec<(String, Look, Found)>,
    /// The build depends on more than its tree: on what servers have, or on a policy about asking them.
    is_open: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Found {
    Nothing,
    File,
    Folder,
    Contents(Digest),
    /// Digest of the names that count in a folder. What is below it is in the closure by itself where it was read.
    Listing(Digest),
}

impl Closure {
    /// Looks up what a build looked at.
    pub async fn new(tree: &impl Content, looks: &Looks) -> Result<Self, Error> {
        let mut found = Vec::new();
        for (path, looks) in looks {
            for look in looks {
                found.push((path.clone(), *look, look_up(tree, path, *look).await?));
            }
        }
        Ok(Self {
            found,
            is_open: false,
        })
    }

    /// Notes whether the build depends on more than its tree.
    #[must_use]
    pub fn opened(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    /// Returns whether the build depends on more than its tree.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns whether a build from this tree would give the same result.
    pub async fn holds_in(&self, tree: &impl Content) -> Result<bool, Error> {
        if self.is_open {
            return Ok(false);
        }
        for (path, look, found) in &self.found {
            if look_up(tree, path, *look).await? != *found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns about how many bytes of memory it takes.
    pub fn weight(&self) -> usize {
        let weight = |(path, ..): &(String, _, _)| path.len() + size_of::<(String, Look, Found)>();
        self.found.iter().map(weight).sum()
    }
}

async fn look_up(tree: &impl Content, path: &str, look: Look) -> Result<Found, Error> {
    let entry = match path {
        "" => None,
        path => match tree.entry(path).await? {
            None => return Ok(Found::Nothing),
            entry => entry,
        },
    };
    let file = entry.filter(|entry| entry.kind != EntryKind::Directory);
    Ok(match (file, look) {
        (Some(file), Look::Contents) => Found::Contents(file.digest),
        (Some(_), _) => Found::File,
        (None, Look::Listing) => Found::Listing(listing(&tree.list(path).await?)),
        (None, _) => Found::Folder,
    })
}

/// Only a generated kustomization comes from a listing, and it names folders and manifests: a new README.md is no change.
fn listing(entries: &[Entry]) -> Digest {
    let mut names = String::new();
    for entry in entries {
        let folder = entry.kind == EntryKind::Directory;
        if folder || flux_spec::build::is_manifest(&entry.name) {
            names.push(if folder { 'd' } else { 'f' });
            names.push_str(&entry.name);
            names.push('\0');
        }
    }
    Digest::from_content(names.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files by path; folders are what lies between.
    struct Files(BTreeMap<&'static str, &'static str>);

    impl Content for Files {
        async fn entry(&self, path: &str) -> Result<Option<Entry>, Error> {
            let file = self.0.get(path);
            let is_folder = self.0.keys().any(|file| file.starts_with(&format!("{path}/")));
            let kind = match (file, is_folder) {
                (Some(_), _) => EntryKind::of_file(false),
                (None, true) => EntryKind::Directory,
                (None, false) => return Ok(None),
            };
            Ok(Some(Entry {
                kind,
                name: path.rsplit('/').next().unwrap().to_owned(),
                digest: Digest::from_content(file.copied().unwrap_or(path).as_bytes()),
                size: 0,
            }))
        }

        async fn list(&self, path: &str) -> Result<Vec<Entry>, Error> {
            let below = |file: &&str| match path {
                "" => Some((*file).to_owned()),
                path => file.strip_prefix(&format!("{path}/")).map(ToOwned::to_owned),
            };
            let names: BTreeSet<String> = self
                .0
                .keys()
                .filter_map(below)
                .map(|rest| rest.split('/').next().unwrap().to_owned())
                .collect();
            let mut entries = Vec::new();
            for name in names {
                let path = flux_spec::build::path::join(path, &name);
                entries.extend(Content::entry(self, &path).await?);
            }
            Ok(entries)
        }
    }

    const TREE: [(&str, &str); 4] = [
        ("app/a.yaml", "1"),
        ("app/sub/b.yaml", "2"),
        ("base/kustomization.yaml", "3"),
        ("other", "4"),
    ];

    /// Paths that a build of the plain folder `app` with a base would look at.
    fn looks() -> Looks {
        let looks = [
            ("", Look::Kind),
            ("app", Look::Kind),
            ("app", Look::Listing),
            ("app/kustomization.yaml", Look::Kind),
            ("app/a.yaml", Look::Kind),
            ("app/a.yaml", Look::Contents),
            ("app/sub", Look::Listing),
            ("base", Look::Kind),
            ("base/kustomization.yaml", Look::Contents),
        ];
        let mut all = Looks::new();
        for (path, look) in looks {
            all.entry(path.to_owned()).or_default().insert(look);
        }
        all
    }

    /// Returns whether the closure of [`TREE`] holds once files are added, changed or (with an empty text) removed.
    fn holds_after(changes: &[(&'static str, &'static str)]) -> bool {
        let mut files: BTreeMap<_, _> = TREE.into_iter().collect();
        let before = Files(files.clone());
        for (path, text) in changes {
            match *text {
                "" => files.remove(path),
                text => files.insert(path, text),
            };
        }
        futures::executor::block_on(async {
            let closure = Closure::new(&before, &looks()).await.unwrap();
            closure.holds_in(&Files(files)).await.unwrap()
        })
    }

    #[test]
    fn what_was_not_looked_at_changes_nothing() {
        for changes in [
            &[][..],
            &[("other", "changed"), ("new/folder/file.yaml", "x")],
            &[("app/README.md", "new")],
            &[("base/unused.yaml", "new")],
            // Its name was seen in a listing; no one read what it says.
            &[("app/sub/b.yaml", "changed")],
        ] {
            assert!(holds_after(changes), "{changes:?}");
        }
    }

    #[test]
    fn what_was_looked_at_counts_and_so_does_what_was_missed() {
        for changes in [
            &[("app/a.yaml", "changed")][..],
            &[("app/a.yaml", "")],
            &[("app/new.yaml", "x")],
            &[("app/new/folder/file", "x")],
            &[("app/sub/b.yaml", "")],
            // Looked for in vain, and there now.
            &[("app/kustomization.yaml", "x")],
            // A folder becomes a file.
            &[("base/kustomization.yaml", ""), ("base", "x")],
        ] {
            assert!(!holds_after(changes), "{changes:?}");
        }
    }
}
