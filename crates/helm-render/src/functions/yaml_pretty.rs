//! `toYamlPretty`: YAML straight from values, as go-yaml v3 writes it with two spaces.
//!
//! Nothing goes through JSON here: floats are printed as go-yaml prints them, bytes are a list of numbers, and keys are
//! sorted so that numbers in them count.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_template::{Context, Error, Function, Functions, Map, Type, Value};
use manifest::yaml::{self, Node, NodeId, Nodes, Style, Tag, number};

pub(super) fn register(functions: &mut Functions) {
    functions.add(
        "toYamlPretty",
        Function::new(&[Type::ANY], |context, arguments| {
            Ok(to_yaml_pretty(context, &arguments[0])?.into())
        }),
    );
}

fn to_yaml_pretty(context: &mut Context<'_>, value: &Value) -> Result<String, Error> {
    let mut nodes = Nodes::default();
    let root = node(context, &mut nodes, value, 0)?;
    let mut text = yaml::write_tree_indented(&nodes, root);
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Values that hold themselves end Go's process; others are never nested so deeply.
const MAX_DEPTH: usize = 1_000;

fn node(context: &mut Context<'_>, nodes: &mut Nodes, value: &Value, depth: usize) -> Result<NodeId, Error> {
    context.descend()?;
    context.step()?;
    let text = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len().saturating_mul(size_of::<Node>()),
        _ => 0,
    };
    // Its line begins with two spaces for each level.
    context.charge(size_of::<Node>() + 2 * depth + text)?;
    if depth > MAX_DEPTH {
        return Err(Error::new("toYamlPretty: the value is nested too deeply"));
    }
    let node = match value {
        Value::Invalid | Value::Nil => Node::scalar("null"),
        Value::Bool(truth) => Node::scalar(truth.to_string()),
        Value::Int(number, _) => Node::scalar(number.to_string()),
        Value::Uint(number, _) => Node::scalar(number.to_string()),
        Value::Float(number) => Node::scalar(float(*number)),
        Value::String(text) => string(text),
        Value::Bytes(bytes) => {
            let mut list = Node::sequence();
            for byte in bytes.iter() {
                list.content.push(nodes.add(Node::scalar(byte.to_string())));
            }
            list
        }
        Value::List(items) => {
            let mut list = Node::sequence();
            for item in items.iter() {
                list.content.push(self::node(context, nodes, item, depth + 1)?);
            }
            list
        }
        Value::Map(map) => mapping(context, nodes, map, depth)?,
        Value::Object(object) => match object.json().or_else(|| object.underlying()) {
            Some(Value::String(text)) if object.type_().name() == "time.Time" => {
                Node::scalar(text.to_text().into_owned())
            }
            Some(value) => return self::node(context, nodes, &value, depth + 1),
            None => {
                let mut fields = Node::mapping();
                for (name, value) in object.fields() {
                    // Without a tag go-yaml writes a field's name in lower case.
                    fields
                        .content
                        .push(nodes.add(string(name.to_lowercase().as_bytes())));
                    fields
                        .content
                        .push(self::node(context, nodes, &value, depth + 1)?);
                }
                fields
            }
        },
        Value::Complex(..) | Value::Func(_) => {
            return Err(Error::new(format!("cannot marshal type: {}", value.type_name())));
        }
    };
    Ok(nodes.add(node))
}

fn mapping(context: &mut Context<'_>, nodes: &mut Nodes, map: &Map, depth: usize) -> Result<Node, Error> {
    let mut entries = map.entries();
    entries.sort_by(|(one, _), (other, _)| compare_keys(&one.to_text(), &other.to_text()));
    let mut mapping = Node::mapping();
    for (key, value) in &entries {
        mapping.content.push(nodes.add(string(key)));
        mapping.content.push(node(context, nodes, value, depth + 1)?);
    }
    Ok(mapping)
}

fn float(number: f64) -> String {
    if number.is_nan() {
        ".nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        number::format_g(number)
    }
}

/// A string in the style that go-yaml wishes for it; bytes that are no text become base64.
fn string(bytes: &[u8]) -> Node {
    let Ok(text) = str::from_utf8(bytes) else {
        let mut node = Node::tagged_scalar(STANDARD.encode(bytes), Tag::Binary);
        node.tagged = true;
        return node;
    };
    if text == "<<" {
        // go-yaml finds no type for it and leaves it plain, though it reads as a merge key.
        return Node::scalar(text);
    }
    let mut node = Node::string(text);
    if !text.contains('\n') && (is_old_bool(text) || is_base_60(text)) {
        node.style = Style::DoubleQuoted;
    }
    node
}

/// Words that YAML 1.1 took for booleans.
fn is_old_bool(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// Numbers to the base 60 of YAML 1.1, such as `1:30` or `-12:05.5`.
fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut groups = whole.split(':');
    let first = groups.next().unwrap_or_default();
    let is_sixtieth = |group: &str| match group.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    let digits_only = |text: &str| text.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    whole.contains(':') && digits_only(first) && groups.all(is_sixtieth) && digits_only(fraction)
}

/// go-yaml's order of keys: numbers in them count as numbers, and letters stand behind other characters.
fn compare_keys(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(place) = (0..one.len().min(other.len())).find(|place| one[*place] != other[*place]) else {
        return one.len().cmp(&other.len());
    };
    let behind_digit = place > 0 && one[place - 1].is_numeric();
    let (a, b) = (one[place], other[place]);
    match (a.is_alphabetic(), b.is_alphabetic()) {
        (true, true) => return a.cmp(&b),
        (true, false) if behind_digit => return Ordering::Less,
        (true, false) => return Ordering::Greater,
        (false, true) if behind_digit => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (first, first_end) = number_at(&one, place, &one, &other);
    let (second, second_end) = number_at(&other, place, &one, &other);
    first
        .cmp(&second)
        .then(first_end.cmp(&second_end))
        .then(a.cmp(&b))
}

/// The number that starts at a place, and where it ends. A zero there counts as if a digit stood before it, where one
/// other than zero does.
fn number_at(text: &[char], place: usize, one: &[char], other: &[char]) -> (i64, usize) {
    let mut number: i64 = 0;
    if one[place] == '0' || other[place] == '0' {
        let before = one[..place].iter().rev().take_while(|c| c.is_numeric());
        number = i64::from(before.into_iter().any(|c| *c != '0'));
    }
    let mut end = place;
    while let Some(c) = text.get(end).filter(|c| c.is_numeric()) {
        let digit = i64::from(u32::from(*c)) - i64::from(u32::from('0'));
        number = number.wrapping_mul(10).wrapping_add(digit);
        end += 1;
    }
    (number, end)
}

#[cfg(test)]
mod tests {
    use go_template::{List, Options, Render, Templates};

    use super::*;

    fn check(value: impl Into<Value>, expected: &str) {
        let (templates, functions) = (Templates::default(), Functions::default());
        let mut render = Render::new(&templates, &functions, &Options::default());
        let written = to_yaml_pretty(&mut render.context(), &value.into());
        assert_eq!(written.expect("it can be written"), expected);
    }

    #[test]
    fn values_are_written_as_go_yaml_writes_them() {
        check(Value::Nil, "null");
        check(12_345_678.0, "1.2345678e+07");
        check(f64::NEG_INFINITY, "-.inf");
        check(Value::Bytes("ab".into()), "- 97\n- 98");
        for (text, written) in [
            ("yes", "\"yes\""),
            ("1:30", "\"1:30\""),
            ("5", "\"5\""),
            ("a: b", "'a: b'"),
            ("a\nb", "|-\n  a\n  b"),
            ("<<", "<<"),
        ] {
            check(text, written);
        }
        let list: List = [Value::int(1), Map::new().into()].into_iter().collect();
        let map: Map = [("a10", Value::Nil), ("a2", list.into())].into_iter().collect();
        check(map, "a2:\n  - 1\n  - {}\na10: null");
    }

    #[test]
    fn keys_are_sorted_with_their_numbers() {
        let sorted = ["", "1", "2", "10", "a", "a-b", "a1", "a2", "a10", "ab", "b"];
        let mut keys = sorted;
        keys.reverse();
        keys.sort_by(|one, other| compare_keys(one, other));
        assert_eq!(keys, sorted);
    }

    #[test]
    fn numbers_to_the_base_60_are_told() {
        for (text, expected) in [
            ("1:30", true),
            ("-12:05.5", true),
            ("1:60", false),
            ("1:3a", false),
            ("a:1", false),
            ("130", false),
            ("190:20:30.15", true),
            ("::1", false),
        ] {
            assert_eq!(is_base_60(text), expected, "{text}");
        }
    }
}
