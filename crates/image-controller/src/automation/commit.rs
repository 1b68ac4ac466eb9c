//! The commit that is made, and its push.

use std::collections::BTreeMap;

use api::image::{GitSpec, ImageUpdateAutomation};
use change_policy::mark::Commit as Mark;
use git_client::commit::Person;
use git_client::edit::Changes;
use git_client::pack::Pack;
use git_client::push::{self, Move};
use git_client::{Object, ObjectId};
use git_writer::commit::Commit;
use git_writer::signing::Key;

use super::error::Error;
use super::kept::Kept;
use super::target::Target;
use super::{message, update};
use crate::context::Context;

/// What became of a checkout.
pub(super) struct Made {
    pub(super) base: ObjectId,
    /// Of the checkout.
    pub(super) revision: String,
    /// None if nothing changes.
    pub(super) commit: Option<Commit>,
    pub(super) notes: Vec<String>,
    /// What became of the markers of each policy.
    pub(super) tallies: BTreeMap<String, update::Tally>,
}

/// A commit to be made.
pub(super) struct Edit {
    pub(super) parent: ObjectId,
    pub(super) contents: Changes,
    pub(super) data: message::Data,
    /// Trailer of the message.
    pub(super) mark: Option<Mark>,
    pub(super) git: GitSpec,
    pub(super) key: Option<Key>,
}

impl Edit {
    /// Makes the commit over the parent's files.
    pub(super) fn write(self, pack: &Pack) -> Result<Commit, Error> {
        let author = self.git.commit.author;
        let message = message::render(self.git.commit.message_template.as_deref(), &self.data)?;
        let message = match &self.mark {
            Some(mark) => mark.signed_off(&message),
            None => message,
        };
        let edit = git_writer::commit::Edit {
            parent: self.parent,
            contents: self.contents,
            author: Person {
                name: author.name.unwrap_or_default(),
                email: author.email,
            },
            message,
            key: self.key,
        };
        edit.write(pack).map_err(|error| match error {
            git_writer::commit::Error::Edit(error) => Error::Edit(error),
            git_writer::commit::Error::Sign(error) => Error::Signing(error),
        })
    }
}

/// Works on a checkout on a blocking thread, and gives it back.
pub(super) async fn blocking<T: Send + 'static>(
    mut kept: Kept,
    work: impl FnOnce(&mut Kept) -> Result<T, Error> + Send + 'static,
) -> Result<(T, Kept), Error> {
    let working = tokio::task::spawn_blocking(move || Ok((work(&mut kept)?, kept)));
    working.await.map_err(|_| Error::Abandoned)?
}

/// Edits the files and makes the commit.
pub(super) async fn make(
    object: ImageUpdateAutomation,
    kept: Kept,
    values: update::Values,
    key: Option<Key>,
) -> Result<(Made, Kept), Error> {
    blocking(kept, move |kept| {
        let Kept { checkout, plain } = kept;
        let updated = update::update(&checkout.pack, &values, plain)?;
        let (notes, tallies) = (updated.all_notes(), updated.tallies);
        let base = checkout.resolved.commit;
        let data = message::Data::new(&object, None, updated.files);
        let commit = match object.spec.git {
            Some(git) if !updated.contents.is_empty() => {
                let edit = Edit {
                    parent: base,
                    contents: updated.contents,
                    data,
                    mark: None,
                    git,
                    key,
                };
                Some(edit.write(&checkout.pack)?)
            }
            _ => None,
        };
        Ok(Made {
            base,
            revision: checkout.resolved.revision.clone(),
            commit,
            notes,
            tallies,
        })
    })
    .await
}

pub(super) async fn push_commit(
    target: &Target,
    commit: &Commit,
    from: Option<ObjectId>,
) -> Result<(), push::Error> {
    let step = Move {
        reference: format!("refs/heads/{}", target.branch),
        from,
        to: Some(commit.id),
    };
    push(target, step, commit.objects.clone()).await
}

/// Pushes the commit to the reference of the refspec, if that follows what is there.
pub(super) async fn second_push(target: &Target, commit: &Commit, base: ObjectId) -> Result<(), Error> {
    let Some(reference) = &target.second else {
        return Ok(());
    };
    let step = |from| Move {
        reference: reference.clone(),
        from,
        to: Some(commit.id),
    };
    let objects = || commit.objects.clone();
    match push(target, step(None), objects()).await {
        Err(push::Error::Moved { found, .. }) if found.id() == Some(base) => {
            let pushed = push(target, step(Some(base)), objects()).await;
            pushed.map_err(Error::Push)
        }
        Err(push::Error::Moved { found, .. }) if found.id() == Some(commit.id) => Ok(()),
        pushed => pushed.map_err(Error::Push),
    }
}

/// Brings the reference of the refspec to the branch's commit, if that is ours: the push before did not get that far.
pub(super) async fn catch_up(target: &Target, kept: &Kept, git: Option<&GitSpec>) -> Result<(), Error> {
    let (Some(reference), Some(git)) = (&target.second, git) else {
        return Ok(());
    };
    let head = kept.checkout.resolved.commit;
    let commit = kept.checkout.pack.commit().map_err(update::Error::from)?;
    if !is_by(&commit, &git.commit.author.email) {
        return Ok(());
    }
    let step = |from| Move {
        reference: reference.clone(),
        from,
        to: Some(head),
    };
    match push(target, step(None), Vec::new()).await {
        Err(push::Error::Moved { found, .. }) => match found.id() {
            Some(found) if parents(&commit).any(|parent| parent == found) => {
                let pushed = push(target, step(Some(found)), Vec::new()).await;
                pushed.map_err(Error::Push)
            }
            // It is there, or others have gone on: nothing is forced.
            _ => Ok(()),
        },
        pushed => pushed.map_err(Error::Push),
    }
}

/// The parents that a commit names.
fn parents(commit: &[u8]) -> impl Iterator<Item = ObjectId> {
    header(commit).filter_map(|line| ObjectId::from_hex(line.strip_prefix(b"parent ")?).ok())
}

/// Returns whether the author of a commit has this address.
fn is_by(commit: &[u8], email: &str) -> bool {
    let address = format!("<{email}>");
    let mut authors = header(commit).filter(|line| line.starts_with(b"author "));
    authors.any(|line| line.windows(address.len()).any(|part| part == address.as_bytes()))
}

fn header(commit: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = commit.split(|byte| *byte == b'\n');
    lines.take_while(|line| !line.is_empty())
}

/// Pushes objects and moves one reference.
pub(super) async fn push(target: &Target, step: Move, objects: Vec<Object>) -> Result<(), push::Error> {
    let Target {
        remotes,
        timeout,
        options,
        ..
    } = target;
    git_writer::branch::push(remotes, *timeout, step, objects, options).await
}

/// Reads the key that signs the commits of an automation.
pub(super) async fn key(object: &ImageUpdateAutomation, context: &Context) -> Result<Option<Key>, Error> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let git = object.spec.git.as_ref();
    match git.and_then(|git| git.commit.signing_key.as_ref()) {
        Some(signing) => Ok(Some(Key::read(signing, &context.reader(namespace)).await?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_header_names_parents() {
        let (a, b) = ("1".repeat(40), "2".repeat(40));
        let commit = format!("tree {a}\nparent {b}\nparent x\nauthor A\n\nparent {a}\n");
        let found: Vec<_> = parents(commit.as_bytes()).map(|id| id.to_string()).collect();
        assert_eq!(found, [b]);
        let commit = b"tree x\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\nauthor <e@f>\n";
        assert!(is_by(commit, "a@b") && !is_by(commit, "c@d") && !is_by(commit, "e@f"));
    }
}
