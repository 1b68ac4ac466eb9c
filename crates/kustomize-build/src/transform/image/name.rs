//! Which images a name of `images` means.
//!
//! kustomize puts the name as it is into a regular expression, with an optional tag and digest behind. To compile one
//! takes longer than all else that is done with an image, and most names hold nothing that is special in it but dots:
//! those are compared by hand.

use regex::Regex;

use crate::selector;

/// The images of a name.
pub(super) enum ImageName {
    /// Nothing is special but dots, which stand for any character.
    Plain(String),
    /// None for what is no expression: it matches nothing.
    Expression(Option<Regex>),
}

impl ImageName {
    pub(super) fn new(name: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | ':' | '@');
        if name.chars().all(is_plain) {
            Self::Plain(name.to_owned())
        } else {
            Self::Expression(expression(name))
        }
    }

    pub(super) fn matches(&self, image: &str) -> bool {
        match self {
            Self::Plain(name) => is_plain_match(name, image),
            Self::Expression(expression) => expression.as_ref().is_some_and(|e| e.is_match(image)),
        }
    }
}

fn expression(name: &str) -> Option<Regex> {
    const TAG: &str = "(:[a-zA-Z0-9_.{}-]*)?";
    const DIGEST: &str = "(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?";
    selector::compile(&format!("^{name}{TAG}{DIGEST}$")).ok()
}

fn is_plain_match(name: &str, image: &str) -> bool {
    let mut rest = image.chars();
    for wanted in name.chars() {
        match rest.next() {
            Some(c) if c == wanted || (wanted == '.' && c != '\n') => {}
            _ => return false,
        }
    }
    is_tag_and_digest(rest.as_str())
}

/// Both are optional, but nothing else may follow.
fn is_tag_and_digest(text: &str) -> bool {
    let is_value = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '{' | '}' | '-'))
    };
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    let (tag, digest) = match text.split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (text, None),
    };
    let has_tag = tag.is_empty() || tag.strip_prefix(':').is_some_and(is_value);
    let has_digest = digest.is_none_or(|digest| {
        digest.split_once(':').is_some_and(|(algorithm, value)| {
            algorithm.split(['.', '+', '_', '-']).all(is_word) && is_value(value)
        })
    });
    has_tag && has_digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_compared_by_hand_match_what_the_expression_matches() {
        let names = ["nginx", "docker.io/a/b", "host:5000/x", "", ".", "a@sha256:ab"];
        let ends = [
            "",
            ":",
            ":1.2-{x}_Y",
            ":1:2",
            ":1/2",
            "@",
            "@:",
            "@sha256:ab",
            "@sha256",
            "@a.b+c_d-e:",
            "@a..b:c",
            "@a-:b",
            ":1@sha256:ab",
            ":@sha256:{}",
            "@sha256:a@b:c",
            "x",
            "/x",
            "\n",
            ":1\n",
        ];
        for name in names {
            let (plain, expression) = (ImageName::new(name), ImageName::Expression(expression(name)));
            assert!(matches!(plain, ImageName::Plain(_)), "{name}");
            for start in names
                .into_iter()
                .chain(["dockerxio/a/b", "docker\nio/a/b", "ngin", "é"])
            {
                for end in ends {
                    let image = format!("{start}{end}");
                    assert_eq!(
                        plain.matches(&image),
                        expression.matches(&image),
                        "{name:?} {image:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn names_may_be_expressions_and_what_is_none_matches_nothing() {
        assert!(ImageName::new("(a|b)+").matches("ab:1"));
        assert!(!ImageName::new("a(").matches("a("));
    }
}
