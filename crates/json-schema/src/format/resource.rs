//! Names of resources: URIs, references to them and templates.

use super::address;
use super::problem::{Problem, refuse};
use crate::escape::{Part, unescape};
use crate::pointer;
use crate::url::Url;

pub(super) fn uri(text: &str) -> Result<(), Problem> {
    if parse(text)?.is_absolute() {
        Ok(())
    } else {
        refuse("relative url")
    }
}

pub(super) fn uri_reference(text: &str) -> Result<(), Problem> {
    if text.contains('\\') {
        return refuse("contains \\");
    }
    parse(text).map(|_| ())
}

pub(super) fn uri_template(text: &str) -> Result<(), Problem> {
    let url = parse(text)?;
    for token in url.raw_path.split('/') {
        let token = unescape(token.as_bytes(), Part::PathSegment)
            .map_err(|problem| format!("percent decode failed: {problem}"))?;
        let mut open = false;
        for brace in token.iter().filter(|c| matches!(c, b'{' | b'}')) {
            if open == (*brace == b'{') {
                return refuse("nested curly braces");
            }
            open = !open;
        }
        if open {
            return refuse("no matching closing brace");
        }
    }
    Ok(())
}

/// Go's url.Parse, and what the library checks besides: an IPv6 host stands in brackets.
fn parse(text: &str) -> Result<Url, Problem> {
    let (bare, fragment) = pointer::split(text);
    let url = Url::parse(bare)?;
    if let Err(problem) = unescape(fragment.as_bytes(), Part::Path) {
        return refuse(format!("parse {}: {problem}", go_text::quote::quoted(text)));
    }
    let host = url.host_name();
    if host.contains(&b':') {
        if !url.host.contains(&b'[') || !url.host.contains(&b']') {
            return refuse("ipv6 address not enclosed in brackets");
        }
        address::ipv6(&String::from_utf8_lossy(host))
            .map_err(|problem| format!("invalid ipv6 address: {problem}"))?;
    }
    Ok(url)
}
