//! A change that goes in by pull request, as a ChangePolicy says (ADR 16): one branch and one pull request for each.
//!
//! Git and the forge are the memory. Each run reads the pull requests, the base and the branch; `change_policy::plan` decides;
//! then the branch is pushed and the pull request follows. A run that was cut off anywhere is completed by the next one.

use std::sync::Arc;
use std::time::Duration;

use api::delivery::{ChangeKind, ChangePolicy, Pipeline, PullRequestSpec};
use change_policy::mark::{self, Commit as Mark};
use change_policy::plan::{self, Branch, Push, Request, Seen};
use forge::Forge;
use forge::pull_request::{Draft, PullRequest, State};
use git_client::commit::Person;
use git_client::pack::Pack;
use git_client::{Checkout, ObjectId, Outcome};
use git_writer::races;
use git_writer::request::{self, Merged, named};
use jiff::Timestamp;
use kube::ResourceExt as _;
use remote_access::error::ReadError;
use transport::stop::Stop;

use crate::change::{self, Done};
use crate::context::Context;
use crate::edit::{self, Changed, Task};
use crate::site::Site;

/// Requests to the forge may take so long each.
const FORGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the name of a branch: it becomes a file of the Git server.
const MAX_BRANCH: usize = 200;
/// Bytes of a description.
const MAX_BODY: usize = 30_000;
/// After a pull request was opened, the forge is asked again: a process that was killed before may have asked for one, too.
const SECOND_LOOK: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// Why nothing was proposed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The ChangePolicy cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be carried out.
    #[error("ChangePolicy '{name}': {problem}")]
    Invalid {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Signing in at the forge.
    #[error("failed to sign in at the Git service")]
    SignIn(#[from] remote_access::forge::Error),
    /// The forge.
    #[error(transparent)]
    Forge(#[from] forge::Error),
}

impl From<forge::Error> for change::Error {
    fn from(error: forge::Error) -> Self {
        Error::from(error).into()
    }
}

/// The name of a branch. Names of objects hold nothing that a branch may not.
pub(crate) fn branch_name(mut name: String) -> String {
    name.insert_str(0, "windlass/");
    name.truncate(name.floor_char_boundary(MAX_BRANCH));
    name
}

/// A description that a forge takes.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > MAX_BODY {
        text.truncate(text.floor_char_boundary(MAX_BODY));
        text.push('…');
    }
    text
}

/// How changes go in.
pub(crate) enum Way {
    /// By a commit on the branch.
    Commit,
    /// By a pull request, as the ChangePolicy of this name says.
    PullRequest(String, Box<PullRequestSpec>),
    /// By others, who learn of it by an event.
    Event,
}

/// A change that is proposed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// The pull request, and how it stands.
    pub(crate) line: String,
    /// The pull request, if it is open.
    pub(crate) request: Option<Box<PullRequest>>,
    /// What was done to it.
    pub(crate) event: Option<String>,
    /// When it is looked at again, where there is a time.
    pub(crate) again: Option<Timestamp>,
}

/// Reads the ChangePolicy of an environment, if it has one.
pub(crate) async fn policy(
    pipeline: &Pipeline,
    environment: &str,
    context: &Context,
) -> Result<Option<ChangePolicy>, Error> {
    let mut environments = pipeline.spec.environments.iter();
    let own = environments.find(|one| one.name == environment);
    let own = own.and_then(|own| own.change_policy_ref.as_ref());
    let Some(reference) = own.or(pipeline.spec.change_policy_ref.as_ref()) else {
        return Ok(None);
    };
    let reader = context.reader(&pipeline.namespace().unwrap_or_default());
    Ok(Some(reader.object(&reference.name).await?))
}

/// Returns how changes go into an environment.
pub(crate) async fn way(pipeline: &Pipeline, environment: &str, context: &Context) -> Result<Way, Error> {
    let Some(policy) = policy(pipeline, environment, context).await? else {
        return Ok(Way::Commit);
    };
    let name = policy.name_any();
    match (policy.spec.kind, policy.spec.pull_request) {
        (ChangeKind::Commit, _) => Ok(Way::Commit),
        (ChangeKind::Event, _) => Ok(Way::Event),
        (ChangeKind::PullRequest, Some(spec)) => Ok(Way::PullRequest(name, Box::new(spec))),
        (ChangeKind::PullRequest, None) => {
            let problem = "spec.pullRequest is missing";
            Err(Error::Invalid { name, problem })
        }
    }
}

/// Leaves a change to others, who learn of it by an event, once.
pub(crate) fn announce(task: &Task) -> Proposal {
    let line = "an event says that it is due; the change is made by others".to_owned();
    let event = || {
        let (release, values) = (task.release.number, task.values());
        let (environment, target) = (&task.wanted.environment, &task.target);
        format!("release {release} is due in {environment} ({target}): {values}")
    };
    Proposal {
        event: (task.proposed.as_ref() != Some(&line)).then(event),
        line,
        ..Proposal::default()
    }
}

async fn sign_in(site: &Site<'_>, policy: &str, spec: &PullRequestSpec) -> Result<Forge<'static>, Error> {
    let own = site.namespace;
    let url = site.repository.remotes.url.to_string();
    let address = match &spec.forge.url {
        Some(url) => url,
        // Its owner could point it to a server of theirs, which would get this namespace's token.
        None if site.key.namespace != own => {
            let problem =
                "spec.pullRequest.forge.url is required, as the GitRepository is in another namespace";
            let name = policy.to_owned();
            return Err(Error::Invalid { name, problem });
        }
        None => &url,
    };
    let context = site.context;
    let ways = remote_access::forge::Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout: FORGE_TIMEOUT.min(site.repository.timeout),
    };
    let reader = context.reader(own);
    Ok(remote_access::forge::sign_in(&spec.forge, address, &reader, ways).await?)
}

/// What is proposed.
pub(crate) trait Proposed: Send + Sync + 'static {
    /// The branch that holds it.
    fn branch(&self) -> String;
    /// Author of its commit.
    fn author(&self) -> Person;
    /// Makes it in the files of a commit.
    fn edit(&self, pack: &Pack) -> Result<Changed, edit::Error>;
    /// What identifies it.
    fn change(&self, changed: &Changed) -> mark::Change;
    /// What the pull request and the commit say first.
    fn title(&self) -> String;
    /// The message of its commit.
    fn message(&self, changed: &Changed) -> String;
    /// The description of its pull request.
    fn body(&self, changed: &Changed) -> String;
    /// Whether it is merged without a person, where the ChangePolicy says so.
    fn may_merge(&self) -> bool {
        true
    }
}

/// The work on one pull request.
pub(crate) struct Work<'a> {
    site: &'a Site<'a>,
    change: Arc<dyn Proposed>,
    spec: &'a PullRequestSpec,
    forge: Forge<'static>,
    branch: String,
    may_open: bool,
}

/// The newest commit of the branch.
struct Head {
    commit: Option<ObjectId>,
    branch: Branch,
    checkout: Option<(Checkout, Stop)>,
}

impl<'a> Work<'a> {
    /// Signs in at the forge.
    pub(crate) async fn new(
        site: &'a Site<'a>,
        change: Arc<dyn Proposed>,
        (policy, spec): (&str, &'a PullRequestSpec),
        may_open: bool,
    ) -> Result<Self, change::Error> {
        Ok(Self {
            forge: sign_in(site, policy, spec).await?,
            branch: change.branch(),
            site,
            change,
            spec,
            may_open,
        })
    }

    /// Brings the branch and the pull request to where they should be.
    pub(crate) async fn propose(&self) -> Result<Done, change::Error> {
        let writers = &self.site.context.writers;
        let _turn = writers
            .turn(self.site.repository.remotes.url.as_str(), &self.branch)
            .await;
        for attempt in 1..=races::MAX_TRIES {
            match self.pass().await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(change::Error::Push { source, .. }) if source.is_moved() => {}
                Err(error) => return Err(error),
            }
            tracing::info!("a branch was changed in the meantime, attempt {attempt}");
            races::pause().await;
        }
        Err(change::Error::Races(self.branch.clone()))
    }

    /// The pull request, if it was merged or closed and no other is open.
    pub(crate) async fn ended(&self) -> Result<Option<PullRequest>, change::Error> {
        let requests = self
            .forge
            .find(&self.branch, &self.site.repository.branch)
            .await?;
        let newest = requests
            .into_iter()
            .max_by_key(|one| (one.state == State::Open, one.number));
        Ok(newest.filter(|newest| newest.state != State::Open))
    }

    /// Deletes the branch, unless it has commits of others.
    pub(crate) async fn clear(&self) -> Result<(), change::Error> {
        let head = self.head().await?;
        match head.branch {
            Branch::Ours { .. } => self.push(head.commit, None).await,
            Branch::Missing | Branch::Foreign => Ok(()),
        }
    }

    /// One look at everything. None if the base moved on the way.
    async fn pass(&self) -> Result<Option<Done>, change::Error> {
        let site = self.site;
        let target = &site.repository.branch;
        // Before the base: a fresh merge would look as if it had been taken back.
        let mut requests = self.forge.find(&self.branch, target).await?;
        self.close_doubled(&mut requests).await?;
        let base = site.edit(&self.change, site.checkout(target).await?).await?;
        let (revision, commit) = (base.revision.clone(), base.commit);
        let below = edit::base(&base.changed, &base.pack).map_err(edit::Error::from)?;
        let wanted = below.map(|below| (self.change.change(&base.changed), below));
        let head = self.head().await?;
        let seen = Seen {
            wanted: wanted.as_ref().map(|(change, _)| change),
            base: wanted.as_ref().map(|(_, base)| base),
            branch: head.branch.clone(),
            requests: &requests,
            may_open: self.may_open,
            is_settled: true,
        };
        let (push, request) = plan::plan(&seen);
        if matches!(request, Request::Reverted(_)) && self.has_moved(revision).await? {
            return Ok(None);
        }
        if let Request::Close(request) = request {
            let text = format!("`{target}` has these values by now.");
            self.forge.comment(request.number, &text).await?;
            if let Err(error) = self.forge.close(request.number).await {
                // It may have been merged since it was looked at: forges do not close what is merged.
                let now = self.forge.find(&self.branch, target).await?;
                let is_open = now
                    .iter()
                    .any(|one| one.number == request.number && one.state == State::Open);
                return match is_open {
                    true => Err(error.into()),
                    false => Ok(None),
                };
            }
        }
        let body = self.change.body(&base.changed);
        let at = head.commit;
        let was_ours = matches!(head.branch, Branch::Ours { .. });
        let own = match (push, &wanted) {
            (Push::Delete, _) => {
                self.push(at, None).await?;
                None
            }
            (Push::Create | Push::Replace, Some((change, below))) => {
                let mark = Mark {
                    change: change.clone(),
                    base: below.clone(),
                    owner: self.owner(),
                };
                let message = mark.signed_off(&self.change.message(&base.changed));
                let commit = site.write(self.change.author(), base, message).await?;
                self.push(at, Some(&commit)).await?;
                Some(commit.id)
            }
            (Push::Continue, _) => {
                self.add_to(head).await?;
                None
            }
            (Push::Leave | Push::Create | Push::Replace, _) => at.filter(|_| was_ours),
        };
        let Some((change, _)) = &wanted else {
            return Ok(Some(Done::Committed {
                commit: commit.to_string(),
                is_new: false,
            }));
        };
        let mut proposal = Proposal::default();
        // Without a mark it is a person's, and is not merged by us.
        let is_theirs = matches!(request, Request::Keep(open) if mark::change_of(&open.body).is_none());
        let open = self
            .request(
                request,
                &mark::marked(&body, change),
                &body,
                change,
                &mut proposal,
            )
            .await?;
        if let (Some(open), Some(own), Some(merge)) = (&open, own, &self.spec.merge)
            && self.change.may_merge()
            && !is_theirs
        {
            match request::merge(&self.forge, open, own, merge).await? {
                // The base has it: seen by another look.
                Merged::Done => return Ok(None),
                Merged::NotYet(text, again) => {
                    proposal.line = format!("{}, {text}", proposal.line);
                    proposal.again = proposal.again.into_iter().chain(again).min();
                }
            }
        }
        proposal.request = open.map(Box::new);
        Ok(Some(Done::Proposed(proposal)))
    }

    /// The UID of the object.
    fn owner(&self) -> String {
        self.site.uid.to_owned()
    }

    async fn push(
        &self,
        from: Option<ObjectId>,
        commit: Option<&git_writer::commit::Commit>,
    ) -> Result<(), change::Error> {
        let pushed = self.site.push(&self.branch, from, commit).await;
        pushed.map_err(|source| change::Error::Push {
            branch: self.branch.clone(),
            source,
        })
    }

    async fn head(&self) -> Result<Head, change::Error> {
        use git_writer::branch::Error::Fetch;
        let fetched = match self.site.fetch(&self.branch, None).await {
            Err(Fetch(git_client::Error::FindReference { .. })) => {
                return Ok(Head {
                    commit: None,
                    branch: Branch::Missing,
                    checkout: None,
                });
            }
            fetched => fetched,
        };
        let (outcome, stop) = fetched.map_err(|source| change::Error::Fetch {
            branch: self.branch.clone(),
            source,
        })?;
        let Outcome::Fetched(checkout) = outcome else {
            return Err(change::Error::Abandoned);
        };
        let bytes = checkout.pack.commit().map_err(edit::Error::from)?;
        Ok(Head {
            commit: Some(checkout.resolved.commit),
            branch: git_writer::owner::judge(&bytes, self.site.uid, &self.change.author().email),
            checkout: Some((*checkout, stop)),
        })
    }

    /// Adds a commit to those of others, unless they have made the change already.
    async fn add_to(&self, head: Head) -> Result<(), change::Error> {
        let Some((theirs, stop)) = head.checkout else {
            return Ok(());
        };
        let base = self.site.edit(&self.change, (theirs, stop)).await?;
        if base.changed.is_empty() {
            return Ok(());
        }
        // Without a mark: it stands on the work of others, and must never be replaced.
        let (parent, message) = (base.commit, self.change.message(&base.changed));
        let commit = self.site.write(self.change.author(), base, message).await?;
        self.push(Some(parent), Some(&commit)).await
    }

    /// Returns whether the base is no longer at this revision.
    async fn has_moved(&self, revision: String) -> Result<bool, change::Error> {
        let branch = &self.site.repository.branch;
        let fetched = self.site.fetch(branch, Some(revision)).await;
        let (outcome, _) = fetched.map_err(|source| change::Error::Fetch {
            branch: branch.clone(),
            source,
        })?;
        Ok(!matches!(outcome, Outcome::Unchanged(_)))
    }

    /// Closes all open pull requests of ours but the first.
    async fn close_doubled(&self, requests: &mut Vec<PullRequest>) -> Result<(), change::Error> {
        let doubled: Vec<u64> = plan::doubled(requests).iter().map(|one| one.number).collect();
        for number in &doubled {
            let text = "Another pull request is open for this branch.";
            self.forge.comment(*number, text).await?;
            self.forge.close(*number).await?;
        }
        requests.retain(|one| !doubled.contains(&one.number));
        Ok(())
    }

    /// Brings the pull request to where it should be, and returns it if it is open.
    async fn request(
        &self,
        request: Request<'_>,
        marked: &str,
        body: &str,
        change: &mark::Change,
        proposal: &mut Proposal,
    ) -> Result<Option<PullRequest>, change::Error> {
        let title = self.change.title();
        let is_open = |open: &PullRequest| format!("{} is open", named(open));
        let (line, event, open) = match request {
            Request::None | Request::Close(_) => return Ok(None),
            Request::Keep(open) => (is_open(open), None, Some(open.clone())),
            Request::Open => {
                let needs_more = !self.spec.labels.is_empty() || !self.spec.reviewers.is_empty();
                let unfinished = mark::unfinished(body, change);
                let draft = Draft {
                    head: &self.branch,
                    base: &self.site.repository.branch,
                    title: &title,
                    body: if needs_more { &unfinished } else { marked },
                };
                let open = self.forge.open(draft).await?;
                if needs_more {
                    request::finish(&self.forge, self.spec, &open).await?;
                    self.forge.edit(open.number, &title, marked).await?;
                }
                proposal.again = Timestamp::now().checked_add(SECOND_LOOK).ok();
                (
                    is_open(&open),
                    Some(format!("opened {}", named(&open))),
                    Some(open),
                )
            }
            Request::Edit(open) => {
                if mark::is_unfinished(&open.body) {
                    request::finish(&self.forge, self.spec, open).await?;
                }
                self.forge.edit(open.number, &title, marked).await?;
                let event = format!("updated {}", named(open));
                (is_open(open), Some(event), Some(open.clone()))
            }
            Request::Declined(closed) => {
                let line = format!("not proposed again: {} was closed", named(closed));
                (line, None, None)
            }
            Request::Reverted(merged) => {
                let (merged, base) = (named(merged), &self.site.repository.branch);
                let line =
                    format!("not proposed again: {merged} was merged, and '{base}' no longer has its values");
                (line, None, None)
            }
            Request::Occupied => {
                let line = format!("not proposed: the branch '{}' has commits of others", self.branch);
                (line, None, None)
            }
            Request::TooMany => {
                let most = self.spec.max_open.unwrap_or_default();
                (format!("waits for one of {most} open pull requests"), None, None)
            }
        };
        (proposal.line, proposal.event) = (line, event.map(|event| format!("{event}: {title}")));
        Ok(open)
    }
}
