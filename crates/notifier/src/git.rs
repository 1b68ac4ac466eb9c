//! Messages to Git services: the status of a commit, a comment on a change request, a dispatch.
//!
//! Pure parts: [`revision`] (which commit), [`status`], [`deployment`] and [`comment`] (what to say).
//! Then a file for each service and what is said there, through `forge`.

mod azure_devops;
mod bitbucket;
mod bitbucket_server;
mod comment;
mod deployment;
mod gitea;
mod github;
mod gitlab;
mod revision;
mod status;
mod token;

use crate::edge::Http;
use crate::error::Error;
use crate::notification::{Notification, Sent};
use crate::provider_type::ProviderType as Type;
use crate::target::Target;

/// Returns whether this type is here.
pub(crate) fn has(type_: Type) -> bool {
    type_.is_commit_status() || type_.is_change_request() || type_ == Type::GitHubDispatch
}

/// Says it.
pub(crate) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    match http.target.type_ {
        Type::GitHub => github::status::send(http, notification).await,
        Type::GitHubPullRequestComment => github::comment::send(http, notification).await,
        Type::GitHubDispatch => github::dispatch::send(http, notification).await,
        Type::GitLab => gitlab::status::send(http, notification).await,
        Type::GitLabMergeRequestComment => gitlab::comment::send(http, notification).await,
        Type::Gitea => gitea::status::send(http, notification).await,
        Type::GiteaPullRequestComment => gitea::comment::send(http, notification).await,
        Type::Bitbucket => bitbucket::send(http, notification).await,
        Type::BitbucketServer => bitbucket_server::send(http, notification).await,
        Type::AzureDevOps => azure_devops::send(http, notification).await,
        other => Err(Error::invalid(format!("provider {other} is not a Git service"))),
    }
}

/// Checks a target.
pub(crate) fn check(target: &Target) -> Result<(), Error> {
    match target.type_ {
        Type::GitLab | Type::GitLabMergeRequestComment => gitlab::check(target),
        Type::Gitea | Type::GiteaPullRequestComment => gitea::check(target),
        Type::Bitbucket => bitbucket::check(target),
        Type::BitbucketServer => bitbucket_server::check(target),
        Type::AzureDevOps => azure_devops::check(target),
        _ => github::check(target),
    }
}

#[cfg(test)]
pub(crate) mod tests;
