//! Bases in Git repositories.

use std::path::Path;

use git_client::pack::Pack;
use git_client::reference::Reference;
use git_client::{Algorithms, Error, Outcome, Remote as Origin, Request, Way, ssh};
use kustomize_build::{FetchError, Repository, without_credentials};
use tokio::time::Instant;
use transport::stop::Stop;
use url::Url;

use crate::{Remote, failed, files};

/// Fetches the commit that a base names, without its history.
pub(crate) async fn fetch(remote: &Remote, repository: &Repository) -> Result<Pack, FetchError> {
    let url = url(&repository.clone_url())?;
    let deadline = Instant::now() + repository.timeout();
    let mut missing = None;
    for reference in references(repository.reference()) {
        let stop = Stop::default();
        let request = Request {
            remote: origin(remote, url.clone())?,
            reference,
            sparse: None,
            unless_revision: None,
            over: None,
            directory: std::env::temp_dir(),
            packs: git_pack::Settings {
                cancelled: stop.flag().clone(),
                ..git_pack::Settings::default()
            },
            deadline,
            stop,
        };
        match git_client::fetch(request).await {
            Ok(Outcome::Fetched(checkout)) => return Ok(checkout.pack),
            Ok(Outcome::Unchanged(_)) => return Err(failed(&Error::EmptyRepository)),
            Err(error @ (Error::FindReference { .. } | Error::ResolveName { .. })) => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    Err(missing.map_or_else(|| failed(&Error::EmptyRepository), |error| failed(&error)))
}

/// What a name may mean, in the order in which Git looks.
fn references(name: &str) -> Vec<Reference> {
    let is_commit = name.len() == 40 && name.chars().all(|c| c.is_ascii_hexdigit());
    match name {
        "" => vec![Reference::Name("HEAD".to_owned())],
        name if is_commit => vec![Reference::Commit {
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

fn origin(remote: &Remote, mut url: Url) -> Result<Origin, FetchError> {
    let way = if url.scheme() == "ssh" {
        Way::Ssh(Box::new(ssh_settings(remote, &url)?))
    } else {
        let access = files::access(&mut url)?;
        Way::Http {
            client: remote.client(&access.settings, &url)?,
            authorization: access.authorization,
        }
    };
    Ok(Origin { url, way })
}

fn ssh_settings(remote: &Remote, url: &Url) -> Result<ssh::Settings, FetchError> {
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|error| FetchError::Failed(format!("failed to read {}: {error}", path.display())))
    };
    let refused = |what: &str| FetchError::Refused(format!("remote base '{url}': {what}"));
    let settings = &remote.settings;
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
