//! A new value in the place of an old one, in its style.

use std::ops::Range;

use manifest::yaml::{Node, Style, scalar};

use crate::Edit;

/// Puts a value where the scalar stands: with the quotes that it had, and with quotes if it were no string without.
pub(crate) fn edit(text: &str, place: &Range<usize>, node: &Node, new: &str) -> Edit {
    match node.style {
        Style::Literal | Style::Folded => block(text, place, new),
        Style::SingleQuoted if !has_control(new) => (place.clone(), format!("'{}'", new.replace('\'', "''"))),
        Style::SingleQuoted | Style::DoubleQuoted => (place.clone(), double_quoted(new)),
        Style::Plain if is_plain(new) => (place.clone(), new.to_owned()),
        Style::Plain => (place.clone(), double_quoted(new)),
    }
}

/// Replaces the content of a block by one line, at the indentation of its first.
fn block(text: &str, place: &Range<usize>, new: &str) -> Edit {
    let whole = &text[place.clone()];
    let header = whole.find('\n').map_or(whole.len(), |at| at + 1);
    let content = &whole[header..];
    let blank = content.len() - content.trim_start_matches(['\n', '\r', ' ']).len();
    let first = content[..blank].rfind('\n').map_or(0, |at| at + 1);
    let from = place.start + header + first + content[first..].find(|c| c != ' ').unwrap_or(0);
    let end = place.start + header + content.trim_end().len();
    if has_control(new) || end <= from {
        return (place.clone(), double_quoted(new));
    }
    (from..end, new.to_owned())
}

/// Returns whether the text can stand without quotes wherever a scalar stood, and is a string there for YAML 1.1 and 1.2.
fn is_plain(text: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '+');
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.'));
    starts_well
        && text.chars().all(is_safe)
        && !text.ends_with(':')
        && !scalar::is_no_string_in_yaml_1_1(text)
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// JSON's way to write a string is one of YAML's.
fn double_quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
