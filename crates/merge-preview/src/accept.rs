//! Which pull requests are compared.

use api::delivery::PullRequestFilter;
use forge::incoming::Incoming;

/// Returns whether a pull request passes a filter. Without one, those from forks are refused, and all others pass.
pub fn accepts(filter: Option<&PullRequestFilter>, incoming: &Incoming) -> bool {
    let Some(filter) = filter else {
        return !incoming.is_fork;
    };
    let has_labels = filter.labels.iter().all(|label| incoming.labels.contains(label));
    let is_named = |names: &[String], is: &dyn Fn(&String) -> bool| names.is_empty() || names.iter().any(is);
    has_labels
        && (filter.forks || !incoming.is_fork)
        && is_named(&filter.branches, &|pattern| {
            matches(pattern, &incoming.request.head)
        })
        && is_named(&filter.authors, &|name| incoming.is_by(name))
}

/// Matches a text against a pattern in which `*` stands for any characters. In time linear in both, for each `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use forge::pull_request::{PullRequest, State};

    use super::*;

    fn incoming(head: &str, is_fork: bool) -> Incoming {
        Incoming {
            request: PullRequest {
                number: 1,
                url: String::new(),
                title: String::new(),
                body: String::new(),
                state: State::Open,
                head: head.to_owned(),
                base: "main".to_owned(),
                commit: String::new(),
                opened: None,
            },
            author: "Ana".to_owned(),
            labels: vec!["preview".to_owned(), "big".to_owned()],
            is_fork,
        }
    }

    #[test]
    fn all_that_is_asked_for_must_be_so() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let filter = PullRequestFilter::default;
        for (filter, is_fork, expected) in [
            (None, false, true),
            (None, true, false),
            (Some(filter()), true, false),
            (
                Some(PullRequestFilter {
                    forks: true,
                    ..filter()
                }),
                true,
                true,
            ),
            (
                Some(PullRequestFilter {
                    labels: names(&["big"]),
                    ..filter()
                }),
                false,
                true,
            ),
            (
                Some(PullRequestFilter {
                    labels: names(&["big", "small"]),
                    ..filter()
                }),
                false,
                false,
            ),
            (
                Some(PullRequestFilter {
                    authors: names(&["ben", "ana"]),
                    ..filter()
                }),
                false,
                true,
            ),
            (
                Some(PullRequestFilter {
                    authors: names(&["ben"]),
                    ..filter()
                }),
                false,
                false,
            ),
            (
                Some(PullRequestFilter {
                    branches: names(&["fix/*", "feature/*"]),
                    ..filter()
                }),
                false,
                true,
            ),
            (
                Some(PullRequestFilter {
                    branches: names(&["feature"]),
                    ..filter()
                }),
                false,
                false,
            ),
        ] {
            let found = accepts(filter.as_ref(), &incoming("feature/a", is_fork));
            assert_eq!(found, expected, "{filter:?} {is_fork}");
        }
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abcd", false),
            ("a*b*c", "aXbYbc", true),
            ("a*a", "a", false),
            ("release-*", "release", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
