//! One pull request: fetched, merged into its branch, and compared with each cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::delivery::Preview;
use forge::Forge;
use forge::incoming::Incoming;
use git_client::pack::Pack;
use git_client::reference::{Fields, Reference};
use git_client::{Checkout, ObjectId, Outcome};
use git_writer::branch::{self, Wanted};
use merge_preview::{Checks, ClusterFindings, Merged, Tree};

use super::repositories::Group;
use super::{Error, checks, clusters, parsed};
use crate::context::Context;

/// The branch of a repository, as it is now.
pub(super) struct Newest {
    commit: ObjectId,
    pack: Option<Pack>,
}

impl Newest {
    /// Looks where the branch is. It is fetched only if that is not a commit which is known.
    pub(super) async fn look(group: &Group, known: Option<String>, context: &Context) -> Result<Self, Error> {
        let known = known.filter(|commit| parsed(commit).is_some());
        let revision = known.map(|commit| format!("{}@sha1:{commit}", group.branch));
        let reference = Fields {
            branch: Some(&group.branch),
            ..Fields::default()
        };
        let fetched = fetch(group, reference, (revision, None), context).await;
        match fetched {
            Ok(Outcome::Unchanged(resolved)) => Ok(Self {
                commit: resolved.commit,
                pack: None,
            }),
            Ok(Outcome::Fetched(checkout)) => Ok(Self {
                commit: checkout.resolved.commit,
                pack: Some(checkout.pack),
            }),
            Err(source) => Err(Error::Fetch {
                branch: group.branch.clone(),
                source,
            }),
        }
    }

    pub(super) fn commit(&self) -> ObjectId {
        self.commit
    }

    /// The files of the commit.
    async fn files(&mut self, group: &Group, context: &Context) -> Result<Pack, String> {
        if let Some(pack) = &self.pack {
            return Ok(pack.clone());
        }
        let reference = Fields {
            branch: Some(&group.branch),
            ..Fields::default()
        };
        let checkout = fetched(group, reference, None, context).await?;
        // It may have moved since.
        self.commit = checkout.resolved.commit;
        self.pack = Some(checkout.pack.clone());
        Ok(checkout.pack)
    }
}

/// What came of a comparison.
pub(super) struct Found {
    pub(super) head: ObjectId,
    pub(super) base: ObjectId,
    pub(super) conflicts: Vec<String>,
    pub(super) changed: BTreeSet<String>,
    pub(super) clusters: Vec<ClusterFindings>,
    pub(super) checks: Option<Checks>,
}

/// The comparison of a pull request.
pub(super) struct Comparison<'a> {
    pub(super) object: &'a Preview,
    pub(super) group: &'a Group,
    pub(super) context: &'a Context,
}

impl Comparison<'_> {
    /// Fetches, merges, compares.
    pub(super) async fn run(
        &self,
        forge: &Forge<'_>,
        one: &Incoming,
        newest: &mut Newest,
    ) -> Result<Found, String> {
        let (group, context) = (self.group, self.context);
        let base = newest.files(group, context).await?;
        let name = forge.head_reference(one.request.number);
        let reference = Fields {
            name: Some(&name),
            ..Fields::default()
        };
        let head = fetched(group, reference, Some(base.clone()), context).await?;
        let (ours, theirs, revision) = (newest.commit(), head.resolved.commit, head.resolved.revision);
        let parted = self.parted(&base, (theirs, ours)).await?;
        let mut found = Found {
            head: theirs,
            base: ours,
            conflicts: Vec::new(),
            changed: BTreeSet::new(),
            clusters: Vec::new(),
            checks: None,
        };
        let parted = match parted {
            Parted::Merged => return Ok(found),
            Parted::AtBase => None,
            Parted::At(pack) => Some(pack),
        };
        let head = head.pack;
        let merging = tokio::task::spawn_blocking(move || {
            let parted = parted.map(|pack| Tree::read(*pack)).transpose()?;
            Merged::new(Tree::read(base)?, parted.as_ref(), Tree::read(head)?)
        });
        let merged = merging.await.map_err(|error| error.to_string())?;
        let merged = merged.map_err(|error| error_chain::chain(&error))?;
        found.conflicts.clone_from(&merged.conflicts);
        let merged = Arc::new(merged);
        found.checks = checks::check(self.object, &merged, context).await?;
        let content = clusters::Content {
            merged,
            place: format!("pull request {}", one.request.number),
            is_fork: one.is_fork,
        };
        (found.clusters, found.changed) = clusters::compare(self.object, group, &content, context).await;
        // A commit that was pushed meanwhile is compared in its own turn; the comment must not show findings of the one before.
        match fetch(group, reference, (Some(revision), None), context).await {
            Ok(Outcome::Fetched(_)) => Err("another commit was pushed meanwhile".to_owned()),
            Ok(Outcome::Unchanged(_)) | Err(_) => Ok(found),
        }
    }

    async fn parted(&self, base: &Pack, (head, newest): (ObjectId, ObjectId)) -> Result<Parted, String> {
        let (group, context) = (self.group, self.context);
        let found =
            branch::merge_base(&group.remotes, group.timeout, (head, newest), &context.workshop).await;
        let found = found.map_err(|error| error_chain::chain(&error))?;
        let found = found.ok_or("its branch has nothing in common with the branch that it is for")?;
        if found == head {
            return Ok(Parted::Merged);
        }
        if found == newest {
            return Ok(Parted::AtBase);
        }
        let commit = found.to_string();
        let reference = Fields {
            commit: Some(&commit),
            ..Fields::default()
        };
        let checkout = fetched(group, reference, Some(base.clone()), context).await?;
        Ok(Parted::At(Box::new(checkout.pack)))
    }
}

/// Where a pull request left its branch.
enum Parted {
    /// At its own commit: the branch has it.
    Merged,
    /// At the commit of the branch.
    AtBase,
    /// Before that.
    At(Box<Pack>),
}

async fn fetched(
    group: &Group,
    reference: Fields<'_>,
    over: Option<Pack>,
    context: &Context,
) -> Result<Checkout, String> {
    match fetch(group, reference, (None, over), context).await {
        Ok(Outcome::Fetched(checkout)) => Ok(*checkout),
        // It is asked for without a revision that is known.
        Ok(Outcome::Unchanged(_)) => Err("failed to finish the fetch".to_owned()),
        Err(error) => Err(error_chain::chain(&error)),
    }
}

async fn fetch(
    group: &Group,
    reference: Fields<'_>,
    (unless_revision, over): (Option<String>, Option<Pack>),
    context: &Context,
) -> Result<Outcome, branch::Error> {
    let wanted = Wanted {
        reference: Reference::from_fields(reference),
        sparse: None,
        unless_revision,
        over,
    };
    let fetched = branch::fetch(&group.remotes, group.timeout, wanted, &context.workshop).await;
    fetched.map(|(outcome, _)| outcome)
}
