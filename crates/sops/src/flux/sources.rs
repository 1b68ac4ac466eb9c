//! Files that kustomizations name: inputs of secret generators and patches, decrypted before the build.

use std::collections::{BTreeMap, BTreeSet};

use kustomize_build::{FileKind, FileSystem, FsError};
use serde_json::Value;
use url::Url;

use crate::decryptor::{Decryptor, MAX_FILE_BYTES};
use crate::error::Error;
use crate::format::Format;

/// File names of a kustomization.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// More folders than any build has.
const MAX_FOLDERS: usize = 10_000;
/// More encrypted content than the files of one build have in all: it is held in memory twice.
const MAX_BYTES: usize = 64 << 20;
const MAX_DEPTH: usize = 100;

/// Why the files of a build are not decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A folder has no kustomization.
    #[error("{folder}: no kustomization file found")]
    NoKustomization {
        /// The folder.
        folder: String,
    },
    /// A folder has more than one.
    #[error("{folder}: found multiple kustomization files")]
    SeveralKustomizations {
        /// The folder.
        folder: String,
    },
    /// A kustomization cannot be read.
    #[error("failed to unmarshal kustomization file from '{path}': {problem}")]
    Kustomization {
        /// The file.
        path: String,
        /// The problem.
        problem: String,
    },
    /// A file that is named cannot be read.
    #[error("failed to read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: FsError,
    },
    /// The path is a folder.
    #[error("{path}: cannot decrypt irregular file as it has file mode type bits set")]
    NoFile {
        /// The path.
        path: String,
    },
    /// A file that is named cannot be decrypted.
    #[error("failed to decrypt {path}: {source}")]
    Decrypt {
        /// The file.
        path: String,
        /// Why.
        source: Error,
    },
    /// Kustomizations are nested too deeply, or there are too many.
    #[error("kustomizations are nested too deeply, or there are more than {MAX_FOLDERS}")]
    TooMany,
    /// The encrypted files are too large together.
    #[error("the encrypted files of the build have more than {MAX_BYTES} bytes together")]
    TooMuch,
}

/// Finds the files that may be encrypted, and in which format each is, from the kustomization of a folder on: through
/// its resources and components. What leads to no folder here (a file, a URL) is passed over; no path leaves the tree.
pub fn find(fs: &dyn FileSystem, folder: &str) -> Result<BTreeMap<String, Format>, SourceError> {
    let mut finder = Finder {
        fs,
        visited: BTreeSet::new(),
        found: BTreeMap::new(),
    };
    finder.folder(&normal("", folder), 0)?;
    Ok(finder.found)
}

/// A file that looks encrypted, as it is in the tree.
pub struct EncryptedFile {
    path: String,
    format: Format,
    data: Vec<u8>,
}

impl EncryptedFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Reads the files that [`find`] finds and that look encrypted.
pub fn read(fs: &dyn FileSystem, folder: &str) -> Result<Vec<EncryptedFile>, SourceError> {
    let mut files = Vec::new();
    let mut size = 0;
    for (path, format) in find(fs, folder)? {
        let Some(data) = encrypted(fs, &path, format)? else {
            continue;
        };
        size += data.len();
        if size > MAX_BYTES {
            return Err(SourceError::TooMuch);
        }
        files.push(EncryptedFile { path, format, data });
    }
    Ok(files)
}

/// Decrypts files. The caller lays the result, by path, over its tree.
pub async fn decrypt(
    decryptor: &Decryptor,
    files: &[EncryptedFile],
) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
    let mut decrypted = BTreeMap::new();
    for EncryptedFile { path, format, data } in files {
        let plain = decryptor.decrypt(data, *format).await;
        let plain = plain.map_err(|source| SourceError::Decrypt {
            path: path.clone(),
            source,
        })?;
        decrypted.insert(path.clone(), plain);
    }
    Ok(decrypted)
}

/// Reads a file; None when it does not look encrypted.
fn encrypted(fs: &dyn FileSystem, path: &str, format: Format) -> Result<Option<Vec<u8>>, SourceError> {
    let read = fs.read(path);
    let data = read.map_err(|source| SourceError::Read {
        path: path.to_owned(),
        source,
    })?;
    if data.len() > MAX_FILE_BYTES {
        return Err(SourceError::Decrypt {
            path: path.to_owned(),
            source: Error::TooLarge {
                size: data.len(),
                limit: MAX_FILE_BYTES,
            },
        });
    }
    Ok(format.is_encrypted(&data).then_some(data))
}

struct Finder<'a> {
    fs: &'a dyn FileSystem,
    visited: BTreeSet<String>,
    found: BTreeMap<String, Format>,
}

impl Finder<'_> {
    fn folder(&mut self, folder: &str, depth: usize) -> Result<(), SourceError> {
        if depth > MAX_DEPTH || self.visited.len() > MAX_FOLDERS {
            return Err(SourceError::TooMany);
        }
        let read = |source| SourceError::Read {
            path: folder.to_owned(),
            source,
        };
        let folder = match self.fs.locate(folder) {
            Ok(Some((folder, FileKind::Directory))) => folder,
            Ok(_) | Err(FsError::NotFound) => return Ok(()),
            Err(source) => return Err(read(source)),
        };
        if !self.visited.insert(folder.clone()) {
            return Ok(());
        }
        let kustomization = self.kustomization(&folder)?;
        for (path, format) in files(&kustomization) {
            self.file(&normal(&folder, path), format)?;
        }
        let further = ["resources", "components"].into_iter();
        for entry in further.flat_map(|list| texts(&kustomization, list)) {
            self.folder(&normal(&folder, entry), depth + 1)?;
        }
        Ok(())
    }

    fn kustomization(&self, folder: &str) -> Result<Value, SourceError> {
        let mut names = NAMES
            .iter()
            .map(|name| normal(folder, name))
            .filter(|path| matches!(self.fs.kind(path), Ok(Some(FileKind::File))));
        let told = || {
            if folder.is_empty() {
                ".".to_owned()
            } else {
                folder.to_owned()
            }
        };
        let path = names
            .next()
            .ok_or_else(|| SourceError::NoKustomization { folder: told() })?;
        if names.next().is_some() {
            return Err(SourceError::SeveralKustomizations { folder: told() });
        }
        let problem = |problem: String| SourceError::Kustomization {
            path: path.clone(),
            problem,
        };
        let data = self.fs.read(&path);
        let data = data.map_err(|error| problem(error.to_string()))?;
        let text = std::str::from_utf8(&data).map_err(|error| problem(error.to_string()))?;
        let documents =
            manifest::yaml::read_documents(text, &path).map_err(|error| problem(error.to_string()))?;
        Ok(documents
            .into_iter()
            .next()
            .map_or(Value::Null, |document| document.value))
    }

    /// The first format that a file is named with counts.
    fn file(&mut self, path: &str, format: Format) -> Result<(), SourceError> {
        let read = |source| SourceError::Read {
            path: path.to_owned(),
            source,
        };
        match self.fs.locate(path).map_err(read)? {
            Some((located, FileKind::File)) => {
                self.found.entry(located).or_insert(format);
                Ok(())
            }
            Some((_, FileKind::Directory)) => Err(SourceError::NoFile {
                path: path.to_owned(),
            }),
            None => Err(read(FsError::NotFound)),
        }
    }
}

/// The files that a kustomization names, and the format that each has by its name, or by that of its key.
fn files(kustomization: &Value) -> Vec<(&str, Format)> {
    let mut files = Vec::new();
    for generator in list(kustomization, "secretGenerator") {
        for file in texts(generator, "files") {
            let (key, path) = file.split_once('=').unwrap_or((file, file));
            files.push((path, Format::of_path(key)));
        }
        for path in texts(generator, "envs") {
            let format = match Format::of_path(path) {
                Format::Binary => Format::Dotenv,
                format => format,
            };
            files.push((path, format));
        }
    }
    for patch in list(kustomization, "patches") {
        let path = patch.get("path").and_then(Value::as_str).unwrap_or_default();
        if !path.is_empty() && !is_remote(path) {
            files.push((path, Format::of_path(path)));
        }
    }
    files
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn texts<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    list(value, name).filter_map(Value::as_str)
}

fn is_remote(path: &str) -> bool {
    Url::parse(path).is_ok_and(|url| url.has_host())
}

/// Joins and cleans a path. An absolute one is one from the root of the tree, and none leads above it.
fn normal(folder: &str, path: &str) -> String {
    let folder = if path.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use kustomize_build::MemoryFs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> MemoryFs {
        let mut fs = MemoryFs::default();
        for (path, content) in files {
            fs.insert(*path, *content);
        }
        fs
    }

    fn found(files: &[(&str, &str)]) -> Result<Vec<(String, Format)>, String> {
        let found = find(&tree(files), "apps").map_err(|error| error.to_string())?;
        Ok(found.into_iter().collect())
    }

    #[test]
    fn generators_and_patches_name_files_through_resources_and_components() {
        let files = [
            (
                "apps/kustomization.yaml",
                "secretGenerator:\n- name: a\n  files: [plain.txt, config.json=data/c, .dockerconfigjson=docker]\n  envs: [env, \
                 x.env, y.yaml]\npatches:\n- path: patch.yaml\n- path: https://example.com/p.yaml\n- patch: inline\nconfigMapGenerator:\n- \
                 files: [not.yaml]\nresources: [deployment.yaml, ../base, https://example.com/x, missing]\ncomponents: [/comp]\n",
            ),
            ("apps/plain.txt", ""),
            ("apps/data/c", ""),
            ("apps/docker", ""),
            ("apps/env", ""),
            ("apps/x.env", ""),
            ("apps/y.yaml", ""),
            ("apps/patch.yaml", ""),
            ("apps/not.yaml", ""),
            ("apps/deployment.yaml", ""),
            (
                "base/Kustomization",
                "secretGenerator: [{files: [../../../s.ini]}]\nresources: [../apps]\n",
            ),
            ("comp/kustomization.yml", "patches: [{path: /comp/p.json}]\n"),
            ("comp/p.json", ""),
            ("s.ini", ""),
        ];
        let expected = [
            ("apps/data/c", Format::Json),
            ("apps/docker", Format::Json),
            ("apps/env", Format::Dotenv),
            ("apps/patch.yaml", Format::Yaml),
            ("apps/plain.txt", Format::Binary),
            ("apps/x.env", Format::Dotenv),
            ("apps/y.yaml", Format::Yaml),
            ("comp/p.json", Format::Json),
            ("s.ini", Format::Ini),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, format)| ((*path).to_owned(), *format))
            .collect();
        assert_eq!(found(&files).unwrap(), expected);
    }

    #[test]
    fn what_flux_refuses_is_refused() {
        let missing = [("apps/kustomization.yaml", "secretGenerator: [{files: [gone]}]\n")];
        assert_eq!(
            found(&missing).unwrap_err(),
            "failed to read apps/gone: no such file or directory"
        );
        let two = [("apps/kustomization.yaml", ""), ("apps/kustomization.yml", "")];
        assert_eq!(
            found(&two).unwrap_err(),
            "apps: found multiple kustomization files"
        );
        assert_eq!(
            found(&[("apps/x", "")]).unwrap_err(),
            "apps: no kustomization file found"
        );
        let folder = [
            ("apps/kustomization.yaml", "patches: [{path: d}]\n"),
            ("apps/d/x", ""),
        ];
        assert!(found(&folder).unwrap_err().contains("irregular file"));
        assert!(
            found(&[("apps/kustomization.yaml", "a: [")])
                .unwrap_err()
                .contains("failed to unmarshal")
        );
    }
}
