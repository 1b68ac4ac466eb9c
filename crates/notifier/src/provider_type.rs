//! The types of Providers by their names, and what each can.

use std::fmt;
use std::str::FromStr;

/// A type that Flux does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("provider {0} not supported")]
pub struct UnknownType(String);

macro_rules! provider_types {
    ($($variant:ident = $name:literal,)*) => {
        /// Which service a Provider is for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "they are names of services")]
        pub enum ProviderType {
            $($variant,)*
        }

        impl ProviderType {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in `spec.type`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

provider_types! {
    Generic = "generic",
    GenericHmac = "generic-hmac",
    Slack = "slack",
    Discord = "discord",
    MsTeams = "msteams",
    Rocket = "rocket",
    GoogleChat = "googlechat",
    Webex = "webex",
    Telegram = "telegram",
    Lark = "lark",
    Matrix = "matrix",
    Zulip = "zulip",
    Zoom = "zoom",
    Opsgenie = "opsgenie",
    PagerDuty = "pagerduty",
    IncidentIo = "incident.io",
    Sentry = "sentry",
    DataDog = "datadog",
    Grafana = "grafana",
    Alertmanager = "alertmanager",
    GitHub = "github",
    GitLab = "gitlab",
    Gitea = "gitea",
    Bitbucket = "bitbucket",
    BitbucketServer = "bitbucketserver",
    AzureDevOps = "azuredevops",
    GitHubPullRequestComment = "githubpullrequestcomment",
    GitLabMergeRequestComment = "gitlabmergerequestcomment",
    GiteaPullRequestComment = "giteapullrequestcomment",
    GitHubDispatch = "githubdispatch",
    GooglePubSub = "googlepubsub",
    AzureEventHub = "azureeventhub",
    Nats = "nats",
    Otel = "otel",
}

impl ProviderType {
    /// Returns whether it sets the status of a commit.
    pub fn is_commit_status(self) -> bool {
        use ProviderType::{AzureDevOps, Bitbucket, BitbucketServer, GitHub, GitLab, Gitea};
        matches!(
            self,
            GitHub | GitLab | Gitea | Bitbucket | BitbucketServer | AzureDevOps
        )
    }

    /// Returns whether it comments on a pull request or merge request.
    pub fn is_change_request(self) -> bool {
        use ProviderType::{GitHubPullRequestComment, GitLabMergeRequestComment, GiteaPullRequestComment};
        matches!(
            self,
            GitHubPullRequestComment | GitLabMergeRequestComment | GiteaPullRequestComment
        )
    }

    /// Returns whether it passes the event on as it is.
    pub fn is_generic(self) -> bool {
        matches!(self, Self::Generic | Self::GenericHmac)
    }

    /// Returns whether it can keep what is said of one object together: in a thread, a topic, or one message that changes.
    /// Some need more than their plain webhook for it, and then say single messages as without.
    pub fn can_thread(self) -> bool {
        use ProviderType::{Discord, GoogleChat, Matrix, Slack, Telegram, Webex, Zulip};
        self.is_change_request()
            || matches!(
                self,
                Slack | Discord | GoogleChat | Webex | Telegram | Matrix | Zulip
            )
    }

    /// Returns whether what it opens for [`crate::State::Firing`] is closed by [`crate::State::Resolved`].
    pub fn can_resolve(self) -> bool {
        use ProviderType::{Alertmanager, DataDog, IncidentIo, Opsgenie, PagerDuty};
        matches!(self, PagerDuty | Opsgenie | Alertmanager | IncidentIo | DataDog)
    }

    /// Returns whether the path of its address lets in whoever knows it.
    pub(crate) fn has_secret_address(self) -> bool {
        use ProviderType::{
            Discord, Generic, GenericHmac, GoogleChat, IncidentIo, Lark, MsTeams, Rocket, Slack, Zoom,
        };
        matches!(
            self,
            Generic
                | GenericHmac
                | Slack
                | Discord
                | MsTeams
                | Rocket
                | GoogleChat
                | Lark
                | Zoom
                | IncidentIo
        )
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for ProviderType {
    type Err = UnknownType;

    fn from_str(name: &str) -> Result<Self, UnknownType> {
        let mut all = Self::ALL.iter().copied();
        all.find(|known| known.as_str() == name)
            .ok_or_else(|| UnknownType(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_34_types_of_flux_are_known_by_their_names() {
        assert_eq!(ProviderType::ALL.len(), 34);
        for known in ProviderType::ALL {
            assert_eq!(known.as_str().parse(), Ok(*known));
        }
        let unknown = "pigeon".parse::<ProviderType>().unwrap_err();
        assert_eq!(unknown.to_string(), "provider pigeon not supported");
    }
}
