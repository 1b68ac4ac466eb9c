//! Requirements of a selector.

use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) key: String,
    pub(super) operator: Operator,
    pub(super) values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Exists,
    DoesNotExist,
    In,
    NotIn,
    GreaterThan,
    LessThan,
}

impl Requirement {
    pub(super) fn matches(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::In, value) => value.is_some_and(|value| self.values.contains(value)),
            (Operator::NotIn, value) => value.is_none_or(|value| !self.values.contains(value)),
            (Operator::GreaterThan, value) => self.compares(value, |label, bound| label > bound),
            (Operator::LessThan, value) => self.compares(value, |label, bound| label < bound),
        }
    }

    fn compares(&self, value: Option<&str>, compare: impl Fn(i64, i64) -> bool) -> bool {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        match (number(value), number(self.values.first().map(String::as_str))) {
            (Some(label), Some(bound)) => compare(label, bound),
            _ => false,
        }
    }
}
