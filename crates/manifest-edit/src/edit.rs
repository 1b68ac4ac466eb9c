//! All files of one request.

use std::collections::BTreeMap;

use api::delivery::{FileChange, ManifestReference};

use crate::document::{Documents, digest, text};
use crate::resources::{self, NAMES};
use crate::rules::{is_encrypted, is_kustomization, is_open, is_within, refusal};

/// Why files cannot be changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// A path that is not written to.
    #[error(
        "{0}: the path must be relative to the repository, without '..', without hidden files or folders, and no file of a CI service"
    )]
    Path(String),
    /// A new file elsewhere.
    #[error("{path}: a new file must be below the path of the Kustomization, '{folder}'")]
    Outside {
        /// The file.
        path: String,
        /// The folder.
        folder: String,
    },
    /// A new file that is there.
    #[error("{0}: there is such a file: choose another name, or change the manifest in it")]
    Exists(String),
    /// No file, or no such manifest in it, or several.
    #[error("{path}: it has no single {kind}/{name}: read it again")]
    Missing {
        /// The file.
        path: String,
        /// Kind of the manifest.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The manifest has changed since.
    #[error("{path}: {kind}/{name} was changed in Git since it was read: read it again")]
    Stale {
        /// The file.
        path: String,
        /// Kind of the manifest.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The new text would be another object.
    #[error(
        "{path}: the new text must be one manifest of {kind}/{name}, as before: another name would be another object"
    )]
    Renamed {
        /// The file.
        path: String,
        /// Kind of the manifest.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It is sealed.
    #[error("{0}: the manifest is encrypted with SOPS: change it with sops")]
    Encrypted(String),
    /// Content that is not accepted.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// It would change what is built.
    #[error("{0}: a kustomization.yaml is not written: it says what is built, and what is pruned")]
    Kustomization(String),
    /// One file twice.
    #[error("{0}: it is named twice as a new file")]
    Twice(String),
    /// The files cannot be read.
    #[error("failed to read the files: {0}")]
    Read(String),
}

/// Changes files as a request says. `folder` is the path of the Kustomization, `read` gives the text of a file, or None. Returns the
/// new contents of all files that change, by path; none if they are as asked for already.
///
/// # Errors
/// When a file or its new content is not accepted, or it is not as it was when it was read.
pub fn edit(
    folder: &str,
    changes: &[FileChange],
    read: impl Fn(&str) -> Result<Option<String>, String>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut work = Work {
        folder,
        read,
        contents: BTreeMap::new(),
    };
    for change in changes {
        if !is_open(&change.path) {
            return Err(Error::Path(change.path.clone()));
        }
        if is_kustomization(&change.path) {
            return Err(Error::Kustomization(change.path.clone()));
        }
        match &change.object {
            Some(object) => work.replace(change, object)?,
            None => work.add(change)?,
        }
    }
    Ok(work.contents)
}

struct Work<'a, R> {
    folder: &'a str,
    read: R,
    contents: BTreeMap<String, String>,
}

impl<R: Fn(&str) -> Result<Option<String>, String>> Work<'_, R> {
    /// A file as it is by now.
    fn now(&self, path: &str) -> Result<Option<String>, Error> {
        match self.contents.get(path) {
            Some(content) => Ok(Some(content.clone())),
            None => (self.read)(path).map_err(Error::Read),
        }
    }

    fn replace(&mut self, change: &FileChange, object: &ManifestReference) -> Result<(), Error> {
        let (path, kind, name) = (change.path.clone(), object.kind.clone(), object.name.clone());
        let in_file = |problem| Error::Content {
            path: change.path.clone(),
            problem,
        };
        let before = self.now(&path)?;
        let documents = before.as_deref().map(|before| Documents::read(&path, before));
        let documents = documents.transpose().map_err(in_file)?;
        let place = documents.as_ref().and_then(|documents| documents.place(object));
        let (Some(before), Some(documents), Some(place)) = (before, documents, place) else {
            return Err(Error::Missing { path, kind, name });
        };
        let new = Documents::read(&path, &change.content).map_err(in_file)?;
        let [(new_place, value)] = new.all.as_slice() else {
            return Err(Error::Renamed { path, kind, name });
        };
        let is_same = new.place(object).is_some();
        let mut all = documents.all.iter();
        let old = all.find_map(|(of, old)| (*of == place).then_some(old));
        let namespace = |value| text(value, "/metadata/namespace");
        if !is_same || old.is_some_and(|old| namespace(old) != namespace(value)) {
            return Err(Error::Renamed { path, kind, name });
        }
        if is_encrypted(value) || old.is_some_and(is_encrypted) {
            return Err(Error::Encrypted(path));
        }
        if let Some(problem) = refusal(value) {
            return Err(in_file(problem.to_owned()));
        }
        let old = &before[place.clone()];
        let wanted = as_lines_are(old, &change.content[new_place.clone()]);
        if *old == wanted {
            return Ok(());
        }
        // What a browser sends has other ends of lines, and so has what was read.
        let is_known = |text: &str| change.digest.as_deref() == Some(&*digest(text));
        if !is_known(old) && !is_known(&old.replace("\r\n", "\n")) {
            return Err(Error::Stale { path, kind, name });
        }
        let text = format!("{}{wanted}{}", &before[..place.start], &before[place.end..]);
        // Comments or markers in the new text must not make another file of it.
        let after = Documents::read(&path, &text).map_err(in_file)?;
        if after.all.len() != documents.all.len() {
            return Err(Error::Renamed { path, kind, name });
        }
        self.contents.insert(path, text);
        Ok(())
    }

    fn add(&mut self, change: &FileChange) -> Result<(), Error> {
        let path = change.path.clone();
        if !is_within(&path, self.folder) {
            let folder = self.folder.to_owned();
            return Err(Error::Outside { path, folder });
        }
        if self.contents.contains_key(&path) {
            return Err(Error::Twice(path));
        }
        let in_file = |problem| Error::Content {
            path: change.path.clone(),
            problem,
        };
        let new = Documents::read(&path, &change.content).map_err(in_file)?;
        if new.all.is_empty() {
            return Err(in_file("it has no manifest".to_owned()));
        }
        if let Some(problem) = new.all.iter().find_map(|(_, value)| refusal(value)) {
            return Err(in_file(problem.to_owned()));
        }
        let content = as_lines_are("", &change.content);
        match self.now(&path)? {
            // A merged request is looked at again.
            Some(before) if before == content => {}
            Some(_) => return Err(Error::Exists(path)),
            None => _ = self.contents.insert(path.clone(), content),
        }
        self.list(&path)
    }

    /// Adds a new file to the kustomization.yaml that lists the files of its folder, if there is one.
    fn list(&mut self, path: &str) -> Result<(), Error> {
        let mut folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        loop {
            for name in NAMES {
                let file = match folder {
                    "" => name.to_owned(),
                    folder => format!("{folder}/{name}"),
                };
                let Some(text) = self.now(&file)? else {
                    continue;
                };
                let resource = path[folder.len()..].trim_start_matches('/');
                let added = resources::add(&file, &text, resource);
                let added = added.map_err(|problem| Error::Content {
                    path: path.to_owned(),
                    problem,
                })?;
                self.contents.extend(added.map(|text| (file, text)));
                return Ok(());
            }
            if folder == self.folder || folder.is_empty() {
                return Ok(());
            }
            folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
        }
    }
}

/// A text that ends with a line, with the ends of lines of another one.
fn as_lines_are(model: &str, text: &str) -> String {
    let mut text = text.replace("\r\n", "\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match model.contains("\r\n") {
        true => text.replace('\n', "\r\n"),
        false => text,
    }
}

#[cfg(test)]
mod tests;
