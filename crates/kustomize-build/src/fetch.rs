//! Remote parts of a kustomization: git repositories and files behind URLs.
//!
//! This crate opens no connection. It reads what is named as kustomize does, asks a [`Fetch`] for it, and holds what
//! comes back within the bounds that kustomize has: files below their kustomization, bases within the repository.

mod query;
mod repository;

use crate::charts::Charts;
use crate::fs::FileSystem;

pub use repository::Repository;

/// Kustomize's warning about a `git::` prefix.
pub(crate) const FORCED_PROTOCOL: &str = "Warning: Forcing the git protocol using the 'git::' URL prefix is not \
    supported. Kustomize currently strips this invalid prefix, but will stop doing so in a future release. Please \
    remove the 'git::' prefix from your configuration.";

/// Gets what lies outside of the tree.
pub trait Fetch {
    /// Fetches a repository at the reference that is asked for, and returns its tree.
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError>;

    /// Fetches a file.
    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError>;

    /// Returns who renders Helm charts. None, the default, refuses them as `kustomize build` does without `--enable-helm`.
    fn charts(&self) -> Option<&dyn Charts> {
        None
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchError {
    /// The server answered with something else than success.
    Status {
        /// The code, 404 for example.
        code: u16,
        /// Its name: `Not Found`.
        reason: String,
    },
    /// It failed, for this reason. For a file, the build then looks for a repository behind the URL, as kustomize
    /// does.
    Failed(String),
    /// It was not tried.
    Refused(String),
}

/// Fetches nothing: the answer of a build that may read its own tree only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFetch;

impl NoFetch {
    fn refusal(url: &str) -> String {
        format!(
            "remote resources are not supported: '{}': this build may not use the network; copy what it names into the \
             source",
            without_credentials(url)
        )
    }
}

impl Fetch for NoFetch {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        Err(FetchError::Refused(Self::refusal(repository.raw())))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        Err(FetchError::Refused(Self::refusal(url)))
    }
}

/// Returns an address without the user and the password in it, for messages.
pub fn without_credentials(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') || scheme.starts_with("http") => {
            format!("{scheme}://{host}{path}")
        }
        _ => address.to_owned(),
    }
}

/// Returns whether kustomize would get a file by HTTP.
pub(crate) fn is_remote_file(path: &str) -> bool {
    let is_http = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_url = !path.contains(|c: char| c.is_ascii_control());
    is_url && path.split_once(':').is_some_and(|(scheme, _)| is_http(scheme))
}

#[cfg(test)]
mod tests {
    use super::{is_remote_file, without_credentials};

    #[test]
    fn addresses_are_shown_without_what_signs_in() {
        for (address, shown) in [
            (
                "https://ana:pass@example.com/x//y?ref=a@b",
                "https://example.com/x//y?ref=a@b",
            ),
            ("https://token@example.com", "https://example.com"),
            ("https://example.com/a@b:c", "https://example.com/a@b:c"),
            ("ssh://git@example.com/x", "ssh://git@example.com/x"),
            ("git@example.com:x", "git@example.com:x"),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }

    #[test]
    fn only_http_gets_files() {
        for (path, remote) in [
            ("https://example.com/x.yaml", true),
            ("HTTP://example.com/x.yaml", true),
            ("ssh://example.com/x.yaml", false),
            ("git@github.com:a/b", false),
            ("http", false),
            ("https/x.yaml", false),
        ] {
            assert_eq!(is_remote_file(path), remote, "{path}");
        }
    }
}
