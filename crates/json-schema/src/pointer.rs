//! JSON pointers and the fragments of URLs that hold them.

use super::document::MAIN;
use super::escape::{Part, escape as percent_escape, unescape as percent_unescape};
use super::url::Url;
use go_text::quote::quoted;

/// A pointer with one more token.
pub(super) fn append(pointer: &str, token: &str) -> String {
    let mut longer = String::with_capacity(pointer.len() + 1 + token.len());
    longer.push_str(pointer);
    push(&mut longer, token);
    longer
}

/// Puts one more token on a pointer.
pub(super) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    if !token.contains(['~', '/']) {
        pointer.push_str(token);
        return;
    }
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// The token that an escaped one stands for, if it is validly escaped.
pub(super) fn unescape(token: &str) -> Option<String> {
    let mut plain = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}

/// A location as errors name it: URL and pointer, encoded, but with its slashes.
pub(super) fn location(url: &str, pointer: &str) -> String {
    let mut text = format!("{url}#");
    for (index, token) in pointer.split('/').enumerate() {
        if index > 0 {
            text.push('/');
        }
        text.push_str(&percent_escape(token.as_bytes(), Part::PathSegment));
    }
    text
}

/// Splits a reference at its first `#`.
pub(super) fn split(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Splits off the fragment and decodes it.
pub(super) fn split_fragment(reference: &str) -> Result<(&str, String), String> {
    let (url, fragment) = split(reference);
    match percent_unescape(fragment.as_bytes(), Part::PathSegment) {
        Ok(fragment) => Ok((url, String::from_utf8_lossy(&fragment).into_owned())),
        Err(problem) => Err(format!("error in parsing {}: {problem}", quoted(reference))),
    }
}

/// Resolves a reference against a base: the URL without its fragment, and the decoded fragment.
pub(super) fn join(base: &str, reference: &str) -> Result<(String, String), String> {
    let parse = |text: &str| {
        Url::parse(text).map_err(|problem| format!("error in parsing {}: {problem}", quoted(text)))
    };
    if base == MAIN && reference.starts_with('#') {
        // Nearly all references; this base resolves to itself.
        return Ok((base.to_owned(), split_fragment(reference)?.1));
    }
    let base = parse(base)?;
    let (reference, fragment) = split_fragment(reference)?;
    let reference = parse(reference)?;
    let mut resolved = base.resolve(&reference);
    resolved.keep_opaque_of(&base, &reference);
    Ok((resolved.to_string(), fragment))
}
