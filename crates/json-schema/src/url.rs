//! URLs as Go's net/url parses, resolves and prints them: schemas name each other by URL.

use super::escape::{Part, escape, is_plain, unescape};
use super::format::address;
use go_text::quote::quoted;

/// A URL without a fragment; fragments are split off before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// Part before the first colon, in lower case; empty for a relative reference.
    pub scheme: String,
    opaque: String,
    user: Option<String>,
    /// The host with its port, decoded.
    pub host: Vec<u8>,
    /// The path, decoded.
    pub path: Vec<u8>,
    /// The path as it was written, where encoding it anew would give something else.
    pub raw_path: String,
    omit_host: bool,
    force_query: bool,
    query: String,
}

impl Url {
    /// Parses; the error is what Go's `url.Parse` says, with the text in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text).map_err(|problem| format!("parse {}: {problem}", quoted(text)))
    }

    /// Returns whether there is a scheme.
    pub fn is_absolute(&self) -> bool {
        !self.scheme.is_empty()
    }

    /// The host without its port and brackets.
    pub fn host_name(&self) -> &[u8] {
        let host = match self.host.iter().rposition(|c| *c == b':') {
            Some(colon) if is_optional_port(&self.host[colon..]) => &self.host[..colon],
            _ => &self.host,
        };
        match host {
            [b'[', inner @ .., b']'] => inner,
            _ => host,
        }
    }

    /// Resolves a reference against this URL, as RFC 3986 says.
    pub fn resolve(&self, reference: &Self) -> Self {
        let mut url = reference.clone();
        if reference.scheme.is_empty() {
            url.scheme.clone_from(&self.scheme);
        }
        if !reference.scheme.is_empty() || !reference.host.is_empty() || reference.user.is_some() {
            url.set_path_infallibly(&resolve_path(&reference.escaped_path(), ""));
            return url;
        }
        if !reference.opaque.is_empty() {
            return url;
        }
        if reference.path.is_empty() && !reference.force_query && reference.query.is_empty() {
            url.query.clone_from(&self.query);
        }
        if reference.path.is_empty() && !self.opaque.is_empty() {
            url.opaque.clone_from(&self.opaque);
            return url;
        }
        url.host.clone_from(&self.host);
        url.user.clone_from(&self.user);
        url.set_path_infallibly(&resolve_path(&self.escaped_path(), &reference.escaped_path()));
        url
    }

    /// Keeps an opaque base (`urn:a:b`) where Go's ResolveReference loses it; the schema library mends that, too.
    pub fn keep_opaque_of(&mut self, base: &Self, reference: &Self) {
        if !reference.is_absolute() && !base.opaque.is_empty() {
            self.opaque.clone_from(&base.opaque);
        }
    }

    fn set_path(&mut self, text: &str) -> Result<(), String> {
        self.path = unescape(text.as_bytes(), Part::Path)?;
        self.raw_path.clear();
        if escape(&self.path, Part::Path) != text {
            text.clone_into(&mut self.raw_path);
        }
        Ok(())
    }

    /// For paths that are known to be validly escaped.
    fn set_path_infallibly(&mut self, text: &str) {
        if self.set_path(text).is_err() {
            self.path = text.as_bytes().to_vec();
        }
    }

    fn escaped_path(&self) -> String {
        if !self.raw_path.is_empty() && is_valid_encoding(&self.raw_path) {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape(&self.path, Part::Path)
    }

    fn authority(&self, text: &mut String) {
        if self.scheme.is_empty() && self.host.is_empty() && self.user.is_none() {
            return;
        }
        if self.omit_host && self.host.is_empty() && self.user.is_none() {
            return;
        }
        if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
            text.push_str("//");
        }
        if let Some(user) = &self.user {
            text.push_str(user);
            text.push('@');
        }
        text.push_str(&escape(&self.host, Part::Host));
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme);
            text.push(':');
        }
        if self.opaque.is_empty() {
            self.authority(&mut text);
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                text.push('/');
            }
            if text.is_empty()
                && path
                    .split('/')
                    .next()
                    .is_some_and(|segment| segment.contains(':'))
            {
                text.push_str("./");
            }
            text.push_str(&path);
        } else {
            text.push_str(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            text.push('?');
            text.push_str(&self.query);
        }
        f.write_str(&text)
    }
}

fn parse(text: &str) -> Result<Url, String> {
    if text.bytes().any(|c| c < b' ' || c == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let mut rest = split_query(&mut url, rest);
    if !rest.starts_with('/') {
        if url.is_absolute() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|segment| segment.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (url.is_absolute() || !rest.starts_with("///")) && rest.starts_with("//") {
        let end = rest[2..].find('/').map_or(rest.len(), |slash| slash + 2);
        set_authority(&mut url, &rest[2..end])?;
        rest = &rest[end..];
    } else if url.is_absolute() && rest.starts_with('/') {
        url.omit_host = true;
    }
    url.set_path(rest)?;
    Ok(url)
}

fn split_query<'a>(url: &mut Url, rest: &'a str) -> &'a str {
    match rest.split_once('?') {
        Some((path, "")) => {
            url.force_query = true;
            path
        }
        Some((path, query)) => {
            query.clone_into(&mut url.query);
            path
        }
        None => rest,
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (place, c) in text.bytes().enumerate() {
        match c {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if place > 0 => {}
            b':' if place == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..place], &text[place + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn set_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(&url.scheme, host)?;
    if let Some(user) = user {
        url.user = Some(parse_user(user)?);
    }
    Ok(())
}

/// Checks the user's name and password, and encodes them as they are printed.
fn parse_user(user: &str) -> Result<String, String> {
    let valid = |c: u8| c.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&c);
    if !user.bytes().all(valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let recode = |text: &str| Ok::<_, String>(escape(&unescape(text.as_bytes(), Part::User)?, Part::User));
    Ok(match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", recode(name)?, recode(password)?),
        None => recode(user)?,
    })
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Only HTTP is strict about colons; databases write lists of hosts with ports.
    let colon = if matches!(scheme, "http" | "https") {
        host.find(':')
    } else {
        host.rfind(':')
    };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host.as_bytes(), Part::Host)
}

fn parse_ip_literal(host: &str) -> Result<Vec<u8>, String> {
    let close = host.rfind(']').ok_or("missing ']' in host")?;
    let port = &host[close + 1..];
    check_port(port)?;
    let port = unescape(port.as_bytes(), Part::Host)?;
    let name = &host[1..close];
    let name = match name.find("%25") {
        Some(zone) => {
            let mut address = unescape(&name.as_bytes()[..zone], Part::Host)?;
            address.extend(unescape(&name.as_bytes()[zone..], Part::Zone)?);
            address
        }
        None => unescape(name.as_bytes(), Part::Host)?,
    };
    let address = address::parse(&String::from_utf8_lossy(&name))
        .map_err(|problem| format!("invalid host: {problem}"))?;
    if address == address::Family::V4 {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", name.as_slice(), b"]", port.as_slice()].concat())
}

fn check_port(port: &str) -> Result<(), String> {
    if is_optional_port(port.as_bytes()) {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quoted(port)))
    }
}

fn is_optional_port(port: &[u8]) -> bool {
    match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn is_valid_encoding(path: &str) -> bool {
    path.bytes()
        .all(|c| b"!$&'()*+,;=:@[]%".contains(&c) || is_plain(c, Part::Path))
}

fn resolve_path(base: &str, reference: &str) -> String {
    let full = if reference.is_empty() {
        base.to_owned()
    } else if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let folder = base.rfind('/').map_or(0, |slash| slash + 1);
        format!("{}{reference}", &base[..folder])
    };
    if full.is_empty() {
        return full;
    }
    let path = without_dots(&full);
    // An initial slash is always written; two are not wanted.
    match path.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        _ => path,
    }
}

fn without_dots(full: &str) -> String {
    let mut path = String::from('/');
    let mut first = true;
    for element in full.split('/') {
        match element {
            "." => first = false,
            ".." => {
                let parent = path[1..].rfind('/').map_or(1, |slash| slash + 1);
                path.truncate(parent);
                first = path.len() == 1;
            }
            _ => {
                if !first {
                    path.push('/');
                }
                path.push_str(element);
                first = false;
            }
        }
    }
    if matches!(full.rsplit('/').next(), Some("." | "..")) {
        path.push('/');
    }
    path
}
