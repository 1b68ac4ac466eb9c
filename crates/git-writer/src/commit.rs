//! A commit over another one's files.

use git_client::commit::{Draft, Person};
use git_client::edit::{self, Changes};
use git_client::pack::Pack;
use git_client::{Object, ObjectId};
use jiff::Timestamp;

use crate::signing::{self, Key};

/// A commit that is not pushed yet.
pub struct Commit {
    /// Its hash.
    pub id: ObjectId,
    /// Its message.
    pub message: String,
    /// The commit, and the trees and blobs that its parent does not have.
    pub objects: Vec<Object>,
}

/// A commit to be made.
pub struct Edit {
    /// The commit whose files are changed.
    pub parent: ObjectId,
    /// The changes.
    pub contents: Changes,
    /// Author and committer.
    pub author: Person,
    /// The whole message, with its trailers.
    pub message: String,
    /// The key that signs it.
    pub key: Option<Key>,
}

/// Why there is no commit.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files cannot be changed.
    #[error(transparent)]
    Edit(#[from] edit::Error),
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] signing::Error),
}

impl Edit {
    /// Makes the commit over the parent's files. Signing takes a moment: it blocks.
    ///
    /// # Errors
    /// When the files cannot be changed, or the commit cannot be signed.
    pub fn write(self, pack: &Pack) -> Result<Commit, Error> {
        let edited = edit::edit(pack, self.contents)?;
        let draft = Draft {
            tree: edited.tree,
            parents: vec![self.parent],
            author: self.author,
            time: Timestamp::now().as_second(),
            message: self.message.clone(),
        };
        let signature = self.key.map(|key| key.sign(&draft.unsigned())).transpose()?;
        let made = draft.commit(signature.as_deref()).map_err(edit::Error::from)?;
        let id = made.id();
        let mut objects = edited.objects;
        objects.push(made);
        Ok(Commit {
            id,
            message: self.message,
            objects,
        })
    }
}
