//! A pull request, under the one name for what GitLab calls a merge request.

use jiff::Timestamp;
use url::Url;

/// Longer URLs are not taken from a forge.
const MAX_URL: usize = 2048;

/// A pull request whose branch is in the repository that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// Its page; empty if the forge gives no usable URL.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub body: String,
    /// Whether it is open.
    pub state: State,
    /// The branch that is to be merged.
    pub head: String,
    /// The branch that it is merged into.
    pub base: String,
    /// The commit at which the forge saw `head` last.
    pub commit: String,
    /// When it was opened, by the forge's clock.
    pub opened: Option<Timestamp>,
}

/// Whether a pull request is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Open,
    /// It was merged.
    Merged,
    /// It was closed without a merge.
    Closed,
}

/// A pull request to open.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// The branch that is to be merged.
    pub head: &'a str,
    /// The branch that it is merged into.
    pub base: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its description, in Markdown.
    pub body: &'a str,
}

/// How a pull request becomes part of its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// With a merge commit.
    Merge,
    /// As one new commit.
    Squash,
    /// As new commits on top of the base.
    Rebase,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// It is part of its base.
    Done,
    /// The forge refuses for now, with its reason.
    NotYet(String),
}

/// The URL of a page if people can follow it.
pub(crate) fn page(text: Option<String>) -> String {
    let is_page = |text: &String| {
        text.len() <= MAX_URL
            && Url::parse(text).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none()
            })
    };
    text.filter(is_page).unwrap_or_default()
}

/// A time as forges write it.
pub(crate) fn time(text: Option<String>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_linked() {
        let page = |text: &str| page(Some(text.to_owned()));
        assert_eq!(page("https://forge/o/r/pulls/1"), "https://forge/o/r/pulls/1");
        for text in ["javascript:alert(1)", "https://u:p@forge/", "", "/o/r"] {
            assert_eq!(page(text), "", "{text}");
        }
        assert_eq!(page(&format!("https://forge/{}", "x".repeat(3000))), "");
    }
}
