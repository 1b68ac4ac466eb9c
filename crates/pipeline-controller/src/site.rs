//! A repository that is changed for an object: what is fetched, edited, committed and pushed there.

use std::sync::Arc;

use controller_kit::ObjectKey;
use flux_spec::build::KUSTOMIZATION_FILES;
use git_client::commit::Person;
use git_client::pack::Pack;
use git_client::push::{self, Move};
use git_client::reference::{Fields, Reference};
use git_client::sparse::Sparse;
use git_client::{Checkout, ObjectId, Outcome};
use git_writer::branch::{self, Wanted};
use git_writer::commit::{Commit, Edit};
use transport::stop::Stop;
use yaml_setters::is_yaml;

use crate::change::Error;
use crate::context::Context;
use crate::edit::{self, Changed};
use crate::place;
use crate::proposal::Proposed;

/// Where changes are made, and for which object.
pub(crate) struct Site<'a> {
    /// Namespace and UID of the object.
    pub(crate) namespace: &'a str,
    pub(crate) uid: &'a str,
    /// The GitRepository.
    pub(crate) key: &'a ObjectKey,
    pub(crate) part: Part,
    pub(crate) repository: &'a place::Repository,
    pub(crate) context: &'a Context,
}

/// Which files of a repository matter.
pub(crate) enum Part {
    /// The YAML files of these folders.
    Folders(Vec<String>),
    /// The files of all kustomizations, and the names of the others.
    Kustomizations,
}

/// The base of a change, and what changes in it.
pub(crate) struct Base {
    pub(crate) commit: ObjectId,
    pub(crate) revision: String,
    pub(crate) pack: Pack,
    pub(crate) changed: Changed,
}

impl Base {
    pub(crate) fn new(checkout: Checkout, changed: Changed) -> Self {
        let Checkout { resolved, pack, .. } = checkout;
        Self {
            commit: resolved.commit,
            revision: resolved.revision,
            pack,
            changed,
        }
    }
}

fn is_kustomization(path: &str) -> bool {
    KUSTOMIZATION_FILES.contains(&path.rsplit('/').next().unwrap_or_default())
}

impl Site<'_> {
    /// Fetches a branch of the repository. Nothing is fetched if it is at a revision that is known.
    pub(crate) async fn fetch(
        &self,
        branch: &str,
        known: Option<String>,
    ) -> Result<(Outcome, Stop), branch::Error> {
        let fields = Fields {
            branch: Some(branch),
            ..Fields::default()
        };
        self.fetch_at(fields, known).await
    }

    /// Fetches a commit that the branch of the repository has, or had.
    pub(crate) async fn fetch_commit(&self, commit: &str) -> Result<Pack, branch::Error> {
        let fields = Fields {
            branch: Some(&self.repository.branch),
            commit: Some(commit),
            ..Fields::default()
        };
        match self.fetch_at(fields, None).await?.0 {
            Outcome::Fetched(checkout) => Ok(checkout.pack),
            Outcome::Unchanged(_) => Err(git_client::Error::Abandoned.into()), // as below
        }
    }

    async fn fetch_at(
        &self,
        fields: Fields<'_>,
        known: Option<String>,
    ) -> Result<(Outcome, Stop), branch::Error> {
        let sparse = match &self.part {
            Part::Kustomizations => Some(Sparse::new(&[]).files(is_kustomization)),
            Part::Folders(folders) if folders.iter().any(String::is_empty) => None,
            Part::Folders(folders) => Some(Sparse::new(folders).files(is_yaml)),
        };
        let wanted = Wanted {
            reference: Reference::from_fields(fields),
            sparse,
            unless_revision: known,
            over: None,
        };
        let place::Repository { remotes, timeout, .. } = self.repository;
        branch::fetch(remotes, *timeout, wanted, &self.context.workshop).await
    }

    /// Fetches a branch, whatever it is at.
    pub(crate) async fn checkout(&self, branch: &str) -> Result<(Checkout, Stop), Error> {
        let fetched = self.fetch(branch, None).await;
        let (outcome, stop) = fetched.map_err(|source| Error::Fetch {
            branch: branch.to_owned(),
            source,
        })?;
        match outcome {
            Outcome::Fetched(checkout) => Ok((*checkout, stop)),
            Outcome::Unchanged(_) => Err(Error::Abandoned), // it is asked for without a revision that is known
        }
    }

    /// Makes a change in the files of a checkout, on a blocking thread.
    pub(crate) async fn edit(
        &self,
        change: &Arc<dyn Proposed>,
        (checkout, stop): (Checkout, Stop),
    ) -> Result<Base, Error> {
        let change = change.clone();
        let waiting = stop.when_dropped();
        let editing = tokio::task::spawn_blocking(move || {
            let changed = change.edit(&checkout.pack)?;
            Ok::<_, edit::Error>(Base::new(checkout, changed))
        });
        let base = editing.await.map_err(|_| Error::Abandoned)?;
        waiting.disarm();
        Ok(base?)
    }

    /// Pushes a commit to a branch, or removes that.
    pub(crate) async fn push(
        &self,
        branch: &str,
        from: Option<ObjectId>,
        commit: Option<&Commit>,
    ) -> Result<(), push::Error> {
        let step = Move {
            reference: format!("refs/heads/{branch}"),
            from,
            to: commit.map(|commit| commit.id),
        };
        let objects = commit.map(|commit| commit.objects.clone()).unwrap_or_default();
        let place::Repository { remotes, timeout, .. } = self.repository;
        branch::push(remotes, *timeout, step, objects, &[]).await
    }

    /// Makes a commit over a base, on a blocking thread.
    pub(crate) async fn write(&self, author: Person, base: Base, message: String) -> Result<Commit, Error> {
        let edit = Edit {
            parent: base.commit,
            contents: base.changed.contents(),
            author,
            message,
            key: None,
        };
        let writing = tokio::task::spawn_blocking(move || edit.write(&base.pack));
        Ok(writing.await.map_err(|_| Error::Abandoned)??)
    }
}
