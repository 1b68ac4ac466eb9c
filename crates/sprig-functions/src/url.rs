//! URLs: `urlParse` and `urlJoin`.

mod escape;
mod parse;

use go_template::{Error, Functions, Map, Str, Type, Value};

use crate::arguments::{add, made, map, text};
use crate::reflection::kind_of;
use escape::{Part, escape};
use parse::{Url, parse};

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("urlParse", &[Type::STRING], |_, arguments| {
                let url = parse(text(arguments, 0));
                let url = url.map_err(|error| Error::new(format!("unable to parse url: {error}")))?;
                Ok(Value::Map(taken_apart(url)))
            }),
            ("urlJoin", &[Type::MAP_ANY], |_, arguments| {
                made(joined(&map(arguments, 0))?)
            }),
        ],
    );
}

fn taken_apart(url: Url) -> Map {
    let hostname = url.hostname().to_vec();
    let userinfo = url.user.map(|user| user.to_bytes()).unwrap_or_default();
    let parts = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", userinfo),
    ];
    let parts = parts.map(|(name, part)| (name, Value::String(part.into())));
    parts.into_iter().collect()
}

/// Puts the parts together as Go's URL.String does.
fn joined(parts: &Map) -> Result<Vec<u8>, Error> {
    let [scheme, host, path, query, opaque, fragment, userinfo] = [
        "scheme", "host", "path", "query", "opaque", "fragment", "userinfo",
    ]
    .map(|name| part(parts, name));
    let (scheme, host, path, query, opaque, fragment, userinfo) =
        (scheme?, host?, path?, query?, opaque?, fragment?, userinfo?);
    let user = user(&userinfo)?;
    let mut url = Vec::new();
    if !scheme.is_empty() {
        url.extend_from_slice(&scheme);
        url.push(b':');
    }
    if opaque.is_empty() {
        let is_absolute = !scheme.is_empty() || !host.is_empty() || user.is_some();
        if is_absolute && !(host.is_empty() && path.is_empty() && user.is_none()) {
            url.extend_from_slice(b"//");
            if let Some(user) = &user {
                url.extend_from_slice(user);
                url.push(b'@');
            }
            url.extend(escape(&host, Part::Host));
        }
        push_path(&mut url, &path, !host.is_empty());
    } else {
        url.extend_from_slice(&opaque);
    }
    if !query.is_empty() {
        url.push(b'?');
        url.extend_from_slice(&query);
    }
    if !fragment.is_empty() {
        url.push(b'#');
        url.extend(escape(&fragment, Part::Fragment));
    }
    Ok(url)
}

fn push_path(url: &mut Vec<u8>, path: &[u8], has_host: bool) {
    let escaped = if path == b"*" {
        path.to_vec()
    } else {
        escape(path, Part::Path)
    };
    if has_host && escaped.first().is_some_and(|&b| b != b'/') {
        url.push(b'/');
    }
    // A colon in the first segment would make it a scheme.
    let first_segment = escaped.split(|&b| b == b'/').next().unwrap_or_default();
    if url.is_empty() && first_segment.contains(&b':') {
        url.extend_from_slice(b"./");
    }
    url.extend(escaped);
}

fn user(userinfo: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if userinfo.is_empty() {
        return Ok(None);
    }
    let url = parse(&[b"proto://", userinfo, b"@host"].concat());
    let url = url.map_err(|error| Error::new(format!("unable to parse userinfo in dict: {error}")))?;
    Ok(url.user.map(|user| user.to_bytes()))
}

fn part(parts: &Map, name: &str) -> Result<Str, Error> {
    match parts.get(name) {
        None => Ok(Str::default()),
        Some(Value::String(text)) => Ok(text),
        Some(value) if value.is_untyped_nil() => Err(Error::new(
            "runtime error: invalid memory address or nil pointer dereference",
        )),
        Some(value) => Err(Error::new(format!(
            "unable to parse {name} key, must be of type string, but {} found",
            kind_of(&value)
        ))),
    }
}

#[cfg(test)]
mod tests;
