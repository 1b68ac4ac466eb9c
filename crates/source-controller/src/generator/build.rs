//! Builds the artifacts of one generator, on a blocking thread: sources in, records of the store out.
//!
//! An artifact whose files, revision and metadata are those of the current one is not stored again.

use std::collections::{BTreeMap, HashMap};

use api::meta::ORIGIN_REVISION_KEY;
use api::source_extensions::{ArtifactGeneratorSpec, OutputArtifact};
use artifact::Digest;
use artifact::ignore::Matcher;
use artifact::store::{self, Ingest, Record, RecordMeta, Store};
use artifact::tree;

use super::copy::{self, Copier};
use super::doublestar::Budget;
use super::filename::{Adler, checksum};
use super::observe::Input;
use super::pattern::{self, Wanted, expand};
use super::source::Source;
use super::stage::{File, Stage};

/// Kind of what is made.
pub(super) const KIND: &str = "ExternalArtifact";
/// Steps of patterns and bytes of archives for all artifacts of a generator: seconds, not minutes.
const BUDGET: u64 = 2_000_000_000;

/// Why an artifact could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to expand path pattern")]
    Expand(#[from] pattern::Error),
    #[error("{name} build failed: failed to apply copy operations")]
    Copy {
        name: String,
        #[source]
        source: copy::Error,
    },
    #[error("{name} build failed: failed to create artifact")]
    Store {
        name: String,
        #[source]
        source: store::Error,
    },
    #[error(
        "{name} build failed: the ExternalArtifact of this name belongs to {owner}; delete it, or use another name"
    )]
    Foreign { name: String, owner: String },
    #[error("{name} build failed: failed to hash staging dir")]
    Hash {
        name: String,
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Returns whether the same sources would give the same failure.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Expand(error) => error.is_terminal(),
            Self::Copy { source, .. } => !is_of_the_store(source),
            Self::Store { source, .. } => matches!(source, store::Error::AddFile(_)),
            Self::Hash { .. } | Self::Foreign { .. } => false,
        }
    }
}

fn is_of_the_store(error: &copy::Error) -> bool {
    match error {
        copy::Error::Apply { source, .. } => is_of_the_store(source),
        copy::Error::Store(error) => !matches!(error, store::Error::AddFile(_)),
        copy::Error::Read { .. } => true,
        _ => false,
    }
}

/// An artifact that is in the store now.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) record: Record,
}

/// Builds all artifacts that a spec asks for, in its order.
pub(super) fn build(
    namespace: &str,
    spec: &ArtifactGeneratorSpec,
    foreign: &BTreeMap<String, String>,
    inputs: &BTreeMap<String, Input>,
    sources: &HashMap<String, Source>,
    store: &Store,
) -> Result<Vec<Built>, Error> {
    let budget = Budget::new(BUDGET);
    let mut builder = Builder {
        namespace,
        foreign,
        inputs,
        store,
        checksums: HashMap::new(),
        copier: Copier {
            store,
            sources,
            budget: &budget,
        },
    };
    expand(spec, sources)?
        .into_iter()
        .map(|wanted| builder.build(wanted))
        .collect()
}

struct Builder<'a> {
    namespace: &'a str,
    /// Names that others have, with who has them: their artifacts are not touched.
    foreign: &'a BTreeMap<String, String>,
    inputs: &'a BTreeMap<String, Input>,
    store: &'a Store,
    /// Of files, by digest: artifacts of one generator share many.
    checksums: HashMap<Digest, u32>,
    copier: Copier<'a>,
}

impl Builder<'_> {
    fn build(&mut self, wanted: Wanted) -> Result<Built, Error> {
        let Wanted { output, labels } = wanted;
        let name = || output.name.clone();
        if let Some(owner) = self.foreign.get(&output.name) {
            let owner = owner.clone();
            return Err(Error::Foreign { name: name(), owner });
        }
        let mut ingest = self.store.ingest();
        let stage = self
            .copier
            .apply(&output.copy, &mut ingest)
            .map_err(|source| Error::Copy { name: name(), source })?;
        let entries = kept(&stage);
        let in_store = |source| Error::Store { name: name(), source };
        let filename = self.filename(&output.name, &stage)?;
        let record = match self.current(&output, &entries, &filename) {
            Some(record) => record,
            None => self
                .store(&output, &entries, filename, ingest)
                .map_err(in_store)?,
        };
        Ok(Built { labels, record })
    }

    /// The current artifact, if it is what would be stored.
    fn current(&self, output: &OutputArtifact, entries: &[Staged], filename: &str) -> Option<Record> {
        let current = self.store.current(KIND, self.namespace, &output.name)?;
        let mut tree = tree::Builder::new();
        for (path, file) in entries {
            match file {
                Some(file) => tree
                    .file(path, file.executable, file.digest, file.size)
                    .map(drop)
                    .ok()?,
                None => tree.folder(path).ok()?,
            }
        }
        let same = current.tree == tree.finish().0.root()
            && current.path.ends_with(&format!("/{filename}"))
            && current.revision == self.revision(output, &current.digest)
            && current.metadata == self.metadata(output);
        same.then_some(current)
    }

    fn store(
        &self,
        output: &OutputArtifact,
        entries: &[Staged],
        filename: String,
        mut ingest: Ingest,
    ) -> store::Result<Record> {
        for (path, file) in entries {
            match file {
                Some(file) => ingest.add_stored(path, file.executable, file.digest, file.size)?,
                None => ingest.add_directory(path)?,
            }
        }
        let meta = RecordMeta {
            kind: KIND.to_owned(),
            namespace: self.namespace.to_owned(),
            name: output.name.clone(),
            revision: String::new(),
            filename,
            metadata: self.metadata(output),
        };
        ingest.finish_named(meta, |digest| self.revision(output, digest))
    }

    /// The revision of a source, or one that says what the content is.
    fn revision(&self, output: &OutputArtifact, digest: &Digest) -> String {
        match output.revision.as_ref().and_then(|alias| self.input(alias)) {
            Some(input) => input.revision.clone(),
            None => format!("latest@{digest}"),
        }
    }

    fn metadata(&self, output: &OutputArtifact) -> BTreeMap<String, String> {
        let input = output
            .origin_revision
            .as_ref()
            .and_then(|alias| self.input(alias));
        input
            .map(|input| {
                let origin = input.origin_revision.as_ref().unwrap_or(&input.revision);
                (ORIGIN_REVISION_KEY.to_owned(), origin.clone())
            })
            .into_iter()
            .collect()
    }

    fn input(&self, alias: &str) -> Option<&Input> {
        self.inputs.get(alias.strip_prefix('@').unwrap_or(alias))
    }

    /// As source-watcher names the archive: by what was copied, before anything is left out of it.
    fn filename(&mut self, name: &str, stage: &Stage) -> Result<String, Error> {
        let mut files = Vec::new();
        for (path, file) in stage.entries() {
            if let Some(file) = file {
                let sum = self.checksum(&file).map_err(|error| match error {
                    Sum::Find(source) => Error::Store {
                        name: name.to_owned(),
                        source,
                    },
                    Sum::Read(source) => Error::Hash {
                        name: name.to_owned(),
                        source,
                    },
                })?;
                files.push((path, sum));
            }
        }
        Ok(format!("{}.tar.gz", checksum(name, &files)))
    }

    fn checksum(&mut self, file: &File) -> Result<u32, Sum> {
        if let Some(known) = self.checksums.get(&file.digest) {
            return Ok(*known);
        }
        let content = self.store.read_blob(&file.digest, 0).map_err(Sum::Find)?;
        let sum = Adler::from_reader(content).map_err(Sum::Read)?;
        self.checksums.insert(file.digest, sum);
        Ok(sum)
    }
}

enum Sum {
    Find(store::Error),
    Read(std::io::Error),
}

type Staged = (String, Option<File>);

/// Returns the files for the archive: all but those that Flux leaves out of every archive by default.
fn kept(stage: &Stage) -> Vec<Staged> {
    let matcher = Matcher::new(None);
    let mut entries = stage.entries();
    entries.retain(|(path, file)| !matcher.is_ignored(path, file.is_none()));
    entries
}

#[cfg(test)]
mod tests;
