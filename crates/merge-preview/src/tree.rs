//! The files of a commit, by the names of their contents: nothing is read before it is asked for.

use std::collections::{BTreeMap, BTreeSet};

use git_client::ObjectId;
use git_client::pack::{self, Node, Pack};

/// More files are not compared: their names alone would take much memory.
const MAX_FILES: usize = 200_000;

/// Why a commit cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its content cannot be read.
    #[error(transparent)]
    Read(#[from] pack::Error),
    /// It has too many files.
    #[error("the repository has more than {MAX_FILES} files: more are not compared")]
    TooMany,
}

/// The files of a commit. Links and submodules are no files: artifacts do not have them either.
pub struct Tree {
    pub(crate) pack: Pack,
    pub(crate) files: BTreeMap<String, ObjectId>,
    /// Those of them that may be executed.
    pub(crate) programs: BTreeSet<String>,
}

impl Tree {
    /// Lists the files of a commit. Blocks.
    ///
    /// # Errors
    /// When its folders cannot be read, or it has too many files.
    pub fn read(pack: Pack) -> Result<Self, Error> {
        let (mut files, mut programs) = (BTreeMap::new(), BTreeSet::new());
        pack.walk(|entry| {
            if let Node::File { executable } = entry.kind {
                if files.len() == MAX_FILES {
                    return Err(Error::TooMany);
                }
                files.insert(entry.path.to_owned(), entry.id);
                if executable {
                    programs.insert(entry.path.to_owned());
                }
            }
            Ok(true)
        })?;
        Ok(Self {
            pack,
            files,
            programs,
        })
    }
}
