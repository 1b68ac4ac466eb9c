//! The commit that is made, and its push.

use api::image::ImageUpdateAutomation;
use git_client::commit::{Draft, Person};
use git_client::push::{self, Move};
use git_client::{Object, ObjectId};
use jiff::Timestamp;
use tokio::time::Instant;
use transport::stop::Stop;
use yaml_setters::Setters;

use super::Error;
use super::kept::Kept;
use super::signing::Key;
use super::target::Target;
use super::{message, update};

/// A commit that is not pushed yet.
pub(super) struct Commit {
    pub(super) id: ObjectId,
    pub(super) message: String,
    pub(super) objects: Vec<Object>,
}

/// What became of a checkout.
pub(super) struct Made {
    pub(super) base: ObjectId,
    /// Of the checkout.
    pub(super) revision: String,
    /// None if nothing changes.
    pub(super) commit: Option<Commit>,
    pub(super) notes: Vec<String>,
}

/// Edits the files and makes the commit, on a blocking thread.
pub(super) async fn make(
    object: ImageUpdateAutomation,
    mut kept: Kept,
    setters: Setters,
    key: Option<Key>,
) -> Result<(Made, Kept), Error> {
    let making = tokio::task::spawn_blocking(move || {
        let made = make_blocking(&object, &mut kept, &setters, key.as_ref())?;
        Ok((made, kept))
    });
    making.await.map_err(|_| Error::Abandoned)?
}

fn make_blocking(
    object: &ImageUpdateAutomation,
    kept: &mut Kept,
    setters: &Setters,
    key: Option<&Key>,
) -> Result<Made, Error> {
    let path = object
        .spec
        .update
        .as_ref()
        .and_then(|update| update.path.as_deref());
    let Kept { checkout, plain } = kept;
    let updated = update::update(&checkout.pack, path.unwrap_or_default(), setters, plain)?;
    let mut notes = updated.notes;
    if updated.problems > notes.len() {
        notes.push(format!("and {} more", updated.problems - notes.len()));
    }
    let base = checkout.resolved.commit;
    let commit = match &object.spec.git {
        Some(git) if !updated.contents.is_empty() => {
            let meta = &object.metadata;
            let data = message::Data {
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
                files: updated.files,
                values: git.commit.message_template_values.clone(),
            };
            let message = message::render(git.commit.message_template.as_deref(), &data)?;
            let edited = git_client::edit::edit(&checkout.pack, updated.contents)?;
            let draft = Draft {
                tree: edited.tree,
                parents: vec![base],
                author: Person {
                    name: git.commit.author.name.clone().unwrap_or_default(),
                    email: git.commit.author.email.clone(),
                },
                time: Timestamp::now().as_second(),
                message: message.clone(),
            };
            let signature = key.map(|key| key.sign(&draft.unsigned())).transpose()?;
            let made = draft.commit(signature.as_deref());
            let made = made.map_err(git_client::edit::Error::from)?;
            let id = made.id();
            let mut objects = edited.objects;
            objects.push(made);
            Some(Commit { id, message, objects })
        }
        _ => None,
    };
    Ok(Made {
        base,
        revision: checkout.resolved.revision.clone(),
        commit,
        notes,
    })
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

async fn push(target: &Target, step: Move, objects: Vec<Object>) -> Result<(), push::Error> {
    let remote = target.remotes.main().map_err(|_| git_client::Error::Abandoned)?;
    let stop = Stop::default();
    let request = push::Request {
        remote,
        moves: vec![step],
        objects,
        options: target.options.clone(),
        deadline: Instant::now() + target.timeout,
        stop,
    };
    push::push(request).await.map(drop)
}
