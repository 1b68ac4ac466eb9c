//! Copy operations: which files of which source go where.
//!
//! In: the operations of one artifact, and its sources. Out: a [`Stage`]. Content stays in the store: a copy is a digest
//! at another path. Semantics are those of source-watcher's builder (`internal/builder`), which are those of `cp` with
//! two glob languages: Go's fs.Glob for copies, where `**` means `*`, and doublestar for Extract and `exclude`.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::rc::Rc;

use api::source_extensions::{CopyOperation, CopyStrategy};
use artifact::Digest;
use artifact::archive::{self, EntryContent, Limits};
use artifact::ignore::glob::Glob;
use artifact::store::{self, Ingest, Store};
use artifact::tree::{Directory, Entry, EntryKind};

use super::doublestar::{self, Budget, Failure};
use super::merge;
use super::source::{Found, Source, joined};
use super::stage::{self, File, Stage, clean};

/// Longest pattern, as the CRD has it for `from`; `exclude` has no bound there.
const MAX_PATTERN: usize = 1024;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to apply copy operation from '{from}' to '{to}'")]
    Apply {
        from: String,
        to: String,
        #[source]
        source: Box<Error>,
    },
    #[error("invalid copy source '{from}': {problem}")]
    From { from: String, problem: &'static str },
    #[error("invalid copy destination '{0}': destination must start with '@artifact/'")]
    To(String),
    #[error("source alias '{0}' not found")]
    Alias(String),
    #[error("invalid exclude pattern '{0}'")]
    Exclude(String),
    #[error("invalid glob pattern '{0}': syntax error in pattern")]
    Pattern(String),
    #[error("no files match pattern '{pattern}' in source '{alias}'")]
    NoMatch { pattern: String, alias: String },
    #[error("all files matching pattern '{pattern}' in source '{alias}' were excluded")]
    AllExcluded { pattern: String, alias: String },
    #[error("source '{0}' does not exist")]
    Missing(String),
    #[error("failed to stat source '{path}': {problem}")]
    Stat { path: String, problem: &'static str },
    #[error("extract strategy is not supported for directories, got '{0}'")]
    ExtractFolder(String),
    #[error("extract strategy requires tarball file (.tar.gz or .tgz), got '{0}'")]
    NoTarball(String),
    #[error("failed to extract tarball '{path}'")]
    Extract {
        path: String,
        #[source]
        source: archive::ReadError,
    },
    #[error("failed to copy file '{from}' to '{to}'")]
    Copy {
        from: String,
        to: String,
        #[source]
        source: stage::Error,
    },
    #[error("failed to merge '{from}' into '{to}'")]
    Merge {
        from: String,
        to: String,
        #[source]
        source: merge::Error,
    },
    #[error("failed to read '{path}' of the store")]
    Read {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("the patterns need more work than one generator may cause; make them simpler, or fewer")]
    Exhausted,
    #[error(transparent)]
    Store(#[from] store::Error),
}

type Result<T> = std::result::Result<T, Error>;

/// The sources of a generator by alias, and what is spent on them.
pub(super) struct Copier<'a> {
    pub(super) store: &'a Store,
    pub(super) sources: &'a HashMap<String, Source>,
    pub(super) budget: &'a Budget,
}

impl Copier<'_> {
    /// Carries out the operations one after the other. New content is held by `ingest`.
    pub(super) fn apply(&self, operations: &[CopyOperation], ingest: &mut Ingest) -> Result<Stage> {
        let mut stage = Stage::default();
        for operation in operations {
            self.operation(operation, &mut stage, ingest)
                .map_err(|error| match error {
                    Error::Exhausted => error,
                    error => Error::Apply {
                        from: operation.from.clone(),
                        to: operation.to.clone(),
                        source: Box::new(error),
                    },
                })?;
        }
        Ok(stage)
    }

    fn operation(&self, operation: &CopyOperation, stage: &mut Stage, ingest: &mut Ingest) -> Result<()> {
        let (alias, pattern) = parse_from(&operation.from)?;
        let to = operation.to.strip_prefix("@artifact/");
        let to = to.ok_or_else(|| Error::To(operation.to.clone()))?;
        let source = self.sources.get(alias);
        let source = source.ok_or_else(|| Error::Alias(alias.to_owned()))?;
        let excludes = Excludes::parse(&operation.exclude, self.budget)?;
        let mut job = Job {
            copier: self,
            source,
            excludes,
            strategy: operation.strategy(),
            stage,
            ingest,
        };
        if pattern.contains(['*', '?', '[', ']']) {
            job.glob(alias, pattern, to)
        } else {
            job.single(pattern, to, operation.to.ends_with('/'))
        }
    }
}

/// One operation under way.
struct Job<'a, 'b> {
    copier: &'a Copier<'b>,
    source: &'a Source,
    excludes: Excludes<'a>,
    strategy: CopyStrategy,
    stage: &'a mut Stage,
    ingest: &'a mut Ingest,
}

impl Job<'_, '_> {
    /// One file or folder, named without a pattern.
    fn single(&mut self, from: &str, to: &str, into_folder: bool) -> Result<()> {
        let stat = |problem| Error::Stat {
            path: from.to_owned(),
            problem,
        };
        let from = clean(from).map_err(|_| stat("path escapes from parent"))?;
        let name = from.rsplit('/').next().unwrap_or(&from).to_owned();
        match self.source.look_up(&from)? {
            Found::Nothing { below_a_file: false } => Err(Error::Missing(from)),
            Found::Nothing { below_a_file: true } => Err(Error::Stat {
                path: from,
                problem: "not a directory",
            }),
            Found::Folder(_) if self.strategy == CopyStrategy::Extract => Err(Error::ExtractFolder(from)),
            Found::Folder(folder) => {
                let to = destination(&from, to, &name)?;
                self.folder(&from, &folder, &to, &from)
            }
            Found::File(_) if self.excludes.cover(&from, ".")? => Ok(()),
            Found::File(entry) if self.strategy == CopyStrategy::Extract => {
                if !is_tarball(&from) {
                    return Err(Error::NoTarball(from));
                }
                self.extract(&from, &entry, to)
            }
            Found::File(entry) => {
                let path = destination(&from, to, "")?;
                let inside = into_folder || self.stage.is_folder(&path);
                let path = if inside {
                    destination(&from, to, &name)?
                } else {
                    path
                };
                self.file(&from, &entry, &path)
            }
        }
    }

    /// All that matches a pattern.
    fn glob(&mut self, alias: &str, pattern: &str, to: &str) -> Result<()> {
        let matches = match self.strategy {
            CopyStrategy::Extract => self.double_glob(pattern)?,
            CopyStrategy::Overwrite | CopyStrategy::Merge => self.go_glob(pattern)?,
        };
        let (pattern, alias) = (pattern.to_owned(), alias.to_owned());
        if matches.is_empty() {
            return Err(Error::NoMatch { pattern, alias });
        }
        let base = literal_prefix(&pattern);
        let mut kept = Vec::with_capacity(matches.len());
        for (path, entry) in matches {
            if !self.excludes.cover(&path, &base)? {
                kept.push((path, entry));
            }
        }
        if kept.is_empty() {
            return Err(Error::AllExcluded { pattern, alias });
        }
        for (path, entry) in kept {
            if self.strategy == CopyStrategy::Extract {
                if !entry.kind.is_directory() && is_tarball(&path) {
                    self.extract(&path, &entry, to)?;
                }
                continue;
            }
            let prefix = pattern.strip_suffix("/**");
            let relative = prefix.and_then(|prefix| path.strip_prefix(prefix)?.strip_prefix('/'));
            let target = destination(&path, to, relative.unwrap_or(&path))?;
            if entry.kind.is_directory() {
                let folder = self.source.directory(&entry.digest)?;
                self.folder(&path, &folder, &target, &base)?;
            } else {
                self.file(&path, &entry, &target)?;
            }
        }
        Ok(())
    }

    /// As Go's fs.Glob: each part of the pattern matches one name.
    fn go_glob(&self, pattern: &str) -> Result<Vec<(String, Entry)>> {
        let invalid = || Error::Pattern(pattern.to_owned());
        Glob::parse(pattern).ok_or_else(invalid)?;
        if !has_meta(pattern) {
            return self.entry_at(pattern);
        }
        let parts: Vec<&str> = pattern.split('/').collect();
        let (last, above) = parts.split_last().expect("splitting gives at least one part");
        let literal = above.iter().take_while(|part| !has_meta(part)).count();
        let start = above[..literal].join("/");
        let mut folders = match (start.as_str(), literal) {
            ("", 0) => self.folders_at(".")?,
            (start, _) if is_clean(start) => self.folders_at(start)?,
            _ => Vec::new(),
        };
        for part in &above[literal..] {
            let mut below = Vec::new();
            for (path, entry) in self.names_in(&folders, part, pattern)? {
                if entry.kind.is_directory() {
                    below.push((path, self.source.directory(&entry.digest)?));
                }
            }
            folders = below;
        }
        self.names_in(&folders, last, pattern)
    }

    fn folders_at(&self, path: &str) -> Result<Vec<(String, Rc<Directory>)>> {
        Ok(match self.source.look_up(path)? {
            Found::Folder(folder) => vec![(path.to_owned(), folder)],
            Found::File(_) | Found::Nothing { .. } => Vec::new(),
        })
    }

    /// The file or folder that is named without a pattern.
    fn entry_at(&self, path: &str) -> Result<Vec<(String, Entry)>> {
        if !is_clean(path) {
            return Ok(Vec::new());
        }
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folders = self.folders_at(above)?;
        let entry = folders
            .first()
            .and_then(|(_, folder)| folder.entry(name).cloned());
        Ok(entry.map(|entry| (path.to_owned(), entry)).into_iter().collect())
    }

    fn names_in(
        &self,
        folders: &[(String, Rc<Directory>)],
        part: &str,
        pattern: &str,
    ) -> Result<Vec<(String, Entry)>> {
        let glob = Glob::parse(part).ok_or_else(|| Error::Pattern(pattern.to_owned()))?;
        let mut found = Vec::new();
        for (path, folder) in folders {
            for entry in folder.entries() {
                self.spend((part.len() + entry.name.len()) as u64)?;
                if glob.matches(&entry.name) {
                    found.push((joined(path, &entry.name), entry.clone()));
                }
            }
        }
        Ok(found)
    }

    /// As doublestar's Glob.
    fn double_glob(&self, pattern: &str) -> Result<Vec<(String, Entry)>> {
        if !doublestar::is_valid(pattern) || pattern.len() > MAX_PATTERN {
            return Err(Error::Pattern(pattern.to_owned()));
        }
        let mut found = Vec::new();
        let Found::Folder(root) = self.source.look_up(".")? else {
            return Ok(found);
        };
        self.source.walk(&root, "", &mut |path, entry| {
            let matched = doublestar::matches(pattern, path, false, self.copier.budget);
            if outcome(matched)? {
                found.push((path.to_owned(), entry.clone()));
            }
            Ok::<_, Error>(true)
        })?;
        Ok(found)
    }

    /// A folder with all that is in it and not excluded.
    fn folder(&mut self, from: &str, folder: &Directory, to: &str, base: &str) -> Result<()> {
        let Self {
            copier,
            source,
            excludes,
            stage,
            ..
        } = self;
        let failed = |path: &str, to: &str, source| Error::Copy {
            from: path.to_owned(),
            to: to.to_owned(),
            source,
        };
        stage.make_folder(to).map_err(|error| failed(from, to, error))?;
        source.walk(folder, from, &mut |path, entry| {
            outcome(copier.budget.spend(path.len() as u64).map(|()| true))?;
            if excludes.cover(path, base)? {
                return Ok(false);
            }
            let relative = if from == "." {
                path
            } else {
                &path[from.len() + 1..]
            };
            let target = joined(to, relative);
            let made = if entry.kind.is_directory() {
                stage.make_folder(&target)
            } else {
                stage.put(&target, file_of(entry))
            };
            made.map_err(|error| failed(path, &target, error))?;
            Ok::<_, Error>(true)
        })
    }

    fn file(&mut self, from: &str, entry: &Entry, to: &str) -> Result<()> {
        let mut file = file_of(entry);
        if self.strategy == CopyStrategy::Merge
            && let Some(there) = self.stage.file(to)
        {
            file = self.merged(from, file, to, there)?;
        }
        self.stage.put(to, file).map_err(|source| Error::Copy {
            from: from.to_owned(),
            to: to.to_owned(),
            source,
        })
    }

    fn merged(&mut self, from: &str, file: File, to: &str, there: File) -> Result<File> {
        let failed = |source| Error::Merge {
            from: from.to_owned(),
            to: to.to_owned(),
            source,
        };
        if file.size.max(there.size) > merge::MAX_BYTES {
            return Err(failed(merge::Error::TooLarge));
        }
        self.spend((file.size + there.size) * 16)?;
        let (base, overlay) = (self.read(to, &there.digest)?, self.read(from, &file.digest)?);
        let text = merge::merge(&base, &overlay).map_err(failed)?;
        let (digest, size) = self.ingest.hold_file(to, text.as_bytes())?;
        Ok(File {
            executable: there.executable,
            digest,
            size,
        })
    }

    fn read(&self, path: &str, digest: &Digest) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let content = self.copier.store.read_blob(digest, 0)?;
        content
            .take(merge::MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::Read {
                path: path.to_owned(),
                source,
            })?;
        Ok(bytes)
    }

    /// Extracts the contents of an archive, below a folder.
    fn extract(&mut self, from: &str, entry: &Entry, to: &str) -> Result<()> {
        let to = destination(from, to, "")?;
        let failed = |source| Error::Copy {
            from: from.to_owned(),
            to: to.clone(),
            source,
        };
        self.stage.make_folder(&to).map_err(failed)?;
        self.spend(entry.size)?;
        let content = self.copier.store.read_blob(&entry.digest, 0)?;
        let (stage, ingest, budget) = (&mut *self.stage, &mut *self.ingest, self.copier.budget);
        archive::read(content, &Limits::default(), |entry| {
            let path = joined(&to, entry.path);
            match entry.content {
                EntryContent::Directory => stage.make_folder(&path)?,
                EntryContent::File {
                    executable,
                    reader,
                    size,
                } => {
                    outcome(budget.spend(size).map(|()| true))?;
                    let (digest, size) = ingest.hold_file(&path, reader)?;
                    stage.put(
                        &path,
                        File {
                            executable,
                            digest,
                            size,
                        },
                    )?;
                }
            }
            Ok(())
        })
        .map(drop)
        .map_err(|source| Error::Extract {
            path: from.to_owned(),
            source,
        })
    }

    fn spend(&self, steps: u64) -> Result<()> {
        outcome(self.copier.budget.spend(steps).map(|()| true)).map(drop)
    }
}

/// The patterns of what an operation leaves out.
struct Excludes<'a> {
    patterns: &'a [String],
    budget: &'a Budget,
}

impl<'a> Excludes<'a> {
    fn parse(patterns: &'a [String], budget: &'a Budget) -> Result<Self> {
        for pattern in patterns {
            match doublestar::matches(pattern, ".", true, budget) {
                _ if pattern.len() > MAX_PATTERN => return Err(Error::Exclude(pattern.clone())),
                Err(Failure::Malformed) => return Err(Error::Exclude(pattern.clone())),
                Err(Failure::Exhausted) => return Err(Error::Exhausted),
                Ok(_) => {}
            }
        }
        Ok(Self { patterns, budget })
    }

    /// Returns whether the path is left out, as seen from the source's root or from the folder that the operation begins at.
    fn cover(&self, path: &str, base: &str) -> Result<bool> {
        if self.any(path)? {
            return Ok(true);
        }
        match path.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')) {
            Some(relative) if base != "." => self.any(relative),
            _ => Ok(false),
        }
    }

    fn any(&self, path: &str) -> Result<bool> {
        let name = path.rsplit('/').next().unwrap_or(path);
        for pattern in self.patterns {
            let of_path = outcome(doublestar::matches(pattern, path, false, self.budget))?;
            if of_path
                || (!pattern.contains('/')
                    && outcome(doublestar::matches(pattern, name, false, self.budget))?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A malformed pattern matches nothing, once it was looked at.
fn outcome(matched: std::result::Result<bool, Failure>) -> Result<bool> {
    match matched {
        Ok(matched) => Ok(matched),
        Err(Failure::Malformed) => Ok(false),
        Err(Failure::Exhausted) => Err(Error::Exhausted),
    }
}

fn parse_from(from: &str) -> Result<(&str, &str)> {
    let invalid = |problem| Error::From {
        from: from.to_owned(),
        problem,
    };
    let rest = from
        .strip_prefix('@')
        .ok_or_else(|| invalid("source must start with '@'"))?;
    rest.split_once('/')
        .ok_or_else(|| invalid("source format must be '@alias/pattern'"))
}

/// A path in the artifact: what `to` says, and a name in it.
fn destination(from: &str, to: &str, name: &str) -> Result<String> {
    let path = if to.is_empty() {
        name.to_owned()
    } else {
        format!("{to}/{name}")
    };
    clean(&path).map_err(|source| Error::Copy {
        from: from.to_owned(),
        to: to.to_owned(),
        source,
    })
}

/// The folders of a pattern before its first part with glob characters.
fn literal_prefix(pattern: &str) -> String {
    let parts = pattern.split('/').filter(|part| !matches!(*part, "" | "."));
    let literal: Vec<&str> = parts
        .take_while(|part| !part.contains(['*', '?', '[', ']']))
        .collect();
    if literal.is_empty() {
        ".".to_owned()
    } else {
        literal.join("/")
    }
}

fn has_meta(part: &str) -> bool {
    part.contains(['*', '?', '[', '\\'])
}

/// Returns whether Go's file systems take the path at all.
fn is_clean(path: &str) -> bool {
    path == "." || path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

fn is_tarball(path: &str) -> bool {
    let path = path.to_lowercase();
    path.ends_with(".tar.gz") || path.ends_with(".tgz")
}

fn file_of(entry: &Entry) -> File {
    File {
        executable: entry.kind == EntryKind::Executable,
        digest: entry.digest,
        size: entry.size,
    }
}

#[cfg(test)]
mod tests;
