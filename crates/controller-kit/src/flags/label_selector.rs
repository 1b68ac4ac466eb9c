//! Label selectors as kubectl writes them ("a=b,c!=d,e in (f,g),h,!i"), read before they are sent.
//!
//! The API server would refuse a wrong selector only when the first watch starts; a flag must fail at once.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

/// Why a text is not a label selector.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("failed to parse label selector {selector:?}: {requirement:?} is not a requirement on a label")]
pub struct Error {
    selector: String,
    requirement: String,
}

/// Parses a selector; an empty text selects everything.
pub fn parse(text: &str) -> Result<Selector, Error> {
    split_requirements(text)
        .into_iter()
        .map(|requirement| {
            parse_requirement(requirement).ok_or_else(|| Error {
                selector: text.to_owned(),
                requirement: requirement.to_owned(),
            })
        })
        .collect()
}

/// For clap: the text itself, once it is known to parse.
pub(super) fn checked(text: &str) -> Result<String, Error> {
    parse(text).map(|_| text.to_owned())
}

/// Splits at the commas that are not within parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut within = false;
    text.split(|character| {
        within = match character {
            '(' => true,
            ')' => false,
            _ => within,
        };
        character == ',' && !within
    })
    .map(str::trim)
    .collect()
}

fn parse_requirement(text: &str) -> Option<Expression> {
    if let Some(key) = text.strip_prefix('!') {
        return Some(Expression::DoesNotExist(label_key(key)?));
    }
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = text.split_once(operator) {
            let (key, value) = (label_key(key)?, label_value(value)?);
            let expression = if negated {
                Expression::NotEqual
            } else {
                Expression::Equal
            };
            return Some(expression(key, value));
        }
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let key = label_key(words.next()?)?;
    let Some(rest) = words.next() else {
        return Some(Expression::Exists(key));
    };
    parse_set(key, rest.trim())
}

/// Reads "in (a, b)" and "notin (a, b)".
fn parse_set(key: String, text: &str) -> Option<Expression> {
    let (operator, values) = text.split_once('(')?;
    let values: Option<BTreeSet<String>> = values.strip_suffix(')')?.split(',').map(label_value).collect();
    match operator.trim() {
        "in" => Some(Expression::In(key, values?)),
        "notin" => Some(Expression::NotIn(key, values?)),
        _ => None,
    }
}

fn label_key(text: &str) -> Option<String> {
    let key = text.trim();
    let (prefix, name) = key.split_once('/').unwrap_or(("example.com", key));
    let good = !prefix.is_empty() && is_label_text(prefix) && !name.is_empty() && is_label_text(name);
    good.then(|| key.to_owned())
}

fn label_value(text: &str) -> Option<String> {
    let value = text.trim();
    is_label_text(value).then(|| value.to_owned())
}

/// Returns whether Kubernetes would take this as a label value: at most 63 of `[A-Za-z0-9_.-]`, and no mark at the ends.
/// (A prefix may be longer; the API server has the last word.)
fn is_label_text(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= 253
        && text.bytes().all(inner)
        && text
            .bytes()
            .next()
            .is_none_or(|byte| byte.is_ascii_alphanumeric())
        && text
            .bytes()
            .last()
            .is_none_or(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt as _;

    use super::*;

    #[test]
    fn selectors_mean_what_kubectl_means() {
        let labels: BTreeMap<String, String> = [("app", "web"), ("sharding.fluxcd.io/shard", "s1")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = api", false),
            ("app!=api", true),
            ("app", true),
            ("!app", false),
            ("!tier", true),
            ("app in (api, web)", true),
            ("app notin (api,web)", false),
            ("app in (web),sharding.fluxcd.io/shard=s1", true),
            ("app=web,sharding.fluxcd.io/shard!=s1", false),
            ("tier=", false),
        ];
        for (text, matches) in cases {
            let selector = parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(selector.matches(&labels), matches, "{text}");
        }
    }

    #[test]
    fn wrong_selectors_are_refused() {
        for text in [
            "=a",
            "a=b=c",
            "a in b",
            "a in (b",
            "a near (b)",
            "a b",
            ",",
            "a=b,",
            "a=-b",
            "a/=b",
            "a b=c",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
