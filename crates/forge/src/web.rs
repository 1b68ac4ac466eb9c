//! Addresses of pages for people: a commit, and what lies between two. Pure.

use url::Url;

use crate::forge::Kind;

/// Longer addresses are not shown, in bytes.
const MAX_BYTES: usize = 300;

/// The pages of a repository. The address comes from the label of an image, so it is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    root: String,
    kind: Kind,
}

impl Pages {
    /// Reads the address of a repository. Returns None unless it is an https address without login or query that Markdown
    /// shows as it is. The host tells which service it is; an unknown host is taken for GitHub or Gitea, whose pages have the
    /// same paths.
    pub fn parse(address: &str) -> Option<Self> {
        let address = address.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:".contains(c);
        if address.len() > MAX_BYTES || !address.starts_with("https://") || !address.chars().all(is_plain) {
            return None;
        }
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?;
        let kind = match host {
            "bitbucket.org" => Kind::Bitbucket,
            "dev.azure.com" => Kind::AzureDevOps,
            _ if host.split('.').any(|part| part == "gitlab") => Kind::GitLab,
            _ => Kind::GitHub,
        };
        let root = url.as_str().trim_end_matches('/');
        let root = root.strip_suffix(".git").unwrap_or(root);
        Some(Self {
            root: root.to_owned(),
            kind,
        })
    }

    /// The repository itself.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The page of a commit, by its hash.
    pub fn commit(&self, commit: &str) -> Option<String> {
        let commit = hash(commit)?;
        let between = match self.kind {
            Kind::GitLab => "/-/commit/",
            Kind::Bitbucket => "/commits/",
            _ => "/commit/",
        };
        Some(format!("{}{between}{commit}", self.root))
    }

    /// The page of the commits between two.
    pub fn compare(&self, old: &str, new: &str) -> Option<String> {
        let (root, old, new) = (&self.root, hash(old)?, hash(new)?);
        match self.kind {
            Kind::GitLab => Some(format!("{root}/-/compare/{old}...{new}")),
            Kind::Bitbucket => Some(format!("{root}/branches/compare/{new}..{old}")),
            Kind::AzureDevOps | Kind::BitbucketServer => None,
            Kind::GitHub | Kind::Gitea => Some(format!("{root}/compare/{old}...{new}")),
        }
    }
}

/// Returns whether the text is the hash of a commit, or the beginning of one.
pub fn is_hash(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hash(text: &str) -> Option<&str> {
    is_hash(text).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_own_pages() {
        let (old, new) = ("aaaaaaa", "bbbbbbb");
        for (address, commit, compare) in [
            (
                "https://github.com/o/r",
                "https://github.com/o/r/commit/bbbbbbb",
                Some("https://github.com/o/r/compare/aaaaaaa...bbbbbbb"),
            ),
            (
                "https://git.example.com/o/r.git",
                "https://git.example.com/o/r/commit/bbbbbbb",
                Some("https://git.example.com/o/r/compare/aaaaaaa...bbbbbbb"),
            ),
            (
                "https://gitlab.com/g/s/r/",
                "https://gitlab.com/g/s/r/-/commit/bbbbbbb",
                Some("https://gitlab.com/g/s/r/-/compare/aaaaaaa...bbbbbbb"),
            ),
            (
                "https://bitbucket.org/o/r",
                "https://bitbucket.org/o/r/commits/bbbbbbb",
                Some("https://bitbucket.org/o/r/branches/compare/bbbbbbb..aaaaaaa"),
            ),
            (
                "https://dev.azure.com/o/p/_git/r",
                "https://dev.azure.com/o/p/_git/r/commit/bbbbbbb",
                None,
            ),
        ] {
            let pages = Pages::parse(address).unwrap();
            assert_eq!(pages.commit(new).as_deref(), Some(commit));
            assert_eq!(pages.compare(old, new).as_deref(), compare);
        }
    }

    #[test]
    fn what_is_no_plain_address_has_no_pages() {
        let long = format!("https://h/{}", "a".repeat(MAX_BYTES));
        for address in [
            "",
            "http://h/r",
            "git@h:o/r",
            "https://u:p@h/r",
            "https://h/r?x=1",
            "https://h/r)[x](https://evil",
            "https://h/r\nx",
            "https://h/\u{202e}r",
            "javascript:alert(1)",
            "https://",
            &long,
        ] {
            assert_eq!(Pages::parse(address), None, "{address:?}");
        }
        let pages = Pages::parse("https://h/r").unwrap();
        for commit in ["", "main", "aaaaaa", "aaaaaaa/../x", &"a".repeat(65)] {
            assert_eq!(
                (pages.commit(commit), pages.compare("aaaaaaa", commit)),
                (None, None),
                "{commit}"
            );
        }
    }
}
