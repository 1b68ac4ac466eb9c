//! Classes of characters in brackets.

use super::escape;
use super::problem::problem;

const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Translates a class at the start of a text; returns its length.
pub(super) fn translate(text: &str, out: &mut String) -> Result<usize, String> {
    let mut at = 1;
    out.push('[');
    if text[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    let mut first = true;
    // A bracket that closes is a character when it comes first.
    while first || !text[at..].starts_with(']') {
        first = false;
        let rest = &text[at..];
        if let Some(length) = named(rest, out)? {
            at += length;
            continue;
        }
        if let Some(length) = escape::group(rest, out)? {
            at += length;
            continue;
        }
        at += range(rest, text, out)?;
    }
    out.push(']');
    Ok(at + 1)
}

/// `[:alpha:]`, `[:^alpha:]`.
fn named(text: &str, out: &mut String) -> Result<Option<usize>, String> {
    let Some(end) = text.strip_prefix("[:").and_then(|rest| rest.find(":]")) else {
        return Ok(None);
    };
    let name = &text[2..2 + end];
    let length = end + 4;
    if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(problem("invalid character class range", &text[..length]));
    }
    out.push_str(&text[..length]);
    Ok(Some(length))
}

/// A character, or two with a hyphen.
fn range(text: &str, class: &str, out: &mut String) -> Result<usize, String> {
    let (low, mut length) = character(text, class)?;
    let mut high = low;
    let rest = &text[length..];
    if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
        let (end, more) = character(&rest[1..], class)?;
        high = end;
        length += 1 + more;
    }
    if high < low {
        return Err(problem("invalid character class range", &text[..length]));
    }
    escape::push_literal(out, low);
    if high > low {
        out.push('-');
        escape::push_literal(out, high);
    }
    Ok(length)
}

fn character(text: &str, class: &str) -> Result<(char, usize), String> {
    match text.chars().next() {
        None => Err(problem("missing closing ]", class)),
        Some('\\') => escape::character(text),
        Some(c) => Ok((c, c.len_utf8())),
    }
}
