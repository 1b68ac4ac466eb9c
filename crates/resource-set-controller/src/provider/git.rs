//! Pull requests, branches and tags of a repository at a Git service.

use std::time::Duration;

use api::flux_operator::{AnyMap, ResourceSetInputProvider, ServiceFamily, Subject};
use forge::incoming::Incoming;
use forge::reference::Reference;
use forge::{Forge, Kind};
use kube::ResourceExt as _;
use remote_access::forge::Ways;
use resource_set::found::{Filter, Named, PullRequest};

use super::{Error, secrets};
use crate::context::Context;

/// Annotation of a provider: `ignore` leaves out pull requests from forks.
const FORKS: &str = "windlass.dev/pull-requests-from-forks";

/// Lists what the type says.
pub(super) async fn read(
    object: &ResourceSetInputProvider,
    filter: &Filter,
    timeout: Duration,
    context: &Context,
) -> Result<Vec<AnyMap>, Error> {
    let (_, what) = object.spec.type_.parts();
    let forge = open(object, timeout, context).await?;
    let failed = |error: forge::Error| Error::Forge(error.into());
    Ok(match what {
        Subject::Branches => filter.branches(named(forge.branches().await.map_err(failed)?)),
        Subject::Tags => {
            let tags = named(forge.tags().await.map_err(failed)?);
            let counting = filter.tags(tags.iter().map(|tag| tag.name.as_str())).into_iter();
            let counting = counting.filter_map(|name| tags.iter().find(|tag| tag.name == name));
            counting.map(|tag| tag.inputs("tag", "sha")).collect()
        }
        _ => {
            let found = forge.incoming(None, &mut None).await.map_err(failed)?;
            let found = found.unwrap_or_default().into_iter();
            let found = found.filter(|one| !one.is_fork || !ignores_forks(object));
            filter.pull_requests(&found.map(pull_request).collect::<Vec<_>>())
        }
    })
}

/// Opens the repository of a provider, with its Secret.
pub(crate) async fn open(
    object: &ResourceSetInputProvider,
    timeout: Duration,
    context: &Context,
) -> Result<Forge<'static>, Error> {
    let kind = match object.spec.type_.parts().0 {
        ServiceFamily::GitLab => Kind::GitLab,
        ServiceFamily::Gitea => Kind::Gitea,
        ServiceFamily::AzureDevOps => Kind::AzureDevOps,
        _ => Kind::GitHub,
    };
    let (secret, settings) = secrets(object, context).await?;
    let ways = Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout,
    };
    let opened = remote_access::forge::open(kind, &object.spec.url, secret.as_ref(), settings, ways);
    Ok(opened.await?)
}

/// Returns whether pull requests from forks are left out.
pub(crate) fn ignores_forks(object: &ResourceSetInputProvider) -> bool {
    object
        .annotations()
        .get(FORKS)
        .is_some_and(|value| value == "ignore")
}

fn named(found: Vec<Reference>) -> Vec<Named> {
    let named = found.into_iter().map(|reference| Named {
        name: reference.name,
        target: reference.commit,
    });
    named.collect()
}

fn pull_request(one: Incoming) -> PullRequest {
    PullRequest {
        number: one.request.number,
        sha: one.request.commit,
        branch: one.request.head,
        author: one.author,
        title: one.request.title,
        labels: one.labels,
    }
}
