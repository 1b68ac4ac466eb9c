//! A folder or file as the layer of an artifact: packed as source-controller packs, so that the same files give the same bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use artifact::Digest;
use artifact::archive;
use artifact::ignore::{IGNORE_FILE, Matcher};
use artifact::tree::{Builder, Directory, Tree};

use crate::cluster::Failure;

/// Files that Flux's own command leaves out: those that Git needs, pictures, films and archives.
pub(super) const IGNORED: &str =
    ".git/,.gitignore,.gitmodules,.gitattributes,*.jpg,*.jpeg,*.gif,*.png,*.wmv,*.flv,*.tar.gz,*.zip";

/// Packs what is at a path. Symbolic links are left out, as Flux leaves them out.
pub(super) fn pack(path: &Path, ignored: &[String]) -> Result<Vec<u8>, Failure> {
    let failed = |what: &Path, error: &dyn std::fmt::Display| {
        Failure::Usage(format!("failed to pack {}: {error}", what.display()))
    };
    let root = path.canonicalize().map_err(|error| failed(path, &error))?;
    let mut packing = Packing {
        builder: Builder::new(),
        matcher: Matcher::without_defaults(None),
        blobs: HashMap::new(),
    };
    packing
        .matcher
        .add_file("", &ignored.join("\n"))
        .map_err(|error| failed(path, &error))?;
    let added = match root.is_dir() {
        true => packing.folder(&root, ""),
        false => {
            let name = root
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            packing.file(&root, name)
        }
    };
    added.map_err(|error| failed(path, &error))?;
    let matcher = &packing.matcher;
    packing
        .builder
        .retain(|path, is_folder| !matcher.is_ignored(path, is_folder));
    let (tree, _) = packing.builder.finish();
    let mut layer = Vec::new();
    let content = Content {
        tree: &tree,
        blobs: &packing.blobs,
    };
    archive::write(&mut layer, &tree.root(), &content).map_err(|error| failed(path, &error))?;
    Ok(layer)
}

struct Packing {
    builder: Builder,
    matcher: Matcher,
    /// Where the file of a digest is.
    blobs: HashMap<Digest, PathBuf>,
}

impl Packing {
    fn folder(&mut self, place: &Path, path: &str) -> io::Result<()> {
        if !path.is_empty() {
            self.builder.folder(path).map_err(io::Error::other)?;
        }
        for entry in fs::read_dir(place)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| io::Error::other(format!("{} is no UTF-8", entry.path().display())))?;
            let below = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}/{name}")
            };
            let kind = entry.file_type()?;
            // Nothing of what Git keeps for itself need be read to be left out.
            if kind.is_dir() && name == ".git" && self.matcher.is_ignored(&below, true) {
                continue;
            }
            if kind.is_dir() {
                self.folder(&entry.path(), &below)?;
            } else if kind.is_file() {
                self.file(&entry.path(), &below)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, place: &Path, path: &str) -> io::Result<()> {
        let data = fs::read(place)?;
        if path == IGNORE_FILE || path.ends_with("/.sourceignore") {
            let folder = path.strip_suffix(IGNORE_FILE).unwrap_or_default();
            let patterns = String::from_utf8_lossy(&data);
            let added = self.matcher.add_file(folder.trim_end_matches('/'), &patterns);
            added.map_err(io::Error::other)?;
        }
        let (digest, size) = (Digest::from_content(&data), data.len() as u64);
        let executable = place.metadata()?.permissions().mode() & 0o111 != 0;
        self.builder
            .file(path, executable, digest, size)
            .map_err(io::Error::other)?;
        self.blobs.insert(digest, place.to_owned());
        Ok(())
    }
}

struct Content<'a> {
    tree: &'a Tree,
    blobs: &'a HashMap<Digest, PathBuf>,
}

impl archive::Content for Content<'_> {
    type Error = io::Error;
    type Blob = fs::File;

    fn directory(&self, digest: &Digest) -> Result<Cow<'_, Directory>, Self::Error> {
        let found = self.tree.directory(digest).ok_or(io::ErrorKind::NotFound)?;
        Ok(Cow::Borrowed(found))
    }

    fn blob(&self, digest: &Digest) -> Result<Self::Blob, Self::Error> {
        fs::File::open(self.blobs.get(digest).ok_or(io::ErrorKind::NotFound)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layer: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(layer));
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect()
    }

    fn ignored() -> Vec<String> {
        IGNORED.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn the_same_folder_gives_the_same_bytes_without_what_is_left_out() {
        let write = |root: &Path, path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        let files = [
            ("app/a.yaml", "a"),
            ("app/a.png", "x"),
            ("app/drop.yaml", "x"),
            (".sourceignore", "drop.yaml\n"),
            (".git/HEAD", "x"),
        ];
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        files
            .iter()
            .for_each(|(path, text)| write(one.path(), path, text));
        files
            .iter()
            .rev()
            .for_each(|(path, text)| write(other.path(), path, text));
        std::os::unix::fs::symlink("a.yaml", one.path().join("app/link.yaml")).unwrap();
        let layer = pack(one.path(), &ignored()).unwrap();
        assert_eq!(layer, pack(other.path(), &ignored()).unwrap());
        let names_of_layer = names(&layer).join(" ");
        assert_eq!(names_of_layer, ". .sourceignore app app/a.yaml");
        // One's own list takes the place of the other, and .sourceignore goes on top.
        let own = pack(one.path(), &["*.yaml".to_owned(), ".git/".to_owned()]).unwrap();
        assert_eq!(names(&own).join(" "), ". .sourceignore app app/a.png");
        let file = pack(&one.path().join("app/a.yaml"), &ignored()).unwrap();
        assert_eq!(names(&file), [".", "a.yaml"]);
        assert!(pack(&one.path().join("gone"), &[]).is_err());
    }
}
