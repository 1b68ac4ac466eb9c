//! Kubernetes' label selectors: `a=b,c in (d,e),!f`. Parsed with apimachinery's rules and words.

mod parse;
mod requirement;
mod validate;

use std::collections::BTreeMap;

use requirement::Requirement;

/// Requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Parses a selector; nothing selects everything. What is wrong is told in apimachinery's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::requirements(text).map(|requirements| Self { requirements })
    }

    /// Returns whether labels meet all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Returns whether labels, looked up by key, meet all requirements.
    pub fn matches_by<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(lookup(&requirement.key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_match_labels() {
        let labels: BTreeMap<String, String> =
            [("a", "b"), ("n", "5")].map(|(k, v)| (k.into(), v.into())).into();
        for (selector, matches) in [
            ("", true),
            ("a=b", true),
            ("a==c", false),
            ("a!=c", true),
            ("x!=c", true),
            ("a", true),
            ("!a", false),
            ("a in (b, c),n>4", true),
            ("a notin (b)", false),
            ("n<5", false),
            ("in", false),
        ] {
            assert_eq!(
                LabelSelector::parse(selector).unwrap().matches(&labels),
                matches,
                "{selector}"
            );
        }
    }

    #[test]
    fn wrong_selectors_are_refused_in_kubernetes_words() {
        for (selector, message) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("(", "found '(', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            (
                "!!a",
                "unable to parse requirement: found '!', expected: identifier",
            ),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: '=', '!=', '==', 'in', notin'",
            ),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            (
                "a in (=",
                "unable to parse requirement: found '=', expected: ',', ')' or identifier",
            ),
            (
                "a in (b c)",
                "unable to parse requirement: found 'c', expected: ',' or ')'",
            ),
            (
                "a in (,=)",
                "unable to parse requirement: found '=', expected: ',', or identifier",
            ),
            (
                "a>b",
                "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error, message, "{selector}");
        }
    }
}
