//! The local checkout as its artifact would be: the files that a commit would have, without what source-controller leaves
//! out, and without symbolic links, which no artifact has.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use artifact::ignore::{IGNORE_FILE, Matcher};
use delivery_diff::Content;
use kustomize_build::{DirEntry, DirectoryFs, FileKind, FileSystem, FsError};
use manifest::ObjectId;

use super::sources::Sources;
use crate::cluster::Failure;

/// A checkout. Paths are relative to its root.
pub(crate) struct Checkout {
    /// Which sources it stands for.
    sources: Sources,
    root: PathBuf,
    tree: DirectoryFs,
    matcher: Matcher,
    /// Files that Git tracks or would add, and their folders; None without Git.
    known: Option<BTreeSet<String>>,
}

impl Checkout {
    /// Opens a folder for sources: with what their `spec.ignore` leaves, and with submodules if they have them.
    pub(crate) fn open(root: &Path, sources: Sources) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Usage(format!("{}: {error}", root.display()));
        let root = root.canonicalize().map_err(failed)?;
        let mut matcher = Matcher::new(sources.ignore.as_deref());
        let mut found = Vec::new();
        ignore_files(&root, "", &mut found).map_err(failed)?;
        for folder in found {
            let text = fs::read(root.join(&folder).join(IGNORE_FILE)).map_err(failed)?;
            // A folder that the matcher refuses has a name that no artifact can have.
            _ = matcher.add_file(&folder, &String::from_utf8_lossy(&text));
        }
        Ok(Self {
            tree: DirectoryFs::new(&root).map_err(failed)?,
            known: in_git(&root, sources.submodules),
            matcher,
            root,
            sources,
        })
    }

    /// Where a folder of this machine is in the checkout; None if it is not in it.
    pub(crate) fn place_of(&self, folder: &Path) -> Option<String> {
        let real = folder.canonicalize().ok()?;
        Some(real.strip_prefix(&self.root).ok()?.to_str()?.to_owned())
    }

    /// The addresses that this is a checkout of.
    pub(crate) fn remotes(&self) -> Vec<String> {
        let listed = git(&self.root, &["config", "--get-regexp", r"^remote\..*\.url$"]);
        let listed = listed.unwrap_or_default();
        let addresses = listed.lines().filter_map(|line| line.split_once(' '));
        addresses.map(|(_, address)| address.to_owned()).collect()
    }

    fn is_left_out(&self, path: &str, is_folder: bool) -> bool {
        let is_unknown = self.known.as_ref().is_some_and(|known| !known.contains(path));
        is_unknown || (!is_folder && self.matcher.is_ignored(path, false)) || self.is_linked(path)
    }

    fn is_linked(&self, path: &str) -> bool {
        let place = self.root.join(path);
        place.canonicalize().is_ok_and(|real| real != place)
    }
}

/// The root of the checkout that a folder is in: where Git keeps its own.
pub(crate) fn root_of(folder: &Path) -> Option<PathBuf> {
    let real = folder.canonicalize().ok()?;
    let root = real.ancestors().find(|folder| folder.join(".git").exists())?;
    Some(root.to_owned())
}

impl Content for Checkout {
    fn stands_for(&self, source: &ObjectId) -> bool {
        self.sources.contains(source)
    }

    fn word(&self) -> &'static str {
        "checkout"
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }
}

impl FileSystem for Checkout {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        match self.kind(path)? {
            Some(FileKind::File) => self.tree.read(path),
            _ => Err(FsError::NotFound),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        let found = match self.tree.kind(path) {
            Err(FsError::OutsideRoot) => None,
            answer => answer?,
        };
        let is_folder = found == Some(FileKind::Directory);
        Ok(found.filter(|_| path.is_empty() || !self.is_left_out(path, is_folder)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let mut entries = self.tree.list(path)?;
        entries.retain(|entry| {
            let below = flux_spec::build::path::join(path, &entry.name);
            !self.is_left_out(&below, entry.kind == FileKind::Directory)
        });
        Ok(entries)
    }
}

/// Finds the folders with patterns in them.
fn ignore_files(root: &Path, folder: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let Some(name) = name.to_str().filter(|name| *name != ".git") else {
            continue;
        };
        if kind.is_dir() {
            ignore_files(root, &flux_spec::build::path::join(folder, name), found)?;
        } else if kind.is_file() && name == IGNORE_FILE {
            found.push(folder.to_owned());
        }
    }
    Ok(())
}

/// Lists what a commit of everything would have, with its folders. What Git itself ignores lies about in a checkout and is in
/// no artifact.
fn in_git(root: &Path, submodules: bool) -> Option<BTreeSet<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let listed = git(
        root,
        &["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    )?;
    let mut known = BTreeSet::from([String::new()]);
    for file in listed.split('\0').filter(|file| !file.is_empty()) {
        let folders = file.match_indices('/').map(|(end, _)| file[..end].to_owned());
        known.extend(folders);
        known.insert(file.to_owned());
        // A submodule is listed as if it were a file.
        if submodules && root.join(file).is_dir() {
            let inside = in_git(&root.join(file), true).unwrap_or_default();
            known.extend(inside.iter().map(|path| flux_spec::build::path::join(file, path)));
        }
    }
    Some(known)
}

/// Output of Git; None without Git, or if it fails.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(words).stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_has_what_its_artifact_would_have() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        for (path, text) in [
            ("app/a.yaml", "a"),
            ("app/b.yaml", "b"),
            ("app/out.yaml", "made"),
            ("app/.sourceignore", "b.yaml\n"),
            (".gitignore", "out.yaml\n"),
        ] {
            write(path, text);
        }
        std::os::unix::fs::symlink("a.yaml", root.join("app/link.yaml")).unwrap();
        let names = |checkout: &Checkout| -> Vec<String> {
            let listed = checkout.list("app").unwrap().into_iter();
            listed
                .map(|entry| entry.name)
                .filter(|name| name.ends_with("yaml"))
                .collect()
        };
        let without_git = Checkout::open(root, Sources::default()).unwrap();
        assert_eq!(names(&without_git), ["a.yaml", "out.yaml"]);
        assert_eq!(without_git.read("app/b.yaml"), Err(FsError::NotFound));
        assert!(root_of(&root.join("app")).is_none_or(|found| !found.starts_with(root)));

        assert!(git(root, &["init", "--quiet"]).is_some());
        let address = "https://example.com/a.git";
        assert!(git(root, &["remote", "add", "origin", address]).is_some());
        let with_git = Checkout::open(root, Sources::default()).unwrap();
        assert_eq!(names(&with_git), ["a.yaml"]);
        assert_eq!(with_git.remotes(), [address]);
        assert_eq!(with_git.place_of(&root.join("app")).as_deref(), Some("app"));
        assert_eq!(with_git.kind("app"), Ok(Some(FileKind::Directory)));
        assert_eq!(with_git.kind("gone"), Ok(None));
        assert_eq!(root_of(&root.join("app")), Some(root.canonicalize().unwrap()));

        // What another repository has inside of this one is there only if the source has it.
        write("sub/c.yaml", "c");
        let inside = root.join("sub");
        let as_somebody = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let commit = [&as_somebody[..], &["commit", "--quiet", "-m", "c"]].concat();
        for words in [&["init", "--quiet"][..], &["add", "."], &commit] {
            assert!(git(&inside, words).is_some(), "{words:?}");
        }
        assert!(git(root, &["add", "sub"]).is_some());
        for (submodules, expected) in [(false, None), (true, Some(FileKind::File))] {
            let mut sources = Sources::default();
            sources.submodules = submodules;
            let checkout = Checkout::open(root, sources).unwrap();
            assert_eq!(checkout.kind("sub/c.yaml"), Ok(expected));
        }
    }
}
