//! A git repository as a kustomization names it: `https://github.com/org/repo//path?ref=v1`.
//!
//! Read as kustomize's `git.NewRepoSpecFromURL` does, which decides what is a repository and what is a path.

use std::time::Duration;

use go_text::numeral::parse_bool;

use super::query;

/// A repository, what of it, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    raw: String,
    host: String,
    repository: String,
    path: String,
    reference: String,
    submodules: bool,
    timeout: Duration,
    forces_protocol: bool,
}

/// How long kustomize lets one git command run.
const TIMEOUT: Duration = Duration::from_secs(27);

const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

const FILE_SCHEME: &str = "file://";

/// The parts of a path that name a repository, when nothing says where it ends.
const ORGANISATION_AND_REPOSITORY: usize = 2;

impl Repository {
    /// Reads the name of a repository; None for what is none: a path of the tree, for example.
    pub fn parse(raw: &str) -> Option<Self> {
        if raw.starts_with('/') {
            return None;
        }
        let (name, query) = raw.split_once('?').unwrap_or((raw, ""));
        let query = query::parse(query);
        let (name, forces_protocol) = match strip_prefix(name, "git::") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        let (host, rest) = split_host(name)?;
        let (repository, path) = split_path(&rest, host.starts_with(FILE_SCHEME))?;
        let parameter = |name: &str| query.get(name).filter(|value| !value.is_empty());
        Some(Self {
            raw: raw.to_owned(),
            host,
            repository,
            path,
            reference: parameter("ref")
                .or(parameter("version"))
                .cloned()
                .unwrap_or_default(),
            submodules: parameter("submodules")
                .and_then(|value| parse_bool(value))
                .unwrap_or(true),
            timeout: parameter("timeout")
                .and_then(|value| query::duration(value))
                .unwrap_or(TIMEOUT),
            forces_protocol,
        })
    }

    /// Returns the name as it was written.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns what `git clone` takes.
    pub fn clone_url(&self) -> String {
        format!("{}{}", self.host, self.repository)
    }

    /// Returns the folder in the repository; empty for its root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the branch, tag or commit; empty for the default branch.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns whether submodules are wanted.
    pub fn submodules(&self) -> bool {
        self.submodules
    }

    /// Returns how long fetching may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn forces_protocol(&self) -> bool {
        self.forces_protocol
    }
}

/// Splits off scheme, user and host, in the form that they are cloned by.
fn split_host(name: &str) -> Option<(String, String)> {
    let scheme = SCHEMES
        .into_iter()
        .find(|scheme| strip_prefix(name, scheme).is_some())
        .unwrap_or_default();
    let rest = &name[scheme.len()..];
    let user_length = length_of_user(rest);
    let (user, rest) = rest.split_at(user_length);
    let is_github = strip_prefix(rest, "github.com/")
        .or(strip_prefix(rest, "github.com:"))
        .is_some();
    let scp_style = scheme.is_empty() && (!user.is_empty() || is_github);
    if scheme.is_empty() && !scp_style {
        return None;
    }
    if scheme == FILE_SCHEME {
        return Some((scheme.to_owned(), format!("{user}{rest}")));
    }
    let (host, rest) = match separator(rest, scp_style) {
        Some(at) => rest.split_at(at + 1),
        None => (rest, ""),
    };
    if is_github {
        let by_ssh = scheme == "ssh://" || !user.is_empty();
        let host = if by_ssh {
            format!("{user}github.com:")
        } else {
            "https://github.com/".to_owned()
        };
        return Some((host, rest.to_owned()));
    }
    (!host.is_empty()).then(|| (format!("{scheme}{user}{host}"), rest.to_owned()))
}

/// Returns the length of `user@` at the start.
fn length_of_user(text: &str) -> usize {
    let Some((user, _)) = text.split_once('@') else {
        return 0;
    };
    let starts_well = user.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_well && user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        user.len() + 1
    } else {
        0
    }
}

/// Finds where the host ends: a slash, or the colon of `user@host:path`.
fn separator(text: &str, scp_style: bool) -> Option<usize> {
    let slash = text.find('/');
    if !scp_style {
        return slash;
    }
    match (slash, text.find(':')) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        _ => slash,
    }
}

/// Splits the path of the repository from the folder in it.
fn split_path(text: &str, is_file: bool) -> Option<(String, String)> {
    let (repository, folder) = split_at_marker(text).or_else(|| split_by_length(text, is_file))?;
    let folder = folder.strip_prefix('/').unwrap_or(&folder);
    let leaves = crate::path::join_for_message("", folder).split('/').next() == Some("..");
    (!repository.is_empty() && !leaves).then(|| (repository, folder.to_owned()))
}

fn split_at_marker(text: &str) -> Option<(String, String)> {
    const GIT_ROOT: &str = "_git/";
    const SUFFIX: &str = ".git";
    if let Some(at) = text.find(GIT_ROOT) {
        let (above, below) = text.split_at(at + GIT_ROOT.len());
        let (repository, folder) = below.split_once('/').unwrap_or((below, ""));
        return Some((format!("{above}{repository}"), folder.to_owned()));
    }
    if let Some((repository, folder)) = text.split_once("//") {
        return Some((repository.to_owned(), folder.to_owned()));
    }
    let at = text.find(SUFFIX)? + SUFFIX.len();
    Some((text[..at].to_owned(), text[at..].to_owned()))
}

fn split_by_length(text: &str, is_file: bool) -> Option<(String, String)> {
    if is_file {
        return Some((text.to_owned(), String::new()));
    }
    let parts: Vec<&str> = text.split('/').collect();
    let (repository, folder) = parts.split_at_checked(ORGANISATION_AND_REPOSITORY)?;
    Some((repository.join("/"), folder.join("/")))
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}
