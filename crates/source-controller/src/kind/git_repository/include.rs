//! `spec.include`: content of the artifacts of other GitRepositories, at a folder of this one.
//!
//! In: the spec, and the store with the current artifacts of the others. Out: [`Inclusion`]s, and the place of each in the
//! tree. Nothing is downloaded. As in Flux, paths never lead out of either artifact, and nothing that is there already
//! is replaced.

use api::meta::Artifact;
use api::source::GitRepository;
use artifact::digest::Digest;
use artifact::store::{self, Record, Store};
use git_client::pack::Node;
use git_client::sparse::Sparse;
use kube::ResourceExt as _;

use super::content::{Part, Source, stored_entry};
use crate::kind::Kind;
use crate::reconcile::reader::Reader;

/// Why something cannot be included.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The other GitRepository is not there.
    #[error("could not get resource for include '{name}': {problem}")]
    Find {
        /// As in the spec.
        name: String,
        /// Error of the API server.
        problem: String,
    },
    /// It is there, and nothing of it.
    #[error("no artifact available for include '{name}'")]
    NoArtifact {
        /// As in the spec.
        name: String,
    },
    /// Its content has no place.
    #[error("failed to copy '{name}' include from {from} to {to}: {problem}")]
    Copy {
        /// As in the spec.
        name: String,
        /// As in the spec.
        from: String,
        /// As in the spec, the default included.
        to: String,
        /// The obstacle.
        problem: &'static str,
    },
}

impl Error {
    /// Flux's condition and reason.
    pub(crate) fn condition(&self) -> (&'static str, &'static str) {
        use api::meta::condition_types::{INCLUDE_UNAVAILABLE, STORAGE_OPERATION_FAILED};
        match self {
            Self::Find { .. } => (INCLUDE_UNAVAILABLE, "NotFound"),
            Self::NoArtifact { .. } => (INCLUDE_UNAVAILABLE, "NoArtifact"),
            Self::Copy { .. } => (STORAGE_OPERATION_FAILED, "CopyFailure"),
        }
    }
}

/// A part of another artifact, and where it belongs.
#[derive(Clone)]
pub(super) struct Inclusion {
    pub(super) record: Record,
    name: String,
    from: String,
    to: String,
    store: Store,
}

#[cfg(test)]
impl Inclusion {
    pub(super) fn new(name: &str, from: &str, to: &str, record: Record, store: Store) -> Self {
        Self {
            record,
            name: name.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            store,
        }
    }
}

/// The sources that the spec includes.
pub(super) fn inputs(object: &GitRepository) -> Vec<store::ObjectKey> {
    let namespace = object.namespace().unwrap_or_default();
    let names = object.spec.include.iter().map(|include| &include.repository.name);
    names
        .map(|name| store::ObjectKey::new(GitRepository::NAME, &namespace, name))
        .collect()
}

/// Finds the current artifact of each.
pub(super) async fn read(object: &GitRepository, reader: &Reader) -> Result<Vec<Inclusion>, Error> {
    let mut inclusions = Vec::new();
    for (include, key) in object.spec.include.iter().zip(inputs(object)) {
        let name = include.repository.name.clone();
        let Some(record) = reader.store.current(&key.kind, &key.namespace, &key.name) else {
            // The one question is which of the two words fits.
            let found = reader.exists::<GitRepository>(&name).await;
            return Err(match found {
                Ok(()) => Error::NoArtifact { name },
                Err(problem) => Error::Find { name, problem },
            });
        };
        inclusions.push(Inclusion {
            record,
            name,
            from: include.from_path.clone().unwrap_or_default(),
            to: include.to_path().to_owned(),
            store: reader.store.clone(),
        });
    }
    Ok(inclusions)
}

/// Returns whether the artifact was made with other content than this.
pub(super) fn differ(inclusions: &[Inclusion], known: &[Artifact]) -> bool {
    let is_same = |(inclusion, known): (&Inclusion, &Artifact)| {
        inclusion.record.revision == known.revision && inclusion.record.digest.to_string() == known.digest
    };
    inclusions.len() != known.len() || !inclusions.iter().zip(known).all(is_same)
}

/// Finds the place of the content among the parts that are there. Blocks.
pub(super) fn place(
    inclusion: &Inclusion,
    parts: &[Part],
    sparse: &mut Sparse,
) -> Result<Part, crate::error::Error> {
    let failed = |problem| Error::Copy {
        name: inclusion.name.clone(),
        from: inclusion.from.clone(),
        to: inclusion.to.clone(),
        problem,
    };
    let (from, to) = (scoped(&inclusion.from), scoped(&inclusion.to));
    let store = inclusion.store.clone();
    let found = stored_entry(&store, inclusion.record.tree, &from)?;
    let (kind, digest) = found.ok_or_else(|| failed("no such file or directory"))?;
    let ancestors = to.match_indices('/').map(|(index, _)| &to[..index]);
    for ancestor in ancestors {
        if !matches!(
            existing(ancestor, parts, sparse)?,
            None | Some(Node::Directory | Node::Submodule)
        ) {
            return Err(failed("not a directory").into());
        }
    }
    let is_file = matches!(kind, Node::File { .. });
    match existing(&to, parts, sparse)? {
        Some(Node::Directory | Node::Submodule) => Err(failed("file exists").into()),
        Some(Node::File { .. } | Node::Symlink) if !is_file => Err(failed("not a directory").into()),
        _ => Ok(Part {
            prefix: to,
            source: source(kind, digest, store),
        }),
    }
}

fn source(kind: Node, digest: Digest, store: Store) -> Source {
    match kind {
        Node::File { executable } => Source::File {
            store,
            blob: digest,
            executable,
        },
        _ => Source::Folder(store, digest),
    }
}

/// Returns the entry at a path of the tree that the parts make together.
fn existing(path: &str, parts: &[Part], sparse: &mut Sparse) -> Result<Option<Node>, crate::error::Error> {
    if path.is_empty() {
        return Ok(Some(Node::Directory));
    }
    for (index, part) in parts.iter().enumerate().rev() {
        if !part.prefix.is_empty() && is_at_or_above(path, &part.prefix) {
            let is_file = part.prefix == path && matches!(part.source, Source::File { .. });
            let file = Node::File { executable: false };
            return Ok(Some(if is_file { file } else { Node::Directory }));
        }
        let Some(rest) = below(path, &part.prefix) else {
            continue;
        };
        let Some(node) = part.entry(rest)? else { continue };
        let (wanted, descend) = if index == 0 {
            sparse.look_at(path, node)
        } else {
            (true, true)
        };
        if wanted || (descend && node == Node::Directory) {
            return Ok(Some(node));
        }
    }
    Ok(None)
}

fn is_at_or_above(path: &str, prefix: &str) -> bool {
    prefix == path || below(prefix, path).is_some()
}

fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// The path within its root: `..` leads no higher than that.
fn scoped(path: &str) -> String {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_do_not_lead_out_of_the_artifact() {
        let cases = [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("../../etc", "etc"),
            ("/a/../../b", "b"),
            ("..", ""),
            ("", ""),
        ];
        for (path, expected) in cases {
            assert_eq!(scoped(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_below_another_only_at_whole_names() {
        assert_eq!(below("a/b", "a"), Some("b"));
        assert_eq!(below("ab", "a"), None);
        assert_eq!(below("a", "a"), None);
        assert!(is_at_or_above("a", "a/b") && is_at_or_above("a", "a") && !is_at_or_above("a/b", "a"));
    }
}
