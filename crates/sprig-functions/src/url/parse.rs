//! Takes a URL apart as Go's net/url does.

use std::net::Ipv6Addr;

use super::escape::{Part, escape, quoted, unescape};

/// The parts of a URL, decoded but for the query and what is opaque.
#[derive(Debug, Default)]
pub(super) struct Url {
    pub(super) scheme: Vec<u8>,
    pub(super) opaque: Vec<u8>,
    pub(super) user: Option<User>,
    pub(super) host: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) query: Vec<u8>,
    pub(super) fragment: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl User {
    /// The name and password, escaped again.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            text.push(b':');
            text.extend(escape(password, Part::User));
        }
        text
    }
}

impl Url {
    /// The host without port and brackets.
    pub(super) fn hostname(&self) -> &[u8] {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|&b| b == b':');
        let host = match colon {
            Some(colon) if is_optional_port(&host[colon..]) => &host[..colon],
            _ => host,
        };
        let inner = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        inner.unwrap_or(host)
    }
}

/// Takes a URL apart. The error is Go's.
pub(super) fn parse(text: &[u8]) -> Result<Url, String> {
    let (before, fragment) = cut(text, b'#');
    let mut url =
        parse_before_fragment(before).map_err(|error| format!("parse {}: {error}", quoted(before)))?;
    url.fragment = unescape(fragment.unwrap_or_default(), Part::Fragment)
        .map_err(|error| format!("parse {}: {error}", quoted(text)))?;
    Ok(url)
}

fn parse_before_fragment(text: &[u8]) -> Result<Url, String> {
    if text.iter().any(u8::is_ascii_control) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = text.to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = cut(rest, b'?');
    url.query = query.unwrap_or_default().to_vec();
    if !rest.starts_with(b"/") {
        if !scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    if let Some(after) = rest.strip_prefix(b"//")
        && (!scheme.is_empty() || !after.starts_with(b"/"))
    {
        let end = after.iter().position(|&b| b == b'/').unwrap_or(after.len());
        let authority;
        (authority, path) = after.split_at(end);
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
    }
    url.path = unescape(path, Part::Path)?;
    Ok(url)
}

/// The scheme, empty without one, and what follows.
fn split_scheme(text: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let is_of_scheme = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    let length = text.iter().take_while(|b| is_of_scheme(b)).count();
    match (text.first(), text.get(length)) {
        (Some(b':'), _) => Err("missing protocol scheme".to_owned()),
        (Some(first), Some(b':')) if first.is_ascii_alphabetic() => {
            Ok((&text[..length], &text[length + 1..]))
        }
        _ => Ok((b"", text)),
    }
}

fn parse_authority(scheme: &[u8], authority: &[u8]) -> Result<(Option<User>, Vec<u8>), String> {
    let Some(at) = authority.iter().rposition(|&b| b == b'@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, &authority[at + 1..])?;
    let userinfo = &authority[..at];
    let is_valid = |b: &u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(b);
    if !userinfo.iter().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = cut(userinfo, b':');
    let user = User {
        name: unescape(name, Part::User)?,
        password: password
            .map(|password| unescape(password, Part::User))
            .transpose()?,
    };
    Ok((Some(user), host))
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, String> {
    let invalid_port = |port: &[u8]| format!("invalid port {} after host", quoted(port));
    match host.iter().rposition(|&b| b == b'[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Several hosts with ports are let through but for the web.
    let is_web = matches!(scheme, b"http" | b"https");
    let mut colons = (0..host.len()).filter(|&at| host[at] == b':');
    let colon = if is_web { colons.next() } else { colons.next_back() };
    if let Some(colon) = colon
        && !is_optional_port(&host[colon..])
    {
        return Err(invalid_port(&host[colon..]));
    }
    unescape(host, Part::Host)
}

/// An IPv6 address in brackets, perhaps with zone and port.
fn parse_literal(host: &[u8]) -> Result<Vec<u8>, String> {
    let Some(end) = host.iter().rposition(|&b| b == b']') else {
        return Err("missing ']' in host".to_owned());
    };
    let (literal, port) = (&host[1..end], &host[end + 1..]);
    if !is_optional_port(port) {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    let zone = literal
        .windows(3)
        .position(|part| part == b"%25")
        .unwrap_or(literal.len());
    let mut address = unescape(&literal[..zone], Part::Host)?;
    address.extend(unescape(&literal[zone..], Part::Zone)?);
    check_address(&address)?;
    Ok([b"[", address.as_slice(), b"]", port].concat())
}

fn check_address(address: &[u8]) -> Result<(), String> {
    let (plain, zone) = cut(address, b'%');
    let plain = str::from_utf8(plain).unwrap_or_default();
    if plain.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| !zone.is_empty()) {
        return Ok(());
    }
    if plain.parse::<std::net::Ipv4Addr>().is_ok() && zone.is_none() {
        return Err("invalid IP-literal".to_owned());
    }
    Err(format!(
        "invalid host: ParseAddr({}): unable to parse IP",
        quoted(address)
    ))
}

fn is_optional_port(text: &[u8]) -> bool {
    match text.split_first() {
        None => true,
        Some((b':', digits)) => digits.iter().all(u8::is_ascii_digit),
        Some(_) => false,
    }
}

/// Splits at the first such character, if there is one.
fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&b| b == mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}
