//! The repository of a bootstrap: where it is, how this command signs in, and, at a forge, its making.

use std::path::PathBuf;
use std::time::Duration;

use forge::hosting::{Draft, Hosted};
use forge::{Forge, Kind};
use git_client::{Remote, Way, auth};
use remote_access::forge::Ways;
use remote_access::identity::Identities;
use transport::auth::SecretData;
use transport::http::Clients;
use url::Url;

use crate::cluster::Failure;

/// How long a request to a forge may take.
const FORGE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a fetch or a push may take.
pub(super) const GIT_TIMEOUT: Duration = Duration::from_secs(120);

/// A repository, and how this command gets in.
pub(super) struct Origin {
    /// Where it is fetched from and pushed to.
    pub(super) url: Url,
    /// As in a Secret of a GitRepository.
    pub(super) secret: SecretData,
    pub(super) at: At,
}

/// What is there besides Git.
pub(super) enum At {
    Forge {
        kind: Kind,
        personal: bool,
        private: bool,
        ssh_host: Option<String>,
        /// The cluster gets the token.
        token_auth: bool,
        /// The deploy key may push.
        read_write: bool,
    },
    Git,
}

/// What a forge knows of the repository.
pub(super) struct Known {
    pub(super) is_there: bool,
    /// At plain Git servers nothing more is known.
    hosted: Option<Hosted>,
    url: String,
}

impl Known {
    /// The address for ssh as the forge has it, or nothing.
    pub(super) fn ssh(&self) -> &str {
        self.hosted.as_ref().map_or("", |hosted| &hosted.ssh)
    }

    /// One line for a dry run, if the repository would be made.
    pub(super) fn shown(&self) -> String {
        match self.is_there {
            true => String::new(),
            false => format!("create repository {}\n", self.url),
        }
    }
}

impl Origin {
    /// The forge, signed in.
    pub(super) async fn forge(&self) -> Result<Option<Forge<'static>>, Failure> {
        let At::Forge { kind, .. } = self.at else {
            return Ok(None);
        };
        let settings =
            transport::auth::tls(&self.secret).map_err(|error| failed("read --ca-file", &error))?;
        let mut login = self.secret.clone();
        // Only a server of Bitbucket tells names and tokens apart.
        if kind != Kind::BitbucketServer || self.secret.get("username").is_some_and(|name| name == b"git") {
            let token = login.remove("password").unwrap_or_default();
            login.insert("token".to_owned(), token);
        }
        let clients = Clients::default();
        let identities = Identities::new(1, Duration::ZERO, false, "");
        let ways = Ways {
            clients: &clients,
            identities: &identities,
            timeout: FORGE_TIMEOUT,
        };
        let forge = remote_access::forge::open(kind, self.url.as_str(), Some(&login), settings, ways).await;
        forge
            .map(Some)
            .map_err(|error| failed(&format!("sign in at {kind}"), &error))
    }

    /// Looks for the repository.
    pub(super) async fn known(&self) -> Result<Known, Failure> {
        let mut known = Known {
            is_there: true,
            hosted: None,
            url: self.url.to_string(),
        };
        if let Some(forge) = self.forge().await? {
            known.hosted = forge.hosted().await.map_err(|error| of_forge(&error))?;
            known.is_there = known.hosted.is_some();
        }
        Ok(known)
    }

    /// Makes the repository if it is not there.
    pub(super) async fn make(
        &self,
        known: Known,
        branch: &str,
        report_line: &impl Fn(&str),
    ) -> Result<Known, Failure> {
        let (
            false,
            At::Forge {
                personal, private, ..
            },
        ) = (known.is_there, &self.at)
        else {
            return Ok(known);
        };
        let Some(forge) = self.forge().await? else {
            return Ok(known);
        };
        report_line(&format!("creating repository {}", self.url));
        let draft = Draft {
            description: "Clusters, and what is delivered to them",
            private: *private,
            personal: *personal,
            default_branch: branch,
        };
        let made = forge.make(draft).await.map_err(|error| of_forge(&error))?;
        Ok(Known {
            is_there: true,
            hosted: Some(made),
            ..known
        })
    }

    /// The repository for Git, with this command's own credentials.
    pub(super) fn remote(&self) -> Result<Remote, Failure> {
        remote(&self.url, &self.secret)
    }
}

/// A repository for Git, with the credentials of a Secret.
pub(super) fn remote(url: &Url, secret: &SecretData) -> Result<Remote, Failure> {
    let mut url = url.clone();
    let unusable = |error: &dyn std::error::Error| failed("use the credentials of the repository", error);
    let way = if url.scheme() == "ssh" {
        let settings = auth::ssh(&mut url, secret, git_client::Algorithms::default(), None);
        Way::Ssh(Box::new(settings.map_err(|error| unusable(&error))?))
    } else {
        let access = transport::auth::access(&mut url, secret).map_err(|error| unusable(&error))?;
        let settings = access.settings.towards(url.host_str().unwrap_or_default());
        let client = Clients::default()
            .get(&settings)
            .map_err(|error| unusable(&error))?;
        Way::Http {
            client,
            authorization: access.authorization,
        }
    };
    Ok(Remote { url, way })
}

/// Where packs that do not fit into memory are written.
pub(super) fn scratch() -> PathBuf {
    std::env::temp_dir()
}

pub(super) fn failed(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::Request {
        what: what.to_owned(),
        why: error_chain::condensed(error),
    }
}

/// A forge says itself what failed.
pub(super) fn of_forge(error: &forge::Error) -> Failure {
    let text = error.to_string();
    match text
        .strip_prefix("failed to ")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((what, why)) => Failure::Request {
            what: what.to_owned(),
            why: why.to_owned(),
        },
        None => failed("ask the forge", error),
    }
}
