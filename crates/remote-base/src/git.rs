//! Bases in Git repositories.

use std::path::Path;
use std::time::Duration;

use git_client::reference::Reference;
use git_client::{Algorithms, Checkout, Error, Outcome, Remote, Request, Way, ssh};
use kustomize_build::{FetchError, Repository, without_credentials};
use tokio::time::Instant;
use transport::http;
use transport::stop::Stop;
use url::Url;

use crate::{Bases, failed, files};

/// Longest time for a repository.
const LONGEST: Duration = Duration::from_secs(3600);

/// How a commit is fetched.
pub(crate) struct Ask {
    /// The revision that is known: it is not received again.
    pub(crate) known: Option<String>,
    /// How packs are received.
    pub(crate) packs: git_pack::Settings,
    pub(crate) deadline: Instant,
}

/// Fetches the commit that a base names, without its history. None if it is the one that is known.
pub(crate) async fn fetch(
    bases: &Bases,
    repository: &Repository,
    ask: Ask,
) -> Result<Option<Checkout>, FetchError> {
    let url = url(&repository.clone_url())?;
    let mut missing = None;
    for reference in references(repository.reference()) {
        let stop = Stop::default();
        let request = Request {
            remote: remote(bases, url.clone())?,
            reference,
            sparse: None,
            unless_revision: ask.known.clone(),
            over: None,
            directory: std::env::temp_dir(),
            packs: git_pack::Settings {
                cancelled: stop.flag().clone(),
                ..ask.packs.clone()
            },
            deadline: ask.deadline,
            stop,
        };
        match git_client::fetch(request).await {
            Ok(Outcome::Fetched(checkout)) => return Ok(Some(*checkout)),
            Ok(Outcome::Unchanged(_)) => return Ok(None),
            Err(error @ (Error::FindReference { .. } | Error::ResolveName { .. })) => {
                missing.get_or_insert(error);
            }
            Err(Error::Request(error @ http::Error::NotListed { .. })) => {
                return Err(files::unlisted(&error));
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    Err(missing.map_or_else(|| failed(&Error::EmptyRepository), |error| failed(&error)))
}

/// How long a repository may take, as its address says: any number may stand there.
pub(crate) fn deadline(repository: &Repository) -> Instant {
    let now = Instant::now();
    now.checked_add(repository.timeout().min(LONGEST)).unwrap_or(now)
}

/// What a name may mean, in the order in which Git looks.
fn references(name: &str) -> Vec<Reference> {
    match name {
        "" => vec![Reference::Name("HEAD".to_owned())],
        name if is_id(name) => vec![Reference::Commit {
            id: name.to_ascii_lowercase(),
            known_as: None,
        }],
        name if name.starts_with("refs/") => vec![Reference::Name(name.to_owned())],
        name => vec![
            Reference::Tag(name.to_owned()),
            Reference::Branch(name.to_owned()),
        ],
    }
}

/// Returns whether a name is that of a commit.
pub(crate) fn is_id(name: &str) -> bool {
    name.len() == 40 && name.chars().all(|c| c.is_ascii_hexdigit())
}

/// Reads what `git clone` takes.
fn url(text: &str) -> Result<Url, FetchError> {
    let refused =
        |why: &str| FetchError::Refused(format!("remote base '{}': {why}", without_credentials(text)));
    let spelled = match text.split_once("://") {
        Some(_) => text.to_owned(),
        // user@host:path
        None => match text.split_once(':') {
            Some((host, path)) => format!("ssh://{host}/{}", path.trim_start_matches('/')),
            None => return Err(refused("it is not a URL")),
        },
    };
    let url = Url::parse(&spelled).map_err(|error| refused(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" | "ssh" => Ok(url),
        "file" => Err(refused("name a repository on this machine by its path")),
        scheme => Err(refused(&format!(
            "scheme {scheme:?} is not supported; use https or ssh"
        ))),
    }
}

fn remote(bases: &Bases, mut url: Url) -> Result<Remote, FetchError> {
    let way = if url.scheme() == "ssh" {
        Way::Ssh(Box::new(ssh_settings(bases, &url)?))
    } else {
        let access = files::access(&mut url)?;
        Way::Http {
            client: bases.client(&access.settings, &url)?,
            authorization: access.authorization,
        }
    };
    Ok(Remote { url, way })
}

fn ssh_settings(bases: &Bases, url: &Url) -> Result<ssh::Settings, FetchError> {
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|error| FetchError::Failed(format!("failed to read {}: {error}", path.display())))
    };
    let shown = without_credentials(url.as_str());
    let refused = |what: &str| FetchError::Refused(format!("remote base '{shown}': {what}"));
    let settings = &bases.settings;
    if settings.only.is_some() {
        return Err(refused("this build may use https only"));
    }
    let key = settings.ssh_keys.iter().find(|path| path.exists());
    let key = key.ok_or_else(|| {
        let tried: Vec<String> = settings
            .ssh_keys
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        refused(&format!(
            "there is no private key for SSH (tried {})",
            tried.join(", ")
        ))
    })?;
    let identity = read(key)?;
    if ssh::needs_passphrase(&identity) {
        return Err(refused(&format!("{} has a passphrase", key.display())));
    }
    let hosts = settings.known_hosts.as_deref();
    let hosts = hosts.ok_or_else(|| refused("there is no known_hosts for SSH"))?;
    Ok(ssh::Settings {
        identity,
        passphrase: None,
        known_hosts: read(hosts)?,
        algorithms: Algorithms::default(),
        proxy: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_what_git_takes() {
        for (text, expected) in [
            ("https://github.com/org/repo", "https://github.com/org/repo"),
            ("git@github.com:org/repo", "ssh://git@github.com/org/repo"),
            ("ssh://git@example.com:22/a", "ssh://git@example.com:22/a"),
        ] {
            assert_eq!(url(text).map(|url| url.to_string()), Ok(expected.to_owned()));
        }
        for text in ["file:///srv/repo", "ftp://a/b", "nothing"] {
            assert!(matches!(url(text), Err(FetchError::Refused(_))), "{text}");
        }
    }

    #[test]
    fn a_name_is_a_tag_before_it_is_a_branch() {
        assert_eq!(
            references("v1"),
            [
                Reference::Tag("v1".to_owned()),
                Reference::Branch("v1".to_owned())
            ]
        );
        assert_eq!(references(""), [Reference::Name("HEAD".to_owned())]);
        assert!(matches!(
            references(&"A".repeat(40))[..],
            [Reference::Commit { .. }]
        ));
    }
}
