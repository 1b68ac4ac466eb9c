//! `windlass bootstrap`: writes the controllers, and what delivers them, to a repository, and has the cluster deliver itself from it.
//!
//! ```text
//! origin ─▶ branch: what is there ─▶ files: what is to be there ─▶ commit, push
//!        ─▶ access: Secret, deploy key ─▶ delivery: components and sync objects, until the commit is delivered
//! ```
//!
//! Each step looks at what is there before it changes it, so that the command can be run again: after a failure, with other
//! values, with a newer version of itself (ADR 32).

mod access;
mod branch;
mod delivery;
mod files;
mod flags;
mod origin;
mod proposal;
mod sync;

use clap::{Args, Subcommand};

use crate::cluster::output::Colours;
use crate::cluster::{self, Cluster, Failure, print};
use crate::install::{self, Wanted};
use crate::platform::lock::Lock;
use crate::platform::{Platform, chart, rights};
use branch::{Branch, Pushed};
use delivery::Delivery;
use files::{Bootstrap, Layout};
use flags::{ForgeFlags, GitFlags, Shared};
use forge::Kind;
use origin::Origin;

/// Command line of `bootstrap`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    at: At,
}

#[derive(Debug, Subcommand)]
enum At {
    /// A repository at GitHub or GitHub Enterprise; the token is $GITHUB_TOKEN.
    Github(Box<ForgeFlags>),
    /// A project at GitLab; the token is $GITLAB_TOKEN.
    Gitlab(Box<ForgeFlags>),
    /// A repository at Gitea or Forgejo; the token is $GITEA_TOKEN.
    Gitea(Box<ForgeFlags>),
    /// A repository at Bitbucket Server or Data Center; the token is $BITBUCKET_TOKEN.
    BitbucketServer(Box<ForgeFlags>),
    /// A repository at Azure DevOps, with --owner ORGANISATION/PROJECT; the token is $AZURE_DEVOPS_TOKEN.
    AzureDevops(Box<ForgeFlags>),
    /// A repository at any Git server, which must exist.
    Git(Box<GitFlags>),
}

/// Bootstraps. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let (mut origin, shared) = match &flags.at {
        At::Github(flags) => (flags.origin(Kind::GitHub)?, &flags.shared),
        At::Gitlab(flags) => (flags.origin(Kind::GitLab)?, &flags.shared),
        At::Gitea(flags) => (flags.origin(Kind::Gitea)?, &flags.shared),
        At::BitbucketServer(flags) => (flags.origin(Kind::BitbucketServer)?, &flags.shared),
        At::AzureDevops(flags) => (flags.origin(Kind::AzureDevOps)?, &flags.shared),
        At::Git(flags) => (flags.origin()?, &flags.shared),
    };
    shared.check()?;
    cluster::run(&shared.place.cluster(), async |cluster| {
        bootstrap(&cluster, &mut origin, shared, &report_line).await
    })
}

async fn bootstrap(
    cluster: &Cluster,
    origin: &mut Origin,
    shared: &Shared,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    let platform = Platform::new(cluster);
    rights::check(&platform.client, &platform.namespace, "bootstrap Windlass").await?;
    install::suits(&platform).await?;
    let delivery = Delivery::look(cluster, &platform).await?;
    delivery.refuse_path(shared)?;
    origin.sign_in(&platform, shared, report_line).await?;
    let known = origin.known().await?;
    let moved_from = delivery.path().filter(|path| *path != shared.path);
    let folders: Vec<String> = moved_from
        .iter()
        .copied()
        .chain([shared.path.as_str()])
        .map(str::to_owned)
        .collect();
    let branch = Branch::read(origin, known.is_there, &shared.branch, &folders).await?;
    let before = Layout::find(&branch, moved_from.unwrap_or(&shared.path), &platform.namespace)?;
    delivery.refuse_flux(&before)?;
    let layout = before.at(moved_from, &shared.path);
    let known = match shared.dry_run {
        true => known,
        false => origin.make(known, &shared.branch, report_line).await?,
    };
    let access = access::Plan::new(&platform.client, origin, &known, shared).await?;

    let values = files::values(&branch, &before, shared)?;
    let wanted = Wanted::new(&platform, chart::load()?, None, Some(values.clone())).await?;
    let bootstrap = Bootstrap {
        release: &wanted.release,
        namespace: &platform.namespace,
        values: &values,
        url: access.url(),
        secret: access.secret(),
        shared,
    };
    let files = bootstrap.files(&branch, (&before, &layout), moved_from)?;
    let objects = files::built(&branch, &layout, &files)?;
    files::keeps_definitions(&branch, &before, &objects)?;

    if shared.dry_run {
        let plan = delivery.plan(&platform, &objects).await?;
        return print(&format!(
            "{}{}{}",
            known.shown(),
            files::shown(&branch, &files),
            plan.shown(Colours::of_terminal())
        ));
    }
    let message = shared.message(layout.is_there, &platform.namespace);
    if shared.pull_request
        && let Some(opened) = proposal::open(origin, &branch, &files, &message, shared, report_line).await?
    {
        return print(&opened);
    }
    platform.create_namespace().await?;
    let lock = Lock::take(&platform.client, &platform.namespace, report_line).await?;
    let work = async {
        let access = access
            .carry_out(&platform.client, origin, shared, report_line)
            .await?;
        let pushed = branch.push(origin, files, &message, shared, report_line).await?;
        delivery
            .carry_out(cluster, &platform, objects, &pushed.commit, shared, report_line)
            .await?;
        access.forget_old_key(origin, report_line).await?;
        Ok(pushed)
    };
    let done = platform.interruptible(Some(&lock), work).await;
    lock.give_up().await;
    print(&summary(&done?, &layout, &platform, shared, &delivery))
}

fn summary(
    pushed: &Pushed,
    layout: &Layout,
    platform: &Platform,
    shared: &Shared,
    delivery: &Delivery,
) -> String {
    let name = &platform.namespace;
    let what = match pushed.is_new {
        true => format!("commit {} of branch {}", pushed.commit, shared.branch),
        false => format!(
            "commit {} of branch {}, which had all files already",
            pushed.commit, shared.branch
        ),
    };
    let mut text = format!(
        "{what}\nThe cluster delivers itself from ./{}: Kustomization/{name}/{name} is ready at that commit.\n\
         To upgrade or to change values, run the command again; to patch the controllers, edit {}/kustomization.yaml.\n",
        shared.path, layout.folder,
    );
    if delivery.was_flux() && pushed.is_new {
        text.push_str(&format!(
            "Flux's controllers were replaced. To give the cluster back to Flux: git revert {}\n",
            pushed.commit
        ));
    }
    text
}
