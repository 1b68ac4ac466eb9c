//! Which value a scalar's text stands for, by the rules of go-yaml v2 (sigs.k8s.io/yaml) and v3 (kyaml).
//!
//! Both agree on numbers; v2 takes yes/no/on/off/y/n for booleans, v3 only true and false, and v3 alone gives JSON a
//! time where the text looks like a timestamp.

use serde_json::Value;

use super::go_value::GoValue;
use super::node::{Kind, Node, Style, Tag};
use super::number::{self, Integer};
use super::{folded, timestamp};

/// Value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(Integer),
    /// A float.
    Float(f64),
    /// Text that looks like a timestamp.
    Timestamp,
    /// Anything else.
    Str,
}

impl Scalar {
    /// Returns the tag of the value.
    pub fn tag(&self) -> Tag {
        match self {
            Self::Null => Tag::Null,
            Self::Bool(_) => Tag::Bool,
            Self::Int(_) => Tag::Int,
            Self::Float(_) => Tag::Float,
            Self::Timestamp => Tag::Timestamp,
            Self::Str => Tag::Str,
        }
    }
}

/// Resolves plain text without a tag, as go-yaml v3 does.
pub fn resolve_plain(text: &str) -> Scalar {
    match text {
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        _ if text.starts_with("0o") => match resolve_common(text) {
            Scalar::Str => number::parse_signed_behind(text, "0o", 8).map_or(Scalar::Str, Scalar::Int),
            other => other,
        },
        _ => resolve_common(text),
    }
}

/// Resolves plain text without a tag, as go-yaml v2 does.
pub fn resolve_plain_v2(text: &str) -> Scalar {
    match text {
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        _ => resolve_common(text),
    }
}

fn resolve_common(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => number::parse_float(text).map_or(Scalar::Str, Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => resolve_number(text),
        _ => Scalar::Str,
    }
}

fn resolve_number(text: &str) -> Scalar {
    if timestamp::to_rfc3339(text).is_some() {
        return Scalar::Timestamp;
    }
    let plain = text.replace('_', "");
    if let Some(integer) = number::parse_integer(&plain) {
        return Scalar::Int(integer);
    }
    if let Some(float) = number::parse_float(&plain) {
        return Scalar::Float(float);
    }
    number::parse_signed_behind(&plain, "0b", 2).map_or(Scalar::Str, Scalar::Int)
}

/// Returns whether a YAML 1.1 reader would take the text for something other than a string (kyaml's `IsValueNonString`).
pub fn is_no_string_in_yaml_1_1(text: &str) -> bool {
    let no_string = !matches!(resolve_plain_v2(text), Scalar::Str | Scalar::Timestamp);
    no_string && !text.is_empty() && !text.contains('\n')
}

/// Why a scalar has no value.
pub type Failure = String;

/// Returns the value of a scalar in a tree read for kustomize: by its tag if it has one, else by its text.
///
/// The value is the one that the tree has after kyaml wrote it and read it again.
pub fn to_json(node: &Node) -> Result<Value, Failure> {
    debug_assert_eq!(node.kind, Kind::Scalar);
    match &node.tag {
        Tag::Str => string(node),
        Tag::Empty if node.style != Style::Plain || node.value.contains('\n') => string(node),
        Tag::Empty => resolved(&node.value, resolve_plain(&node.value)),
        tag => {
            let scalar = resolve_plain(&node.value);
            let tag_goes_without_saying = !node.tagged && scalar.tag() == *tag;
            // go-yaml drops such a tag before it writes, and what then stands in quotes is a string.
            if tag_goes_without_saying && node.style != Style::Plain {
                return string(node);
            }
            by_tag(tag, &node.value, scalar)
        }
    }
}

fn string(node: &Node) -> Result<Value, Failure> {
    let is_block = match node.style {
        Style::Literal | Style::Folded => true,
        Style::Plain => node.value.contains('\n'),
        Style::DoubleQuoted | Style::SingleQuoted => false,
    };
    if let Some(problem) = folded::problem_of_block(&node.value).filter(|_| is_block) {
        return Err(problem.to_owned());
    }
    match node.style {
        Style::Folded => Ok(Value::from(folded::written_and_read(&node.value))),
        _ => Ok(Value::from(node.value.as_str())),
    }
}

/// Returns the value of a scalar as go-yaml v2 decodes it.
pub(super) fn decode_v2(node: &Node) -> Result<GoValue, Failure> {
    let text = || GoValue::Text(node.value.clone());
    if !node.tagged {
        return Ok(match node.style {
            Style::Plain => value_v2(node, &resolve_plain_v2(&node.value)),
            _ => text(),
        });
    }
    match &node.tag {
        Tag::Null | Tag::Bool | Tag::Int | Tag::Float | Tag::Timestamp => {}
        Tag::Binary => return decode_base64(&node.value).map(GoValue::Text),
        _ => return Ok(text()),
    }
    let scalar = resolve_plain_v2(&node.value);
    let found = match (&node.tag, &scalar) {
        (Tag::Timestamp, _) => scalar.tag(),
        // Only without a tag is a timestamp looked for; such text reads as no number.
        (_, Scalar::Timestamp) => Tag::Str,
        _ => scalar.tag(),
    };
    match (&node.tag, &scalar) {
        (Tag::Float, Scalar::Int(Integer::Signed(n))) => Ok(GoValue::Float(Integer::Signed(*n).as_f64())),
        (tag, _) if *tag == found => Ok(value_v2(node, &scalar)),
        (tag, _) => Err(format!(
            "cannot decode {} `{}` as a {}",
            found.as_str(),
            node.value,
            tag.as_str()
        )),
    }
}

fn value_v2(node: &Node, scalar: &Scalar) -> GoValue {
    match *scalar {
        Scalar::Null => GoValue::Null,
        Scalar::Bool(b) => GoValue::Bool(b),
        Scalar::Int(integer) => GoValue::Integer(integer),
        Scalar::Float(float) => GoValue::Float(float),
        // For compatibility v2 hands a timestamp on as the text that it is.
        Scalar::Timestamp | Scalar::Str => GoValue::Text(node.value.clone()),
    }
}

fn resolved(text: &str, scalar: Scalar) -> Result<Value, Failure> {
    match scalar {
        Scalar::Null => Ok(Value::Null),
        Scalar::Bool(b) => Ok(Value::Bool(b)),
        Scalar::Int(integer) => Ok(integer.to_json()),
        Scalar::Float(float) => number::float_to_json(float).ok_or_else(|| not_json(float)),
        Scalar::Timestamp => Ok(timestamp::to_rfc3339(text).map_or_else(|| Value::from(text), Value::from)),
        Scalar::Str => Ok(Value::from(text)),
    }
}

fn not_json(float: f64) -> Failure {
    let name = match float {
        f if f.is_nan() => "NaN",
        f if f > 0.0 => "+Inf",
        _ => "-Inf",
    };
    format!("json: unsupported value: {name}")
}

fn by_tag(tag: &Tag, text: &str, scalar: Scalar) -> Result<Value, Failure> {
    let found = scalar.tag();
    match (tag, scalar) {
        (Tag::Str | Tag::Other(_) | Tag::Map | Tag::Seq | Tag::Merge, _) => Ok(Value::from(text)),
        (Tag::Binary, _) => decode_base64(text).map(Value::from),
        (Tag::Float, Scalar::Int(integer)) => {
            number::float_to_json(integer.as_f64()).ok_or_else(|| not_json(integer.as_f64()))
        }
        (_, scalar) if found == *tag => resolved(text, scalar),
        _ => Err(format!(
            "cannot decode {} `{text}` as a {}",
            found.as_str(),
            tag.as_str()
        )),
    }
}

/// Decodes `!!binary`; what is no text afterwards cannot be JSON, Go replaces its bytes one by one.
fn decode_base64(text: &str) -> Result<String, Failure> {
    let fail = || "!!binary value contains invalid base64 data".to_owned();
    let mut bits = 0u32;
    let mut filled = 0;
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !digits.len().is_multiple_of(4) {
        return Err(fail());
    }
    let padding = digits.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return Err(fail());
    }
    for digit in &digits[..digits.len() - padding] {
        bits = bits << 6 | base64_digit(*digit).ok_or_else(fail)?;
        filled += 6;
        if filled >= 8 {
            filled -= 8;
            bytes.push((bits >> filled) as u8);
            bits &= (1 << filled) - 1;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn base64_digit(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}
