//! Pull requests, branches and tags of a repository at a Git service.

use std::time::Duration;

use api::flux_operator::{AnyMap, ResourceSetInputProvider, ServiceFamily, Subject};
use forge::Kind;
use forge::incoming::Incoming;
use forge::reference::Reference;
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
    let (family, what) = object.spec.type_.parts();
    let kind = match family {
        ServiceFamily::GitLab => Kind::GitLab,
        ServiceFamily::Gitea => Kind::Gitea,
        _ => Kind::GitHub,
    };
    let (secret, settings) = secrets(object, context).await?;
    let ways = Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout,
    };
    let forge = remote_access::forge::open(kind, &object.spec.url, secret.as_ref(), settings, ways).await?;
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
            let takes_forks = object
                .annotations()
                .get(FORKS)
                .is_none_or(|value| value != "ignore");
            let found = found.unwrap_or_default().into_iter();
            let found = found.filter(|one| takes_forks || !one.is_fork);
            filter.pull_requests(&found.map(pull_request).collect::<Vec<_>>())
        }
    })
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
