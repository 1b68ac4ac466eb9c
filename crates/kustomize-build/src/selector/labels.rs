//! Kubernetes' label selectors: `a=b,c in (d,e),!f`.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// Requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    DoesNotExist,
    In,
    NotIn,
    GreaterThan,
    LessThan,
}

impl LabelSelector {
    /// Parses a selector; nothing selects everything.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Parser {
            tokens: tokens(text),
            at: 0,
        }
        .parse()
        .map_err(Error::invalid)
    }

    /// Tells whether labels meet all requirements.
    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(labels.get(&requirement.key)))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&String>) -> bool {
        match (self.operator, value) {
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::In, value) => value.is_some_and(|value| self.values.contains(value)),
            (Operator::NotIn, value) => value.is_none_or(|value| !self.values.contains(value)),
            (Operator::GreaterThan, value) => self.compares(value, |label, bound| label > bound),
            (Operator::LessThan, value) => self.compares(value, |label, bound| label < bound),
        }
    }

    fn compares(&self, value: Option<&String>, compare: impl Fn(i64, i64) -> bool) -> bool {
        let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
        match (number(value), number(self.values.first())) {
            (Some(label), Some(bound)) => compare(label, bound),
            _ => false,
        }
    }
}

const SYMBOLS: &str = "=!(),<>";

/// Splits into symbols and words; the end is an empty token.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if ["==", "!="].iter().any(|operator| rest.starts_with(operator)) {
            2
        } else if SYMBOLS.contains(first) {
            1
        } else {
            rest.find(|c: char| SYMBOLS.contains(c) || c.is_whitespace())
                .unwrap_or(rest.len())
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens.push(String::new());
    tokens
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    fn parse(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                "" => break,
                token if token == "!" || is_word(token) => {}
                token => {
                    return Err(format!(
                        "found '{token}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            requirements.push(
                self.requirement()
                    .map_err(|e| format!("unable to parse requirement: {e}"))?,
            );
            match self.next().as_str() {
                "" => break,
                "," if self.peek() == "!" || is_word(self.peek()) => {}
                "," => return Err(format!("found '{}', expected: identifier after ','", self.peek())),
                token => return Err(format!("found '{token}', expected: ',' or 'end of string'")),
            }
        }
        Ok(LabelSelector { requirements })
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == "!";
        if negated {
            self.next();
        }
        let key = self.next();
        if !is_word(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if negated {
            return Ok(Requirement {
                key,
                operator: Operator::DoesNotExist,
                values: BTreeSet::new(),
            });
        }
        if matches!(self.peek(), "" | ",") {
            return Ok(Requirement {
                key,
                operator: Operator::Exists,
                values: BTreeSet::new(),
            });
        }
        let (operator, is_set) = match self.next().as_str() {
            "=" | "==" => (Operator::In, false),
            "!=" => (Operator::NotIn, false),
            ">" => (Operator::GreaterThan, false),
            "<" => (Operator::LessThan, false),
            "in" => (Operator::In, true),
            "notin" => (Operator::NotIn, true),
            token => {
                return Err(format!(
                    "found '{token}', expected: '=', '!=', '==', 'in', notin'"
                ));
            }
        };
        let values = if is_set {
            self.values()?
        } else {
            BTreeSet::from([self.value()?])
        };
        Ok(Requirement {
            key,
            operator,
            values,
        })
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        let token = self.next();
        if is_word(&token) {
            Ok(token)
        } else {
            Err(format!("found '{token}', expected: identifier"))
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = BTreeSet::new();
        let mut expects_value = true;
        loop {
            match self.next().as_str() {
                ")" => {
                    if expects_value {
                        values.insert(String::new());
                    }
                    return Ok(values);
                }
                "," => {
                    if expects_value {
                        values.insert(String::new());
                    }
                    expects_value = true;
                }
                token if is_word(token) && expects_value => {
                    values.insert(token.to_owned());
                    expects_value = false;
                }
                token => return Err(format!("found '{token}', expected: ',' or ')'")),
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(|c: char| SYMBOLS.contains(c))
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
        let error = LabelSelector::parse("a=b=c").unwrap_err();
        assert_eq!(error.to_string(), "found '=', expected: ',' or 'end of string'");
    }
}
