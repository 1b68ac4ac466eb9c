//! Finding and reading files, within the bounds that a kustomization has.

mod source;

use std::rc::Rc;

use crate::charts::{self, ChartSettings, Charts};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::{self, FetchError, Repository};
use crate::fs::FileKind;
use crate::{LoadRestrictions, path};

pub(crate) use source::Source;
use source::Tree;

/// How many bases may stand one below the other: each takes some of the thread's stack.
const DEPTH: usize = 64;

/// How many folders one build may open. Bases that are included twice at every level double the work with each.
const FOLDERS: usize = 10_000;

/// Reads the files of one kustomization, from its folder.
pub(crate) struct Loader<'a> {
    source: &'a Source<'a>,
    tree: Rc<Tree<'a>>,
    folder: String,
    /// The repository, for the loader that opened it.
    repository: Option<Repository>,
    referrer: Option<Rc<Loader<'a>>>,
    depth: usize,
}

impl<'a> Loader<'a> {
    /// Opens the folder that is built.
    pub(crate) fn open(source: &'a Source<'a>, folder: &str) -> Result<Rc<Self>> {
        let tree = Rc::new(Tree::given(source));
        let folder = confirm_folder(&tree, "", folder)?;
        Ok(Rc::new(Self {
            source,
            tree,
            folder,
            repository: None,
            referrer: None,
            depth: 0,
        }))
    }

    /// Opens the folder of a base or component.
    pub(crate) fn open_base(self: &Rc<Self>, path: &str) -> Result<Rc<Self>> {
        if path.is_empty() {
            return Err(Error::invalid("new root cannot be empty"));
        }
        if let Some(repository) = Repository::parse(path) {
            return self.open_repository(repository);
        }
        if path.starts_with('/') {
            return Err(Error::new(
                ErrorKind::Forbidden,
                format!("new root '{path}' cannot be absolute"),
            ));
        }
        if has_ambiguous_part(path) {
            let clean = path::join_for_message("", path);
            return Err(Error::invalid(format!(
                "path {path:?} is ambiguous: resolves to {clean:?} after normalization, which is likely not the \
                 intended target; check for YAML indentation errors in your kustomization file"
            )));
        }
        if self.tree.is_fetched() && path::join(&self.folder, path).is_none() {
            return Err(Error::new(
                ErrorKind::Forbidden,
                format!(
                    "security; bases in kustomizations found in cloned git repos must be within the repo, but base \
                     '{path}' is outside '{}'",
                    self.tree.root()
                ),
            ));
        }
        let folder = confirm_folder(&self.tree, &self.folder, path)?;
        self.refuse_cycle(&folder)?;
        self.below(Rc::clone(&self.tree), folder, None)
    }

    fn open_repository(self: &Rc<Self>, repository: Repository) -> Result<Rc<Self>> {
        self.refuse_cycle_of_repositories(&repository)?;
        if repository.forces_protocol() {
            self.warn(fetch::FORCED_PROTOCOL);
        }
        self.source.note_fetched(repository.raw());
        let files = self.source.fetch.repository(&repository).map_err(of_fetch)?;
        let shown = fetch::without_credentials(&repository.clone_url());
        let tree = Rc::new(Tree::fetched(self.source, files, &shown));
        let path = repository.path().to_owned();
        let wanted = path::join("", &path).ok_or_else(|| {
            let message = format!("url path exits repo: {path}");
            Error::new(ErrorKind::Forbidden, message)
        })?;
        let (folder, kind) = tree.locate(&wanted)?;
        if kind == FileKind::File {
            let (shown, name) = (tree.shown(&wanted), path::base_name(&folder));
            let message = format!("'{shown}' refers to file '{name}'; expecting directory");
            return Err(Error::invalid(message));
        }
        self.below(tree, folder, Some(repository))
    }

    fn below(
        self: &Rc<Self>,
        tree: Rc<Tree<'a>>,
        folder: String,
        repository: Option<Repository>,
    ) -> Result<Rc<Self>> {
        self.count_folder(&folder)?;
        Ok(Rc::new(Self {
            source: self.source,
            tree,
            folder,
            repository,
            referrer: Some(Rc::clone(self)),
            depth: self.depth + 1,
        }))
    }

    /// Returns the folder, below the root of its tree.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Returns the folder as messages show it.
    pub(crate) fn shown_folder(&self) -> String {
        self.tree.shown(&self.folder)
    }

    /// Returns where a path of this kustomization leads, below the root of the tree.
    pub(crate) fn place(&self, path: &str) -> String {
        let place = path::join_for_message(&self.folder, path);
        if self.tree.is_fetched() {
            path::shown_below(self.tree.root(), &place)
        } else {
            place
        }
    }

    /// Notes something to tell the user, which is no failure.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        self.source.warn(warning.into());
    }

    /// Reads a file.
    pub(crate) fn load(&self, path: &str) -> Result<Vec<u8>> {
        if fetch::is_remote_file(path) {
            return self.fetch(path);
        }
        let place = path::join_for_message(&self.folder, path);
        if self.tree.restrictions() == LoadRestrictions::None {
            return self.load_from_anywhere(path, &place);
        }
        let Some(joined) = self.tree.join(&self.folder, path) else {
            return Err(self.tree.missing_outside(&place));
        };
        let shown = self.tree.shown(&joined);
        let (found, kind) = match self.tree.locate(&joined) {
            // A link that leads out of the tree leads out of the folder.
            Err(error) if error.kind() == ErrorKind::Forbidden => return Err(self.outside(&shown, error)),
            located => located?,
        };
        if kind == FileKind::Directory {
            return Err(Error::invalid(format!("'{shown}' must resolve to a file")).in_file(&found, 0));
        }
        if !path::is_in_or_below(path::parent(&found), &self.folder) {
            let error = Error::new(ErrorKind::Forbidden, "").in_file(&found, 0);
            return Err(self.outside(&shown, error));
        }
        self.tree.read(&found)
    }

    fn outside(&self, shown: &str, error: Error) -> Error {
        let folder = self.shown_folder();
        error.reworded(format!("security; file '{shown}' is not in or below '{folder}'"))
    }

    /// Without restrictions kustomize opens the file as it is, and fails in the words of Go's `os`.
    fn load_from_anywhere(&self, path: &str, place: &str) -> Result<Vec<u8>> {
        let shown = self.tree.shown(place);
        let missing =
            |why: &str| Error::new(ErrorKind::NotFound, format!("open {shown}: {why}")).in_file(place, 0);
        let Some(joined) = self.tree.join(&self.folder, path) else {
            return Err(missing("no such file or directory"));
        };
        match self.tree.locate(&joined) {
            Ok((found, FileKind::File)) => self.tree.read(&found),
            Ok((found, FileKind::Directory)) => {
                Err(Error::invalid(format!("read {shown}: is a directory")).in_file(&found, 0))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let through_file = error.to_string().ends_with("not a directory");
                Err(missing(if through_file {
                    "not a directory"
                } else {
                    "no such file or directory"
                }))
            }
            Err(error) => Err(error),
        }
    }

    fn fetch(&self, url: &str) -> Result<Vec<u8>> {
        self.source.note_fetched(url);
        self.source.fetch.file(url).map_err(|error| match error {
            FetchError::Status { .. } if Repository::parse(url).is_some() => {
                Error::invalid("URL is a git repository")
            }
            error => of_fetch(error),
        })
    }

    /// Reads a file that has to be text.
    pub(crate) fn load_text(&self, path: &str) -> Result<String> {
        let bytes = self.load(path)?;
        String::from_utf8(bytes).map_err(|_| {
            Error::invalid(format!("MalformedYAMLError: yaml: invalid UTF-8 in File: {path}"))
                .in_file(&self.place(path), 0)
        })
    }

    /// Reads a file of this folder if it is there, and may be read.
    pub(crate) fn load_if_there(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self.load(name) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Returns who renders Helm charts, if the caller wants it done.
    pub(crate) fn charts(&self) -> Option<&'a dyn Charts> {
        self.source.fetch.charts()
    }

    pub(crate) fn chart_settings(&self) -> &'a ChartSettings {
        &self.source.options.charts
    }

    /// Notes a repository of charts that is asked.
    pub(crate) fn note_chart(&self, repository: &str) {
        self.source.note_fetched(repository);
    }

    /// Returns a path of this kustomization as messages show it.
    pub(crate) fn shown_place(&self, path: &str) -> String {
        self.tree.shown(&path::join_for_message(&self.folder, path))
    }

    /// Reads the files of a chart's folder, which may lie anywhere in the tree; None if there is no such folder.
    pub(crate) fn chart_files(&self, folder: &str) -> Result<Option<charts::Files>> {
        let Some(place) = self.tree.join(&self.folder, folder) else {
            return Ok(None);
        };
        let files = self.tree.files_below(&place)?;
        Ok(files)
    }

    fn count_folder(&self, folder: &str) -> Result<()> {
        let folders = &self.source.folders;
        folders.set(folders.get() + 1);
        if self.depth >= DEPTH || folders.get() > FOLDERS {
            let message = format!("more than {DEPTH} bases below each other, or more than {FOLDERS} in all");
            return Err(Error::invalid(message).in_file(folder, 0));
        }
        Ok(())
    }

    fn refuse_cycle(&self, candidate: &str) -> Result<()> {
        self.refuse_cycle_in(&self.tree, candidate)
    }

    fn refuse_cycle_in(&self, tree: &Rc<Tree<'a>>, candidate: &str) -> Result<()> {
        if Rc::ptr_eq(tree, &self.tree) && path::is_in_or_below(&self.folder, candidate) {
            let (candidate, visited) = (tree.shown(candidate), self.shown_folder());
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("cycle detected: candidate root '{candidate}' contains visited root '{visited}'"),
            ));
        }
        self.referrer
            .as_ref()
            .map_or(Ok(()), |referrer| referrer.refuse_cycle_in(tree, candidate))
    }

    fn refuse_cycle_of_repositories(&self, added: &Repository) -> Result<()> {
        if let Some(known) = &self.repository
            && known.raw().starts_with(added.raw())
        {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "cycle detected: URI '{}' referenced by previous URI '{}'",
                    fetch::without_credentials(added.raw()),
                    fetch::without_credentials(known.raw())
                ),
            ));
        }
        self.referrer
            .as_ref()
            .map_or(Ok(()), |referrer| referrer.refuse_cycle_of_repositories(added))
    }
}

fn of_fetch(error: FetchError) -> Error {
    match error {
        FetchError::Status { code, reason } => {
            let message = format!("HTTP Error: status code {code} ({reason})");
            Error::new(ErrorKind::Fetch, message)
        }
        FetchError::Failed(reason) => Error::new(ErrorKind::Io, reason),
        FetchError::Refused(reason) => Error::unsupported(reason),
    }
}

fn confirm_folder(tree: &Tree<'_>, folder: &str, path: &str) -> Result<String> {
    let shown = tree.shown(&path::join_for_message(folder, path));
    let not_there = |error: Error| {
        error
            .context("not a valid directory")
            .context("must build at directory")
    };
    let Some(joined) = tree.join(folder, path) else {
        return Err(not_there(
            tree.missing_outside(&path::join_for_message(folder, path)),
        ));
    };
    let (found, kind) = tree.locate(&joined).map_err(not_there)?;
    if kind == FileKind::File {
        let message = format!("must build at directory: '{shown}': file is not directory");
        return Err(Error::invalid(message).in_file(&found, 0));
    }
    Ok(found)
}

/// Finds `a - ..` in a path: two entries of a list that wrong indentation made one.
fn has_ambiguous_part(path: &str) -> bool {
    path.split('/')
        .any(|part| !matches!(part, "" | "." | "..") && part.contains(".."))
}
