//! One group of changes in one run: what is decided about its branch and its pull request is carried out.

use api::delivery::MergeSpec;
use api::source::GitRepositoryRef;
use change_policy::mark::{self, Change, Commit as Mark};
use change_policy::plan::{self, Branch, Push, Request, Seen};
use forge::pull_request::{Draft, PullRequest};
use git_client::push::Move;
use git_client::{ObjectId, Outcome};
use git_writer::commit::Commit;
use git_writer::request::{self, Merged, named};
use jiff::{SignedDuration, Timestamp};

use super::objects::{self, Trees};
use super::origin::{self, Origin};
use super::words;
use super::work::{Group, Work};
use crate::automation::branch::head::{self, Head};
use crate::automation::checkout::fetch_reference;
use crate::automation::commit;
use crate::automation::error::Error;
use crate::automation::kept::Kept;
use crate::automation::message;
use crate::automation::run::{Proposed, Pushed};
use crate::automation::update::{self, Updated};

/// One group in one run.
pub(super) struct Proposal<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) group: &'a Group,
    pub(super) base: ObjectId,
    pub(super) updated: Updated,
    /// The change, and the files below it.
    pub(super) wanted: Option<(Change, Change)>,
    /// From its branch to the base.
    pub(super) requests: Vec<PullRequest>,
}

/// What one group came to.
pub(super) struct Done {
    pub(super) proposed: Proposed,
    pub(super) is_open: bool,
    pub(super) pushed: Option<Pushed>,
    pub(super) kept: Kept,
}

impl Proposal<'_> {
    /// Does what is to be done. None if the base moved on the way.
    pub(super) async fn run(
        mut self,
        kept: Kept,
        revision: &str,
        open: usize,
    ) -> Result<Option<Done>, Error> {
        let Updated { contents, files, .. } = std::mem::take(&mut self.updated);
        let mut requests = std::mem::take(&mut self.requests);
        let (work, group) = (self.work, self.group);
        let target = &work.target;
        let writers = &work.context.writers;
        let _turn = writers.turn(target.remotes.url.as_str(), &group.branch).await;
        let mut proposed = Proposed::default();
        self.close_doubled(&mut requests, &mut proposed).await?;
        let head = head::find(work.site(), &group.branch).await?;
        let seen = Seen {
            wanted: self.wanted.as_ref().map(|(change, _)| change),
            base: self.wanted.as_ref().map(|(_, base)| base),
            branch: head.branch.clone(),
            requests: &requests,
            may_open: work.spec.max_open.is_none_or(|most| open < most as usize),
            is_settled: work.is_settled,
        };
        let (push, request) = plan::plan(&seen);
        if matches!(request, Request::Reverted(_)) && self.has_moved(revision).await? {
            return Ok(None);
        }
        if let Request::Close(request) = request {
            // Before its branch goes, which would close it without a word.
            let text = format!("`{}` has these values by now.", target.branch);
            work.forge.comment(request.number, &text).await?;
            work.forge.close(request.number).await?;
            let event = format!(
                "closed {}: '{}' has these values by now",
                named(request),
                target.branch
            );
            proposed.event = Some(event);
        }
        let describes = matches!(request, Request::Open | Request::Edit(_));
        let trees = describes.then(|| self.trees(&kept, &contents)).flatten();
        let at = head.commit;
        let was_ours = matches!(head.branch, Branch::Ours { .. });
        let (commit, kept) = self.push(push, head, (contents, files.clone()), kept).await?;
        let own = match push {
            Push::Create | Push::Replace => commit.as_ref().map(|commit| commit.id),
            Push::Leave => at.filter(|_| was_ours),
            Push::Continue | Push::Delete => None,
        };
        let request = self
            .request(request, commit.as_ref(), (files, trees), &mut proposed)
            .await?;
        if let (Some(request), Some(own), Some(merge)) = (&request, own, &work.spec.merge) {
            self.merge(request, own, merge, &mut proposed).await?;
        }
        Ok(Some(Done {
            proposed,
            is_open: request.is_some(),
            pushed: commit.map(|commit| Pushed {
                commit: commit.id,
                message: commit.message,
            }),
            kept,
        }))
    }

    /// The parts of the description that it needs.
    async fn parts(&self, files: &update::Files, trees: Option<Trees>) -> message::Parts {
        let mut parts = message::Parts {
            table: words::table(files),
            ..message::Parts::default()
        };
        if self.needs(".Images") {
            let origins = origin::find(&self.group.policies, files, self.work).await;
            parts.images = origins.iter().map(Origin::text).collect();
        }
        if let Some(trees) = trees {
            parts.objects = objects::find(trees, self.work).await.concat();
        }
        parts
    }

    /// Returns whether the description has a part, by its name in templates.
    fn needs(&self, part: &str) -> bool {
        let body = self.work.spec.body.as_deref();
        body.is_none_or(|template| template.contains(part))
    }

    /// The files that the description compares, if it compares any.
    fn trees(&self, kept: &Kept, changes: &git_client::edit::Changes) -> Option<Trees> {
        let spec = self.work.spec;
        let is_wanted = !spec.kustomizations.is_empty() && self.needs(".Objects");
        is_wanted.then(|| Trees {
            base: kept.checkout.pack.clone(),
            changes: changes.clone(),
        })
    }

    /// Closes all open pull requests of ours but the first.
    async fn close_doubled(
        &self,
        requests: &mut Vec<PullRequest>,
        proposed: &mut Proposed,
    ) -> Result<(), Error> {
        let doubled: Vec<u64> = plan::doubled(requests).iter().map(|one| one.number).collect();
        for number in &doubled {
            let text = "Another pull request is open for this branch.";
            self.work.forge.comment(*number, text).await?;
            self.work.forge.close(*number).await?;
            let event = format!("closed pull request {number}: another one is open for its branch");
            proposed.event = Some(event);
        }
        requests.retain(|one| !doubled.contains(&one.number));
        Ok(())
    }

    /// Returns whether the base is no longer at this revision.
    async fn has_moved(&self, revision: &str) -> Result<bool, Error> {
        let own = GitRepositoryRef {
            branch: Some(self.work.target.branch.clone()),
            ..Default::default()
        };
        let known = Some(revision.to_owned());
        let (outcome, _) = fetch_reference(&self.work.target, &own, known, None, self.work.context).await?;
        Ok(!matches!(outcome, Outcome::Unchanged(_)))
    }

    /// Pushes the branch, and returns the commit that was made for it.
    async fn push(
        &self,
        push: Push,
        head: Head,
        (contents, files): (git_client::edit::Changes, update::Files),
        kept: Kept,
    ) -> Result<(Option<Commit>, Kept), Error> {
        let (work, branch) = (self.work, &self.group.branch);
        let step = |from, to| Move {
            reference: format!("refs/heads/{branch}"),
            from,
            to,
        };
        match (push, &self.wanted) {
            (Push::Leave, _) => Ok((None, kept)),
            (Push::Delete, _) => {
                work.push(step(head.commit, None), None).await?;
                head::forget(work.site(), branch);
                Ok((None, kept))
            }
            (Push::Create | Push::Replace, Some((change, base))) => {
                let mark = Mark {
                    change: change.clone(),
                    base: base.clone(),
                    owner: work.site().owner().to_owned(),
                };
                let edit = work.edit(self.base, contents, files, self.group, Some(mark));
                let (commit, kept) =
                    commit::blocking(kept, move |kept| edit.write(&kept.checkout.pack)).await?;
                work.push(step(head.commit, Some(commit.id)), Some(&commit))
                    .await?;
                let branch_now = Branch::Ours {
                    change: change.clone(),
                    base: base.clone(),
                };
                head::remember(work.site(), branch, commit.id, branch_now);
                Ok((Some(commit), kept))
            }
            (Push::Continue, _) => Ok((self.add_to(head, step).await?, kept)),
            (Push::Create | Push::Replace, None) => Ok((None, kept)),
        }
    }

    /// Adds a commit to those of others, unless they have made the change already.
    async fn add_to(
        &self,
        head: Head,
        step: impl Fn(Option<ObjectId>, Option<ObjectId>) -> Move,
    ) -> Result<Option<Commit>, Error> {
        let (work, group) = (self.work, self.group);
        let Some(theirs) = head::checkout(work.site(), &group.branch, head).await? else {
            return Ok(None);
        };
        let parent = theirs.checkout.resolved.commit;
        let values = group.values.clone();
        let (updated, theirs) = commit::blocking(theirs, move |theirs| {
            let Kept { checkout, plain } = theirs;
            Ok(update::update(&checkout.pack, &values, plain)?)
        })
        .await?;
        if updated.contents.is_empty() {
            return Ok(None);
        }
        // Without a mark: it stands on the work of others, and must never be replaced.
        let edit = work.edit(parent, updated.contents, updated.files, group, None);
        let (commit, _) = commit::blocking(theirs, move |theirs| edit.write(&theirs.checkout.pack)).await?;
        work.push(step(Some(parent), Some(commit.id)), Some(&commit))
            .await?;
        head::remember(work.site(), &group.branch, commit.id, Branch::Foreign);
        Ok(Some(commit))
    }

    /// Brings the pull request to where it should be, and returns it if it is open.
    async fn request(
        &self,
        request: Request<'_>,
        commit: Option<&Commit>,
        (files, trees): (update::Files, Option<Trees>),
        proposed: &mut Proposed,
    ) -> Result<Option<PullRequest>, Error> {
        let (work, group) = (self.work, self.group);
        match request {
            Request::None | Request::Close(_) => Ok(None),
            Request::Keep(open) => {
                proposed.is(OPEN, format!("{} is open", named(open)));
                proposed.event = commit.map(|_| format!("updated the branch of {}", named(open)));
                // Without a mark it is a person's.
                Ok(Some(open.clone()).filter(|open| mark::change_of(&open.body).is_some()))
            }
            Request::Open => self.open((files, trees), proposed).await,
            Request::Edit(open) => {
                let (title, text, change) = self.words(files, trees).await?;
                if mark::is_unfinished(&open.body) {
                    request::finish(&work.forge, work.spec, open).await?;
                }
                let body = mark::marked(&text, change);
                work.forge.edit(open.number, &title, &body).await?;
                proposed.is(OPEN, format!("{} is open", named(open)));
                proposed.event = Some(format!("updated {}\n{title}", named(open)));
                Ok(Some(open.clone()))
            }
            Request::Declined(closed) => {
                let line = format!("not proposed again: {} was closed", named(closed));
                proposed.is(DECLINED, line);
                Ok(None)
            }
            Request::Reverted(merged) => {
                let line = format!(
                    "not proposed again: {} was merged, and '{}' no longer has its values",
                    named(merged),
                    work.target.branch
                );
                proposed.is(REVERTED, line);
                Ok(None)
            }
            Request::Occupied => {
                let line = format!(
                    "not proposed: the branch '{}' has commits of others and was never a change of this automation; delete it, \
                     or set another one in spec.pullRequest.branch of the ChangePolicy",
                    group.branch
                );
                proposed.is(OCCUPIED, line);
                Ok(None)
            }
            Request::TooMany => {
                let most = work.spec.max_open.unwrap_or_default();
                let what = group.policy.as_deref().unwrap_or("all policies");
                let line = format!("waits for one of {most} open pull requests: the change of {what}");
                proposed.is(TOO_MANY, line);
                Ok(None)
            }
        }
    }

    /// Opens a pull request. It is marked as unfinished until it has its labels and reviewers.
    async fn open(
        &self,
        (files, trees): (update::Files, Option<Trees>),
        proposed: &mut Proposed,
    ) -> Result<Option<PullRequest>, Error> {
        let (work, group) = (self.work, self.group);
        let (title, text, change) = self.words(files, trees).await?;
        let needs_more = !work.spec.labels.is_empty() || !work.spec.reviewers.is_empty();
        let body = match needs_more {
            true => mark::unfinished(&text, change),
            false => mark::marked(&text, change),
        };
        let draft = Draft {
            head: &group.branch,
            base: &work.target.branch,
            title: &title,
            body: &body,
        };
        let open = work.forge.open(draft).await?;
        if needs_more {
            request::finish(&work.forge, work.spec, &open).await?;
            let body = mark::marked(&text, change);
            work.forge.edit(open.number, &title, &body).await?;
        }
        proposed.is(OPEN, format!("{} is open", named(&open)));
        proposed.event = Some(format!("opened {}\n{title}", named(&open)));
        proposed.again = Timestamp::now().checked_add(SECOND_LOOK).ok();
        Ok(Some(open))
    }

    /// Title, description and change of the pull request.
    async fn words(
        &self,
        files: update::Files,
        trees: Option<Trees>,
    ) -> Result<(String, String, &Change), Error> {
        let spec = self.work.spec;
        let Some((change, _)) = &self.wanted else {
            return Err(Error::Abandoned);
        };
        let policy = self.group.policy.as_deref().unwrap_or_default();
        let mut data = message::Data::new(self.work.object, Some(policy), files);
        let title = spec.title.as_deref();
        let title = title
            .map(|title| message::render(Some(title), &data))
            .transpose()?;
        let title = title.map(|title| words::first_line(&title));
        let title = title.filter(|title| !title.is_empty());
        data.parts = Some(self.parts(&data.files, trees).await);
        let automation = format!("{}/{}", data.namespace, data.name);
        let body = match (&spec.body, &data.parts) {
            (None, Some(parts)) => words::body(parts, &automation),
            (body, _) => message::render(body.as_deref(), &data)?,
        };
        let title = title.unwrap_or_else(|| words::title(&data.files));
        Ok((title, words::bounded(body), change))
    }

    /// Merges the pull request if it is old enough and its checks have passed.
    async fn merge(
        &self,
        request: &PullRequest,
        commit: ObjectId,
        merge: &MergeSpec,
        proposed: &mut Proposed,
    ) -> Result<(), Error> {
        match request::merge(&self.work.forge, request, commit, merge).await? {
            Merged::NotYet(text, again) => {
                proposed.again = proposed.again.into_iter().chain(again).min();
                proposed.adds(&text);
            }
            Merged::Done => {
                *proposed = Proposed {
                    event: Some(format!("merged {}", named(request))),
                    ..Proposed::default()
                };
            }
        }
        Ok(())
    }
}

/// After a pull request was opened, the forge is asked again: a process that was killed before may have asked for one, too.
const SECOND_LOOK: SignedDuration = SignedDuration::from_secs(10);

const OPEN: &str = "PullRequestOpen";
const DECLINED: &str = "PullRequestDeclined";
const REVERTED: &str = "ChangeReverted";
const TOO_MANY: &str = "TooManyPullRequests";
const OCCUPIED: &str = "BranchOccupied";

impl Proposed {
    fn is(&mut self, reason: &'static str, line: String) {
        (self.reason, self.line) = (reason, line);
    }

    fn adds(&mut self, text: &str) {
        self.line = format!("{}, {text}", self.line);
    }
}
