//! `$(NAME)` in a text, replaced by the variable's value.

use std::collections::BTreeMap;

use manifest::yaml::{Node, Style, Tag, number};

/// Value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A list or mapping, which cannot be put into a text.
    Other,
}

/// Values by the names of their variables.
pub(super) type Values<'a> = BTreeMap<&'a str, Value>;

/// Replaces the variables in a scalar; one that is nothing else gets the value's type.
pub(super) fn set_scalar(node: &mut Node, values: &Values<'_>) {
    node.style = Style::Plain;
    (node.value, node.tag) = match expand(&node.value, values) {
        Value::Bool(b) => (b.to_string(), Tag::Bool),
        Value::Integer(n) => (n.to_string(), Tag::Int),
        Value::Float(f) => (f.to_string(), Tag::Float),
        Value::Text(text) => (text, Tag::Str),
        Value::Other => return,
    };
}

impl Value {
    /// Writes the value as Go's `%v`; None for what cannot be written.
    fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Integer(n) => Some(n.to_string()),
            Self::Float(f) => Some(number::format_g(*f)),
            Self::Bool(b) => Some(b.to_string()),
            Self::Other => None,
        }
    }
}

/// Replaces `$(NAME)`; a text that is nothing else becomes the value itself. `$$` is a dollar.
fn expand(text: &str, values: &Values<'_>) -> Value {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let behind = &rest[at + 1..];
        let Some(next) = behind.chars().next() else {
            break;
        };
        out.push_str(&rest[..at]);
        if next == '$' {
            out.push('$');
            rest = &behind[1..];
            continue;
        }
        let name = behind.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = name else {
            out.push('$');
            out.push(next);
            rest = &behind[next.len_utf8()..];
            continue;
        };
        let value = values.get(name).filter(|value| **value != Value::Other);
        match value {
            Some(value) if text.len() == name.len() + "$()".len() => return value.clone(),
            _ => match value.and_then(Value::as_text) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&format!("$({name})")),
            },
        }
        rest = after;
    }
    out.push_str(rest);
    Value::Text(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_keep_their_type_when_alone() {
        let text = |text: &str| Value::Text(text.to_owned());
        let values: Values<'_> = [
            ("A", text("x")),
            ("N", Value::Integer(5)),
            ("F", Value::Float(2e6)),
            ("O", Value::Other),
        ]
        .into();
        for (before, expected) in [
            ("$(A)", text("x")),
            ("$(N)", Value::Integer(5)),
            ("a $(N) $(A)", text("a 5 x")),
            ("a $(F)", text("a 2e+06")),
            ("$$(A)", text("$(A)")),
            ("$(B) $", text("$(B) $")),
            ("$x$(A", text("$x$(A")),
            ("$(O)", text("$(O)")),
            ("$($(A))", text("$($(A))")),
        ] {
            assert_eq!(expand(before, &values), expected, "{before}");
        }
    }
}
