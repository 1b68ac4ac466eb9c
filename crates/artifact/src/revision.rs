//! The revision of an artifact: what a person calls the state of a source.
//!
//! Flux writes `<name>@<algorithm>:<hash>` (`main@sha1:…`, `v1.0.0@sha1:…`, `latest@sha256:…`), or only
//! `<algorithm>:<hash>` when nothing names the state (a bare commit). Before Flux 2.0 it was `<name>/<hash>`, and
//! objects with such a status are still met, so reading and comparing know both.
//!
//! A revision is compared and shown, never trusted: content is verified by its digest.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A revision in today's format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(String);

impl Revision {
    /// The revision of a named state: `main@sha1:…`. An empty name gives the bare form `sha1:…`.
    #[must_use]
    pub fn new(name: &str, algorithm: &str, hash: &str) -> Self {
        match name {
            "" => Self(format!("{algorithm}:{hash}")),
            name => Self(format!("{name}@{algorithm}:{hash}")),
        }
    }

    /// The revision of a Git commit under the branch, tag or reference that named it (empty for none).
    ///
    /// Flux takes the hash for SHA-1 by its length of 40 and calls everything else unknown; a SHA-256 repository
    /// (64 digits) gets its true name here.
    #[must_use]
    pub fn of_commit(name: &str, hash: &str) -> Self {
        Self::new(name, algorithm_by_length(hash).unwrap_or("<unknown>"), hash)
    }

    /// Reads a revision in today's or the legacy format; a text in neither is kept as it is.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(from_legacy(text).unwrap_or_else(|| text.to_owned()))
    }

    /// The text, as in status.artifact.revision.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the last `@`: branch, tag or version. None for a bare digest.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.rsplit_once('@').map(|(name, _)| name)
    }

    /// The part after the last `@`, for example `sha1:…`.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.0
            .rsplit_once('@')
            .map_or(self.0.as_str(), |(_, digest)| digest)
    }

    /// The hash alone, without name and algorithm.
    #[must_use]
    pub fn hash(&self) -> &str {
        self.0.rsplit_once(':').map_or(self.digest(), |(_, hash)| hash)
    }

    /// Returns whether both texts mean the same revision, the legacy format included.
    #[must_use]
    pub fn same(left: &str, right: &str) -> bool {
        left == right || Self::parse(left) == Self::parse(right)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Today's form of `<name>/<hash>`, `HEAD/<hash>` and `<hash>`; None if the text is none of these.
fn from_legacy(text: &str) -> Option<String> {
    if text.contains(':') {
        return None;
    }
    let (name, hash) = text.rsplit_once('/').unwrap_or(("", text));
    let algorithm = algorithm_by_length(hash)?;
    let name = if name == "HEAD" { "" } else { name };
    Some(Revision::new(name, algorithm, hash).0)
}

fn algorithm_by_length(hash: &str) -> Option<&'static str> {
    let is_hex = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match hash.len() {
        40 if is_hex => Some("sha1"),
        64 if is_hex => Some("sha256"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "5394cb7f48332b2de7c17dd8b8384bbc84b7e738";
    const SHA256: &str = "55609ff9d959589ed917ce32e6bc0f0a36809565f308602c15c3668965979edc";

    #[test]
    fn parts_are_read_from_both_formats() {
        let table = [
            (
                format!("main@sha1:{COMMIT}"),
                Some("main"),
                format!("sha1:{COMMIT}"),
                COMMIT,
            ),
            (
                format!("feature/a@b@sha1:{COMMIT}"),
                Some("feature/a@b"),
                format!("sha1:{COMMIT}"),
                COMMIT,
            ),
            (format!("sha1:{COMMIT}"), None, format!("sha1:{COMMIT}"), COMMIT),
            (
                format!("latest@sha256:{SHA256}"),
                Some("latest"),
                format!("sha256:{SHA256}"),
                SHA256,
            ),
            (
                format!("main/{COMMIT}"),
                Some("main"),
                format!("sha1:{COMMIT}"),
                COMMIT,
            ),
            (
                format!("feature/x/{COMMIT}"),
                Some("feature/x"),
                format!("sha1:{COMMIT}"),
                COMMIT,
            ),
            (format!("HEAD/{COMMIT}"), None, format!("sha1:{COMMIT}"), COMMIT),
            (COMMIT.to_owned(), None, format!("sha1:{COMMIT}"), COMMIT),
            (
                format!("tag/{SHA256}"),
                Some("tag"),
                format!("sha256:{SHA256}"),
                SHA256,
            ),
            (SHA256.to_owned(), None, format!("sha256:{SHA256}"), SHA256),
            ("6.3.1".to_owned(), None, "6.3.1".to_owned(), "6.3.1"),
            (String::new(), None, String::new(), ""),
        ];
        for (text, name, digest, hash) in table {
            let revision = Revision::parse(&text);
            assert_eq!(
                (revision.name(), revision.digest(), revision.hash()),
                (name, digest.as_str(), hash),
                "{text}"
            );
        }
    }

    #[test]
    fn commits_are_written_as_flux_writes_them() {
        assert_eq!(
            Revision::of_commit("main", COMMIT).as_str(),
            format!("main@sha1:{COMMIT}")
        );
        assert_eq!(Revision::of_commit("", COMMIT).as_str(), format!("sha1:{COMMIT}"));
        assert_eq!(
            Revision::new("latest", "sha256", SHA256).to_string(),
            format!("latest@sha256:{SHA256}")
        );
        assert_eq!(Revision::of_commit("main", "abc").as_str(), "main@<unknown>:abc");
    }

    #[test]
    fn legacy_and_new_format_are_the_same_revision() {
        let same = [
            (format!("main/{COMMIT}"), format!("main@sha1:{COMMIT}")),
            (format!("HEAD/{COMMIT}"), format!("sha1:{COMMIT}")),
            (format!("tag/{SHA256}"), format!("tag@sha256:{SHA256}")),
            ("1.2.3".to_owned(), "1.2.3".to_owned()),
        ];
        for (left, right) in same {
            assert!(Revision::same(&left, &right), "{left} {right}");
        }
        let different = [
            (format!("main/{COMMIT}"), format!("other@sha1:{COMMIT}")),
            (format!("main@sha1:{COMMIT}"), format!("sha1:{COMMIT}")),
            ("main/short".to_owned(), "main@sha1:short".to_owned()),
            (String::new(), "1.2.3".to_owned()),
        ];
        for (left, right) in different {
            assert!(!Revision::same(&left, &right), "{left} {right}");
        }
    }
}
