//! Contents of a folder: its own kustomization file, or the YAML files that one is generated from.

use kustomize_build::{FileKind, FileSystem};

use crate::build::error::Error;
use crate::build::path::join;

/// The names that kustomize looks for, in its order.
pub const KUSTOMIZATION_FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A folder of plain YAML nested deeper than this is refused: the walk must end on a hostile tree.
const MAX_DEPTH: usize = 64;

/// The YAML below a folder without a kustomization.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PlainFolder {
    /// Paths that a kustomization has to list as its resources.
    pub(crate) resources: Vec<String>,
    /// Those that are files, by their paths in the tree.
    pub(crate) manifests: Vec<String>,
}

/// Returns the path of the folder's own kustomization file.
pub(crate) fn kustomization_file(fs: &dyn FileSystem, folder: &str) -> Result<Option<String>, Error> {
    for name in KUSTOMIZATION_FILES {
        let path = join(folder, name);
        let kind = fs.kind(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        if kind == Some(FileKind::File) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Walks the folder in the order of names, into each folder where it stands. A folder with a kustomization of its own is
/// one resource and not entered. Hidden files count; what `.sourceignore` names is not in the artifact.
pub(crate) fn scan(fs: &dyn FileSystem, folder: &str) -> Result<PlainFolder, Error> {
    let mut found = PlainFolder::default();
    walk(fs, folder, "", 0, &mut found)?;
    Ok(found)
}

fn walk(
    fs: &dyn FileSystem,
    folder: &str,
    below: &str,
    depth: usize,
    found: &mut PlainFolder,
) -> Result<(), Error> {
    let here = join(folder, below);
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep(here));
    }
    let mut entries = fs.list(&here).map_err(|source| Error::Read {
        path: here.clone(),
        source,
    })?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let relative = join(below, &entry.name);
        let path = join(folder, &relative);
        match entry.kind {
            FileKind::Directory if kustomization_file(fs, &path)?.is_some() => {
                found.resources.push(format!("./{relative}"));
            }
            FileKind::Directory => walk(fs, folder, &relative, depth + 1, found)?,
            FileKind::File if is_manifest(&entry.name) => {
                found.resources.push(format!("./{relative}"));
                found.manifests.push(path);
            }
            FileKind::File => {}
        }
    }
    Ok(())
}

/// Returns whether a file of a plain folder is taken for a manifest.
pub fn is_manifest(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}
