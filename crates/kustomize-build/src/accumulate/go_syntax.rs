//! An object in Go's syntax, as kustomize shows one that it cannot write.

use std::cmp::Ordering;

use manifest::yaml::number::{self, Integer};
use manifest::yaml::scalar::{self, Scalar};
use manifest::yaml::{Kind, Node, NodeId, Nodes};
use serde_json::Value;

/// Writes an object as Go's `%#v` shows what go-yaml read; what a Secret holds is left out.
pub(super) fn of_object(nodes: &Nodes, root: NodeId) -> String {
    let is_secret = nodes
        .field(root, "kind")
        .is_some_and(|kind| nodes[kind].value == "Secret");
    let hidden: &[&str] = if is_secret { &["data", "stringData"] } else { &[] };
    mapping(nodes, root, hidden)
}

/// Writes any part of an object.
pub(super) fn value(nodes: &Nodes, id: NodeId) -> String {
    let node = &nodes[id];
    match node.kind {
        Kind::Scalar => GoScalar::from_node(node).to_string(),
        Kind::Alias => node.alias.map_or_else(String::new, |target| value(nodes, target)),
        Kind::Sequence => {
            let elements: Vec<String> = node.content.iter().map(|child| value(nodes, *child)).collect();
            format!("[]interface {{}}{{{}}}", elements.join(", "))
        }
        Kind::Mapping => mapping(nodes, id, &[]),
    }
}

fn mapping(nodes: &Nodes, id: NodeId, hidden: &[&str]) -> String {
    let fields = sorted_fields(nodes, id);
    let key_type = if has_text_keys(&fields) {
        "string"
    } else {
        "interface {}"
    };
    let shown = fields
        .iter()
        .filter(|(key, _)| !matches!(key, GoScalar::Text(name) if hidden.contains(&name.as_str())))
        .map(|(key, field)| format!("{key}:{}", value(nodes, *field)));
    let shown: Vec<String> = shown.collect();
    format!("map[{key_type}]interface {{}}{{{}}}", shown.join(", "))
}

/// Returns the fields of a mapping in the order in which Go prints and encodes them.
pub(super) fn sorted_fields(nodes: &Nodes, id: NodeId) -> Vec<(GoScalar, NodeId)> {
    let mut fields: Vec<(GoScalar, NodeId)> = nodes
        .pairs(id)
        .map(|(key, field)| (GoScalar::from_node(&nodes[key]), field))
        .collect();
    fields.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    fields
}

/// Returns whether go-yaml reads the fields into a `map[string]interface {}`.
pub(super) fn has_text_keys(fields: &[(GoScalar, NodeId)]) -> bool {
    fields.iter().all(|(key, _)| matches!(key, GoScalar::Text(_)))
}

/// Go type of a scalar as go-yaml reads it. The order is that in which Go prints keys of several types: by
/// where its compiler puts the types.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum GoScalar {
    Nothing,
    Text(String),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Truth(bool),
    /// A point in time, as RFC 3339.
    Time(String),
}

impl GoScalar {
    pub(super) fn from_node(node: &Node) -> Self {
        if node.kind != Kind::Scalar {
            return Self::Nothing;
        }
        let plain = scalar::resolve_plain(&node.value);
        if let Ok(Value::String(text)) = scalar::to_json(node) {
            return if plain == Scalar::Timestamp && text != node.value {
                Self::Time(text)
            } else {
                Self::Text(text)
            };
        }
        match plain {
            Scalar::Bool(truth) => Self::Truth(truth),
            Scalar::Int(Integer::Signed(n)) => Self::Signed(n),
            Scalar::Int(Integer::Unsigned(n)) => Self::Unsigned(n),
            Scalar::Float(f) => Self::Float(f),
            _ => Self::Nothing,
        }
    }
}

impl std::fmt::Display for GoScalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("interface {}(nil)"),
            Self::Text(text) => f.write_str(&go_text::quote::quoted(text)),
            Self::Unsigned(n) => write!(f, "{n:#x}"),
            Self::Signed(n) => write!(f, "{n}"),
            Self::Float(float) if float.is_nan() => f.write_str("NaN"),
            Self::Float(float) if float.is_infinite() => {
                f.write_str(if *float > 0.0 { "+Inf" } else { "-Inf" })
            }
            Self::Float(float) => f.write_str(&number::format_g(*float)),
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Time(text) => f.write_str(&time(text)),
        }
    }
}

/// Shows a point in time, of which only whole days come without an offset and a fraction.
fn time(rfc3339: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let number = |range: std::ops::Range<usize>| -> usize {
        rfc3339
            .get(range)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_default()
    };
    let month = MONTHS.get(number(5..7).wrapping_sub(1)).unwrap_or(&"January");
    let (year, day) = (number(0..4), number(8..10));
    let (hour, minute, second) = (number(11..13), number(14..16), number(17..19));
    format!("time.Date({year}, time.{month}, {day}, {hour}, {minute}, {second}, 0, time.UTC)")
}

#[cfg(test)]
mod tests {
    use super::of_object;
    use manifest::yaml::{Dialect, Nodes, compose_first};

    fn shown(text: &str) -> String {
        let mut nodes = Nodes::default();
        let root = compose_first(text, &mut nodes, Dialect::Kyaml).unwrap().unwrap();
        of_object(&nodes, root)
    }

    #[test]
    fn objects_are_shown_as_in_go_and_secrets_are_not() {
        assert_eq!(
            shown("{kind: ConfigMap, data: {a: \"\\x01\\x7f\", n: [1, null]}}"),
            "map[string]interface {}{\"data\":map[string]interface {}{\"a\":\"\\x01\\x7f\", \
             \"n\":[]interface {}{1, interface {}(nil)}}, \"kind\":\"ConfigMap\"}"
        );
        assert_eq!(
            shown("{kind: Secret, data: {a: x}, stringData: {b: y}}"),
            "map[string]interface {}{\"kind\":\"Secret\"}"
        );
    }

    #[test]
    fn keys_of_several_types_stand_in_the_order_of_go() {
        assert_eq!(
            shown("{true: a, 1.5: b, 2: c, s: d, 2001-01-01: e, -1: g, 18446744073709551615: h}"),
            "map[interface {}]interface {}{\"s\":\"d\", 0xffffffffffffffff:\"h\", -1:\"g\", 2:\"c\", 1.5:\"b\", true:\"a\", \
             time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC):\"e\"}"
        );
    }
}
