//! Changes by pull request: which ones, on which branch, and what became of them.
//!
//! Git and the forge are the only memory. Each run reads the base, the branch of each group of changes and its pull requests;
//! `change_policy::plan` decides; then the branch is pushed and the pull request follows. A run that was cut off anywhere is
//! completed by the next one.

mod branch;
mod group;
pub(crate) mod heads;
mod words;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{Grouping, PullRequestSpec};
use api::image::{ImagePolicy, ImageUpdateAutomation};
use change_policy::mark::{Change, Commit as Mark};
use controller_kit::jitter::random;
use forge::Forge;
use forge::pull_request::{PullRequest, State};
use git_client::ObjectId;
use git_client::push::Move;
use jiff::Timestamp;
use yaml_setters::Setters;

use self::group::Proposal;
use super::checkout::{Fetched, fetch, keep, within};
use super::commit::{self, Commit};
use super::kept::{Kept, Place};
use super::signing::Key;
use super::target::{self, Target};
use super::update::{self, Updated};
use super::{Chosen, Error, MAX_TRIES, PAUSE, Run, message};
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
        let ((notes, each), mut kept) = within(self.target.timeout, &stop, updating).await?;
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
