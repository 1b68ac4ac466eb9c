//! Changes by pull request: which ones, on which branch, and what became of them.
//!
//! Git and the forge are the only memory. Each run reads the base, the branch of each group of changes and its pull requests;
//! `change_policy::plan` decides; then the branch is pushed and the pull request follows. A run that was cut off anywhere is
//! completed by the next one.

mod branch;
pub(crate) mod heads;
mod words;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{Grouping, MergeMethod, MergeSpec, PullRequestSpec};
use api::image::{ImagePolicy, ImageUpdateAutomation};
use api::source::GitRepositoryRef;
use change_policy::mark::{self, Change, Commit as Mark};
use change_policy::plan::{self, Branch, Push, Request, Seen};
use controller_kit::jitter::random;
use forge::Forge;
use forge::check::{self, Verdict};
use forge::pull_request::{Draft, Merge, Method, PullRequest, State};
use git_client::push::Move;
use git_client::{ObjectId, Outcome};
use jiff::{SignedDuration, Timestamp};
use yaml_setters::Setters;

use self::heads::Head;
use super::checkout::{Fetched, fetch, fetch_reference, keep};
use super::commit::{self, Commit};
use super::kept::{Kept, Place};
use super::signing::Key;
use super::target::{self, Target};
use super::update::{self, Updated};
use super::{Chosen, Error, MAX_TRIES, PAUSE, Pushed, Run, message};
use crate::context::Context;

/// Bytes of the name of a branch: it becomes a file of the Git server.
const MAX_BRANCH: usize = 200;
/// Requests to the forge may take so long each.
const FORGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A run may take so long: each group asks the forge several times, and a worker waits for it.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Groups of one automation.
const MAX_GROUPS: usize = 100;

/// What became of a group of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proposed {
    /// Where it stands, in a line; empty if there is nothing to propose.
    pub(crate) line: String,
    /// Reason of the condition.
    pub(crate) reason: &'static str,
    /// What happened in this run.
    pub(crate) event: Option<String>,
    /// When it is worth another look, before the interval is over.
    pub(crate) again: Option<Timestamp>,
}

/// Changes that share a pull request.
struct Group {
    branch: String,
    /// Name of the policy; None for all.
    policy: Option<String>,
    setters: Setters,
}

/// What all groups of a run share.
struct Work<'a> {
    object: &'a ImageUpdateAutomation,
    spec: &'a PullRequestSpec,
    target: Target,
    forge: Forge<'static>,
    key: Option<Key>,
    context: &'a Context,
    /// Every policy has chosen an image: what is not changed need not be.
    is_settled: bool,
}

/// Proposes what the policies have chosen.
pub(super) async fn run(
    object: &ImageUpdateAutomation,
    chosen: &Chosen,
    spec: &PullRequestSpec,
    context: &Context,
) -> Result<Run, Error> {
    let policies = &chosen.policies;
    let mut target = target::find(object, context).await?;
    target.propose(object)?;
    let groups = groups(object, policies, spec, &target.branch)?;
    let work = Work {
        forge: sign_in(object, spec, &target, context).await?,
        key: super::signing_key(object, context).await?,
        object,
        spec,
        target,
        context,
        is_settled: chosen.is_settled,
    };
    let all = update::setters(policies.iter().map(|policy| &**policy));
    for attempt in 1..=MAX_TRIES {
        let pass = tokio::time::timeout(RUN_TIMEOUT, work.pass(&groups, &all));
        let passed = pass.await.unwrap_or_else(|_| {
            let problem =
                "the pull requests took more than 5 minutes; the next run goes on where this one stopped";
            Err(Error::Forge(forge::Error::passing(problem)))
        });
        match passed {
            Err(Error::Push(error)) if error.is_moved() => {
                tracing::info!("a branch was changed in the meantime, attempt {attempt}");
                tokio::time::sleep(PAUSE.mul_f64(random())).await;
            }
            Ok(None) => tracing::info!("the base was changed in the meantime, attempt {attempt}"),
            Ok(Some(run)) => return Ok(run),
            Err(error) => return Err(error),
        }
    }
    Err(Error::Races(work.target.branch.clone()))
}

async fn sign_in(
    object: &ImageUpdateAutomation,
    spec: &PullRequestSpec,
    target: &Target,
    context: &Context,
) -> Result<Forge<'static>, Error> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let address = match &spec.forge.url {
        Some(url) => url.clone(),
        // Whoever owns the GitRepository could point it to a server of theirs, which would get this namespace's token.
        None if target::source_of(object).namespace != namespace => {
            let problem = "spec.pullRequest.forge.url is required in the ChangePolicy, as the GitRepository is in another \
                           namespace";
            return Err(target::Error::Invalid(problem.to_owned()).into());
        }
        None => target.remotes.url.to_string(),
    };
    let ways = remote_access::forge::Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout: FORGE_TIMEOUT.min(target.timeout),
    };
    let reader = context.reader(namespace);
    Ok(remote_access::forge::sign_in(&spec.forge, &address, &reader, ways).await?)
}

/// The groups of changes, with their branches.
fn groups(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    spec: &PullRequestSpec,
    base: &str,
) -> Result<Vec<Group>, Error> {
    let group = |policy: Option<&str>, policies: &[Arc<ImagePolicy>]| {
        Ok::<_, Error>(Group {
            branch: branch_name(object, spec, policy, base)?,
            policy: policy.map(str::to_owned),
            setters: update::setters(policies.iter().map(|policy| &**policy)),
        })
    };
    if spec.grouping.unwrap_or_default() == Grouping::All {
        return Ok(vec![group(None, policies)?]);
    }
    if policies.len() > MAX_GROUPS {
        let problem = format!(
            "more than {MAX_GROUPS} policies cannot have a pull request each: select fewer of them in .spec.policySelector"
        );
        return Err(target::Error::Invalid(problem).into());
    }
    let mut names = HashSet::new();
    let mut groups = Vec::new();
    for policy in policies {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        let group = group(Some(name), std::slice::from_ref(policy))?;
        if !names.insert(group.branch.clone()) {
            let problem = "spec.pullRequest.branch of the ChangePolicy must differ by {{ .Policy }} when changes are grouped by \
                           policy";
            return Err(target::Error::Invalid(problem.to_owned()).into());
        }
        groups.push(group);
    }
    Ok(groups)
}

fn branch_name(
    object: &ImageUpdateAutomation,
    spec: &PullRequestSpec,
    policy: Option<&str>,
    base: &str,
) -> Result<String, Error> {
    let data = data(object, policy, update::Files::default());
    let name = match &spec.branch {
        Some(template) => message::render(Some(template), &data)?.trim().to_owned(),
        None => {
            let end = policy.map(|policy| format!("-{policy}")).unwrap_or_default();
            format!("windlass/{}-{}{end}", data.namespace, data.name)
        }
    };
    let is_name = !name.is_empty()
        && name.len() <= MAX_BRANCH
        && !name.starts_with(['-', '/'])
        && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    if !is_name || name == base {
        let problem = format!(
            "spec.pullRequest.branch of the ChangePolicy makes {}",
            if name == base {
                "the branch that is proposed to".to_owned()
            } else {
                format!("no name of a branch: '{}'", words::first_line(&name))
            }
        );
        return Err(target::Error::Invalid(problem).into());
    }
    Ok(name)
}

fn data(object: &ImageUpdateAutomation, policy: Option<&str>, files: update::Files) -> message::Data {
    let git = object.spec.git.as_ref();
    message::Data {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        policy: policy.map(str::to_owned),
        files,
        values: git
            .map(|git| git.commit.message_template_values.clone())
            .unwrap_or_default(),
    }
}

impl Work<'_> {
    /// One look at everything; None if the base moved on the way.
    async fn pass(&self, groups: &[Group], all: &Setters) -> Result<Option<Run>, Error> {
        let place = Place::new(self.object.metadata.uid.as_deref(), &self.target);
        let kept = place.as_ref().and_then(|place| self.context.kept.take(place));
        let fetched = fetch(&self.target, None, kept, self.context).await?;
        let Fetched::Checkout { kept, stop, .. } = fetched else {
            return Ok(None); // it is fetched without a revision that is known
        };
        let base = kept.checkout.resolved.commit;
        let revision = kept.checkout.resolved.revision.clone();
        let path = self.path();
        let mut run = Run {
            revision,
            pushed: None,
            notes: None,
            proposed: Vec::new(),
        };
        let setters: Vec<_> = groups.iter().map(|group| group.setters.clone()).collect();
        let all = all.clone();
        let updating = commit::blocking(kept, move |kept| {
            let Kept { checkout, plain } = kept;
            let whole = update::update(&checkout.pack, &path, &all, plain)?;
            let mut each = Vec::new();
            for setters in &setters {
                // Most runs find nothing, whatever the groups are.
                let updated = if whole.contents.is_empty() {
                    Updated::default()
                } else {
                    update::update(&checkout.pack, &path, setters, plain)?
                };
                let wanted = wanted(&checkout.pack, &updated)?;
                each.push((updated, wanted));
            }
            Ok((whole.all_notes(), each))
        });
        let ((notes, each), mut kept) = super::checkout::within(self.target.timeout, &stop, updating).await?;
        run.notes = Some(notes);
        // Those that are open count before new ones are opened, whatever their order.
        let mut requests = Vec::new();
        for group in groups {
            requests.push(self.forge.find(&group.branch, &self.target.branch).await?);
        }
        let is_open = |requests: &Vec<PullRequest>| requests.iter().any(|one| one.state == State::Open);
        let mut open = requests.iter().filter(|requests| is_open(requests)).count();
        for ((group, requests), (updated, wanted)) in groups.iter().zip(requests).zip(each) {
            let was_open = is_open(&requests);
            let proposal = Proposal {
                work: self,
                group,
                base,
                updated,
                wanted,
                requests,
            };
            let Some(done) = proposal.run(kept, &run.revision, open).await? else {
                return Ok(None);
            };
            open = open + usize::from(done.is_open) - usize::from(was_open);
            run.pushed = done.pushed.or(run.pushed);
            run.proposed.push(done.proposed);
            kept = done.kept;
        }
        keep(place, Some(kept), self.context);
        Ok(Some(run))
    }

    /// `spec.update.path`.
    fn path(&self) -> String {
        let update = self.object.spec.update.as_ref();
        update.and_then(|update| update.path.clone()).unwrap_or_default()
    }

    /// A commit to be made of these contents.
    fn edit(
        &self,
        parent: ObjectId,
        contents: git_client::edit::Changes,
        files: update::Files,
        group: &Group,
        mark: Option<Mark>,
    ) -> commit::Edit {
        commit::Edit {
            parent,
            contents,
            data: data(self.object, group.policy.as_deref(), files),
            mark,
            git: self.object.spec.git.clone().unwrap_or_default(),
            key: self.key.clone(),
        }
    }

    fn owner(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    async fn push(&self, step: Move, commit: Option<&Commit>) -> Result<(), Error> {
        let objects = commit.map(|commit| commit.objects.clone()).unwrap_or_default();
        let pushed = commit::push(&self.target, step, objects).await;
        pushed.map_err(Error::Push)
    }
}

/// What identifies the change, and the files that it is made over; None if nothing changes.
fn wanted(pack: &git_client::pack::Pack, updated: &Updated) -> Result<Option<(Change, Change)>, Error> {
    if updated.contents.is_empty() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (file, changes) in &updated.files {
        for change in changes {
            let object = &change.object;
            let place = [file, &object.kind, &object.namespace, &object.name];
            parts.extend(place.map(String::as_str));
            parts.extend([change.setter.as_str(), &change.new]);
        }
    }
    let mut below = Vec::new();
    for path in updated.contents.keys() {
        let entry = pack.entry(path).map_err(update::Error::from)?;
        below.push(path.clone());
        below.push(entry.map(|(_, id)| id.to_string()).unwrap_or_default());
    }
    let base = Change::new(below.iter().map(String::as_str));
    Ok(Some((Change::new(parts), base)))
}

/// One group in one run.
struct Proposal<'a> {
    work: &'a Work<'a>,
    group: &'a Group,
    base: ObjectId,
    updated: Updated,
    /// The change, and the files below it.
    wanted: Option<(Change, Change)>,
    /// From its branch to the base.
    requests: Vec<PullRequest>,
}

/// What one group came to.
struct Done {
    proposed: Proposed,
    is_open: bool,
    pushed: Option<Pushed>,
    kept: Kept,
}

impl Proposal<'_> {
    /// Does what is to be done. None if the base moved on the way.
    async fn run(mut self, kept: Kept, revision: &str, open: usize) -> Result<Option<Done>, Error> {
        let Updated { contents, files, .. } = std::mem::take(&mut self.updated);
        let requests = std::mem::take(&mut self.requests);
        let (work, group) = (self.work, self.group);
        let target = &work.target;
        let writers = &work.context.writers;
        let _turn = writers.turn(target.remotes.url.as_str(), &group.branch).await;
        let head = heads::find(work, &group.branch).await?;
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
        let mut proposed = Proposed::default();
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
        let at = head.commit;
        let was_ours = matches!(head.branch, Branch::Ours { .. });
        let (commit, kept) = self.push(push, head, (contents, files.clone()), kept).await?;
        let own = match push {
            Push::Create | Push::Replace => commit.as_ref().map(|commit| commit.id),
            Push::Leave => at.filter(|_| was_ours),
            Push::Continue | Push::Delete => None,
        };
        let request = self
            .request(request, commit.as_ref(), files, &mut proposed)
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

    /// Returns whether the base is no longer at this revision.
    async fn has_moved(&self, revision: &str) -> Result<bool, Error> {
        let own = GitRepositoryRef {
            branch: Some(self.work.target.branch.clone()),
            ..Default::default()
        };
        let known = Some(revision.to_owned());
        let (outcome, _) = fetch_reference(&self.work.target, &own, known, self.work.context).await?;
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
                heads::forget(work, branch);
                Ok((None, kept))
            }
            (Push::Create | Push::Replace, Some((change, base))) => {
                let mark = Mark {
                    change: change.clone(),
                    base: base.clone(),
                    owner: work.owner().to_owned(),
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
                heads::remember(work, branch, commit.id, branch_now);
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
        let Some(theirs) = heads::checkout(work, &group.branch, head).await? else {
            return Ok(None);
        };
        let parent = theirs.checkout.resolved.commit;
        let (setters, path) = (group.setters.clone(), work.path());
        let (updated, theirs) = commit::blocking(theirs, move |theirs| {
            let Kept { checkout, plain } = theirs;
            Ok(update::update(&checkout.pack, &path, &setters, plain)?)
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
        heads::remember(work, &group.branch, commit.id, Branch::Foreign);
        Ok(Some(commit))
    }

    /// Brings the pull request to where it should be, and returns it if it is open.
    async fn request(
        &self,
        request: Request<'_>,
        commit: Option<&Commit>,
        files: update::Files,
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
            Request::Open => {
                let (title, text, change) = self.words(files)?;
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
                    self.finish(&open).await?;
                    let body = mark::marked(&text, change);
                    work.forge.edit(open.number, &title, &body).await?;
                }
                proposed.is(OPEN, format!("{} is open", named(&open)));
                proposed.event = Some(format!("opened {}\n{title}", named(&open)));
                Ok(Some(open))
            }
            Request::Edit(open) => {
                let (title, text, change) = self.words(files)?;
                if mark::is_unfinished(&open.body) {
                    self.finish(open).await?;
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

    /// Labels, and asks for reviews.
    async fn finish(&self, open: &PullRequest) -> Result<(), Error> {
        let PullRequestSpec {
            labels, reviewers, ..
        } = self.work.spec;
        if !labels.is_empty() {
            self.work.forge.label(open.number, labels).await?;
        }
        if !reviewers.is_empty() {
            self.work.forge.request_review(open, reviewers).await?;
        }
        Ok(())
    }

    /// Title, description and change of the pull request.
    fn words(&self, files: update::Files) -> Result<(String, String, &Change), Error> {
        let spec = self.work.spec;
        let Some((change, _)) = &self.wanted else {
            return Err(Error::Abandoned);
        };
        let data = data(self.work.object, self.group.policy.as_deref(), files);
        let render = |template: &Option<String>| match template {
            Some(template) => message::render(Some(template), &data).map(Some),
            None => Ok(None),
        };
        let title = render(&spec.title)?.map(|title| words::first_line(&title));
        let title = title.filter(|title| !title.is_empty());
        let automation = format!("{}/{}", data.namespace, data.name);
        let body = render(&spec.body)?.unwrap_or_else(|| words::body(&data.files, &automation));
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
        let forge = &self.work.forge;
        if let (Some(age), Some(opened)) = (&merge.minimum_age, request.opened) {
            let age = SignedDuration::try_from(age.to_std()).unwrap_or(SignedDuration::MAX);
            let time = opened.checked_add(age).unwrap_or(Timestamp::MAX);
            if Timestamp::now() < time {
                proposed.again = Some(time);
                let time = time.round(jiff::Unit::Second).unwrap_or(time);
                proposed.adds(&format!("merged at {time} at the earliest"));
                return Ok(());
            }
        }
        let commit = commit.to_string();
        match check::judge(&forge.checks(&commit).await?, &merge.checks) {
            Verdict::Waiting(names) => proposed.adds(&format!("waits for {}", listed(&names))),
            Verdict::Failed(names) => proposed.adds(&format!("not merged, as {} failed", listed(&names))),
            Verdict::Passed => {
                let method = match merge.method.unwrap_or_default() {
                    MergeMethod::Merge => Method::Merge,
                    MergeMethod::Squash => Method::Squash,
                    MergeMethod::Rebase => Method::Rebase,
                };
                match forge.merge(request.number, method, &commit).await? {
                    Merge::NotYet(why) => {
                        let why = words::first_line(&why);
                        proposed.adds(&format!("not merged yet, as the forge says: {why}"));
                    }
                    Merge::Done => {
                        *proposed = Proposed {
                            event: Some(format!("merged {}", named(request))),
                            ..Proposed::default()
                        };
                    }
                }
            }
        }
        Ok(())
    }
}

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

/// A pull request for people.
fn named(request: &PullRequest) -> String {
    match request.url.as_str() {
        "" => format!("pull request {}", request.number),
        url => format!("pull request {} ({url})", request.number),
    }
}

/// Names of checks, a few of them.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut list: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| words::first_line(name))
        .collect();
    if names.len() > SHOWN {
        list.push(format!("{} more", names.len() - SHOWN));
    }
    list.join(", ")
}
