//! Types of receivers: the services that can call.

use std::fmt;
use std::str::FromStr;

/// The type of a Receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReceiverType {
    /// Anyone who knows the path.
    Generic,
    /// Anyone who signs with the token.
    GenericHmac,
    /// Anyone with a token of a trusted issuer.
    GenericOidc,
    /// GitHub, and Gitea.
    GitHub,
    /// GitLab.
    GitLab,
    /// Bitbucket Server and Cloud.
    Bitbucket,
    /// Harbor.
    Harbor,
    /// Docker Hub.
    DockerHub,
    /// Quay.
    Quay,
    /// Google's registries, through Pub/Sub.
    Gcr,
    /// Nexus Repository Manager.
    Nexus,
    /// Azure Container Registry.
    Acr,
    /// Anyone who sends CDEvents.
    CdEvents,
}

impl ReceiverType {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Generic,
        Self::GenericHmac,
        Self::GenericOidc,
        Self::GitHub,
        Self::GitLab,
        Self::Bitbucket,
        Self::Harbor,
        Self::DockerHub,
        Self::Quay,
        Self::Gcr,
        Self::Nexus,
        Self::Acr,
        Self::CdEvents,
    ];

    /// As `spec.type` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::GenericHmac => "generic-hmac",
            Self::GenericOidc => "generic-oidc",
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Bitbucket => "bitbucket",
            Self::Harbor => "harbor",
            Self::DockerHub => "dockerhub",
            Self::Quay => "quay",
            Self::Gcr => "gcr",
            Self::Nexus => "nexus",
            Self::Acr => "acr",
            Self::CdEvents => "cdevents",
        }
    }

    /// Returns whether it takes the body to know if a call is allowed. For the others it is in the headers, or there is nothing to know.
    pub fn looks_at_body(self) -> bool {
        !matches!(
            self,
            Self::Generic | Self::GenericOidc | Self::GitLab | Self::Harbor
        )
    }
}

impl fmt::Display for ReceiverType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no type of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("receiver type {0:?} not supported")]
pub struct UnknownType(String);

impl FromStr for ReceiverType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<Self, UnknownType> {
        let found = Self::ALL.into_iter().find(|type_| type_.as_str() == text);
        found.ok_or_else(|| UnknownType(text.to_owned()))
    }
}
