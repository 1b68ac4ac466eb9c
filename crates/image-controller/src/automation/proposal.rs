//! Changes by pull request: which ones, on which branch, and what became of them.
//!
//! Git and the forge are the only memory. Each run reads the base, the branch of each group of changes and its pull requests;
//! `change_policy::plan` decides; then the branch is pushed and the pull request follows. A run that was cut off anywhere is
//! completed by the next one.

mod group;
mod objects;
mod origin;
mod words;
mod work;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{Grouping, PullRequestSpec};
use api::image::{ImagePolicy, ImageUpdateAutomation};
use forge::Forge;
use forge::pull_request::{PullRequest, State};

use self::group::Proposal;
use self::work::{Group, Work};
use super::branch::wanted;
use super::checkout::{Fetched, fetch, keep, within};
use super::chosen::{self, Chosen};
use super::commit;
use super::error::Error;
use super::kept::Kept;
use super::run::{Looked, Run};
use super::scope::Scope;
use super::target::{self, Target};
use super::update::{self, Updated};
use super::{message, races};
use crate::context::Context;

/// Bytes of the name of a branch: it becomes a file of the Git server.
const MAX_BRANCH: usize = 200;
/// Requests to the forge may take so long each.
const FORGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A run may take so long: each group asks the forge several times, and a worker waits for it.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Groups of one automation.
const MAX_GROUPS: usize = 100;

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
    let scope = Scope::read(object)?;
    if spec.kustomizations.is_empty() {
        target.part = scope.part(); // what is built may lie anywhere
    }
    let groups = groups(object, policies, spec, &scope, &target.branch)?;
    let address = address(object, spec, &target)?;
    let work = Work {
        forge: sign_in(object, spec, &address, target.timeout, context).await?,
        address,
        key: commit::key(object, context).await?,
        object,
        spec,
        target,
        context,
        is_settled: chosen.is_settled,
    };
    let all = update::values(policies.iter().map(|policy| &**policy), &scope);
    for attempt in 1..=races::MAX_TRIES {
        let pass = tokio::time::timeout(RUN_TIMEOUT, work.pass(&groups, &all));
        let passed = pass.await.unwrap_or_else(|_| {
            let problem =
                "the pull requests took more than 5 minutes; the next run goes on where this one stopped";
            Err(Error::Forge(forge::Error::passing(problem)))
        });
        match passed {
            Err(Error::Push(error)) if error.is_moved() => {
                tracing::info!("a branch was changed in the meantime, attempt {attempt}");
                races::lost(work.context).await;
            }
            Ok(None) => tracing::info!("the base was changed in the meantime, attempt {attempt}"),
            Ok(Some(run)) => return Ok(run),
            Err(error) => return Err(error),
        }
    }
    Err(Error::Races(work.target.branch.clone()))
}

/// The address of the repository at the forge.
fn address(object: &ImageUpdateAutomation, spec: &PullRequestSpec, target: &Target) -> Result<String, Error> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    match &spec.forge.url {
        Some(url) => Ok(url.clone()),
        // Whoever owns the GitRepository could point it to a server of theirs, which would get this namespace's token.
        None if target::source_of(object).namespace != namespace => {
            let problem = "spec.pullRequest.forge.url is required in the ChangePolicy, as the GitRepository is in another \
                           namespace";
            Err(target::Error::Invalid(problem.to_owned()).into())
        }
        None => Ok(target.remotes.url.to_string()),
    }
}

async fn sign_in(
    object: &ImageUpdateAutomation,
    spec: &PullRequestSpec,
    address: &str,
    timeout: Duration,
    context: &Context,
) -> Result<Forge<'static>, Error> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let ways = remote_access::forge::Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout: FORGE_TIMEOUT.min(timeout),
    };
    let reader = context.reader(namespace);
    Ok(remote_access::forge::sign_in(&spec.forge, address, &reader, ways).await?)
}

/// The groups of changes, with their branches.
fn groups(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    spec: &PullRequestSpec,
    scope: &Scope,
    base: &str,
) -> Result<Vec<Group>, Error> {
    let group = |policy: Option<&str>, policies: &[Arc<ImagePolicy>]| {
        Ok::<_, Error>(Group {
            branch: branch_name(object, spec, policy, base)?,
            policy: policy.map(str::to_owned),
            policies: policies.to_vec(),
            values: update::values(policies.iter().map(|policy| &**policy), scope),
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
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let mut names = HashSet::new();
    let mut groups = Vec::new();
    for policy in policies {
        let name = chosen::name(policy, own, '.');
        let group = group(Some(&name), std::slice::from_ref(policy))?;
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
    let data = message::Data::new(object, Some(policy.unwrap_or_default()), update::Files::default());
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

impl Work<'_> {
    /// One look at everything; None if the base moved on the way.
    async fn pass(&self, groups: &[Group], all: &update::Values) -> Result<Option<Run>, Error> {
        let place = self.target.place(self.object);
        let kept = place.as_ref().and_then(|place| self.context.kept.take(place));
        let fetched = fetch(&self.target, None, kept, self.context).await?;
        let Fetched::Checkout { kept, stop, .. } = fetched else {
            return Ok(None); // it is fetched without a revision that is known
        };
        let base = kept.checkout.resolved.commit;
        let revision = kept.checkout.resolved.revision.clone();
        let mut run = Run {
            revision,
            ..Run::default()
        };
        let values: Vec<_> = groups.iter().map(|group| group.values.clone()).collect();
        let all = all.clone();
        let updating = commit::blocking(kept, move |kept| {
            let Kept { checkout, plain } = kept;
            let whole = update::update(&checkout.pack, &all, plain)?;
            let mut each = Vec::new();
            for values in &values {
                // Most runs find nothing, whatever the groups are.
                let updated = if whole.contents.is_empty() {
                    Updated::default()
                } else {
                    update::update(&checkout.pack, values, plain)?
                };
                let wanted = wanted(&checkout.pack, &updated)?;
                each.push((updated, wanted));
            }
            Ok((whole.all_notes(), whole.tallies, each))
        });
        let ((notes, tallies, each), mut kept) = within(self.target.timeout, &stop, updating).await?;
        run.notes = Some(notes);
        run.looked = Some(Looked {
            base: base.to_string(),
            tallies,
        });
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
            run.commits += u64::from(done.pushed.is_some());
            run.pushed = done.pushed.or(run.pushed);
            run.proposed.push(done.proposed);
            kept = done.kept;
        }
        run.open = open;
        keep(place, Some(kept), self.context);
        Ok(Some(run))
    }
}
