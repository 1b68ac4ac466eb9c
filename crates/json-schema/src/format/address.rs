//! Addresses: IPv4, IPv6, host names and e-mail.

use go_text::quote::{quoted, quoted_char};

use super::problem::{Problem, refuse, whole};

/// Family of a parsed address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    V6WithZone,
}

/// An address as Go's netip.ParseAddr parses it.
pub(crate) fn parse(text: &str) -> Result<Family, Problem> {
    match text.bytes().find(|c| matches!(c, b'.' | b':' | b'%')) {
        Some(b'.') => parse_v4(text, text).map(|()| Family::V4),
        Some(b':') => parse_v6(text),
        Some(_) => wrong(text, "missing IPv6 address", ""),
        None => wrong(text, "unable to parse IP", ""),
    }
}

fn wrong<T>(text: &str, problem: &str, at: &str) -> Result<T, Problem> {
    let mut message = format!("ParseAddr({}): {problem}", quoted(text));
    if !at.is_empty() {
        message.push_str(&format!(" (at {})", quoted(at)));
    }
    Err(message)
}

/// Four numbers, in `fields`, which is the end of `text`.
fn parse_v4(text: &str, fields: &str) -> Result<(), Problem> {
    let bytes = fields.as_bytes();
    let (mut number, mut digits, mut dots) = (0u32, 0, 0);
    for (place, c) in bytes.iter().enumerate() {
        match c {
            b'0'..=b'9' => {
                if digits == 1 && number == 0 {
                    return wrong(text, "IPv4 field has octet with leading zero", "");
                }
                number = number * 10 + u32::from(c - b'0');
                digits += 1;
                if number > 255 {
                    return wrong(text, "IPv4 field has value >255", "");
                }
            }
            b'.' => {
                if place == 0 || place == bytes.len() - 1 || bytes[place - 1] == b'.' {
                    return wrong(text, "IPv4 field must have at least one digit", &fields[place..]);
                }
                if dots == 3 {
                    return wrong(text, "IPv4 address too long", "");
                }
                (number, digits, dots) = (0, 0, dots + 1);
            }
            _ => return wrong(text, "unexpected character", &fields[place..]),
        }
    }
    if dots < 3 {
        return wrong(text, "IPv4 address too short", "");
    }
    Ok(())
}

fn parse_v6(text: &str) -> Result<Family, Problem> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return wrong(text, "zone must be a non-empty string", ""),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let family = if zone { Family::V6WithZone } else { Family::V6 };
    let mut ellipsis = None;
    if let Some(behind) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = behind;
        if rest.is_empty() {
            return Ok(family);
        }
    }
    let mut filled = 0;
    while filled < 16 {
        let digits = group(text, rest)?;
        if rest.as_bytes().get(digits) == Some(&b'.') {
            if ellipsis.is_none() && filled != 12 {
                let problem = "embedded IPv4 address must replace the final 2 fields of the address";
                return wrong(text, problem, rest);
            }
            if filled + 4 > 16 {
                let problem = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return wrong(text, problem, rest);
            }
            parse_v4(text, rest)?;
            rest = "";
            filled += 4;
            break;
        }
        filled += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(behind) = rest.strip_prefix(':') else {
            return wrong(text, "unexpected character, want colon", rest);
        };
        if behind.is_empty() {
            return wrong(text, "colon must be followed by more characters", rest);
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return wrong(text, "multiple :: in address", rest);
            }
            ellipsis = Some(filled);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest, filled < 16, ellipsis) {
        ("", true, None) => wrong(text, "address string too short", ""),
        ("", false, Some(_)) => wrong(text, "the :: must expand to at least one field of zeros", ""),
        ("", _, _) => Ok(family),
        _ => wrong(text, "trailing garbage after address", rest),
    }
}

/// The number of hexadecimal digits that `rest` starts with.
fn group(text: &str, rest: &str) -> Result<usize, Problem> {
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    match digits {
        0 => wrong(
            text,
            "each colon-separated field must have at least one digit",
            rest,
        ),
        1..=4 => Ok(digits),
        _ => wrong(text, "each group must have 4 or less digits", rest),
    }
}

pub(super) fn ipv4(text: &str) -> Result<(), Problem> {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return refuse("expected four decimals");
    }
    for group in groups {
        if group.len() > 1 && group.starts_with('0') {
            return refuse("leading zeros");
        }
        if !(0..=255).contains(&whole(group)?) {
            return refuse("decimal must be between 0 and 255");
        }
    }
    Ok(())
}

pub(super) fn ipv6(text: &str) -> Result<(), Problem> {
    if !text.contains(':') {
        return refuse("missing colon");
    }
    match parse(text)? {
        Family::V6WithZone => refuse("zone id is not a part of ipv6 address"),
        Family::V4 | Family::V6 => Ok(()),
    }
}

pub(super) fn host_name(text: &str) -> Result<(), Problem> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.len() > 253 {
        return refuse("more than 253 characters long");
    }
    for label in text.split('.') {
        if label.is_empty() || label.len() > 63 {
            return refuse("label must be 1 to 63 characters long");
        }
        if label.starts_with('-') {
            return refuse("label starts with hyphen");
        }
        if label.ends_with('-') {
            return refuse("label ends with hyphen");
        }
        if let Some(c) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return refuse(format!("invalid character {}", quoted_char(c)));
        }
    }
    Ok(())
}

pub(super) fn email(text: &str) -> Result<(), Problem> {
    if text.len() > 254 {
        return refuse("more than 255 characters long");
    }
    let Some((local, domain)) = text.rsplit_once('@') else {
        return refuse("missing @");
    };
    if local.len() > 64 {
        return refuse("local part more than 64 characters long");
    }
    if local.len() > 1 && local.starts_with('"') && local.ends_with('"') {
        if local[1..local.len() - 1].contains(['\\', '"']) {
            return refuse("backslash and quote are not allowed within quoted local part");
        }
    } else {
        unquoted_local_part(local)?;
    }
    match domain
        .strip_prefix('[')
        .and_then(|domain| domain.strip_suffix(']'))
    {
        Some(address) => match address.strip_prefix("IPv6:") {
            Some(address) => ipv6(address).map_err(|problem| format!("invalid ipv6 address: {problem}")),
            None => ipv4(address).map_err(|problem| format!("invalid ipv4 address: {problem}")),
        },
        None => host_name(domain).map_err(|problem| format!("invalid domain: {problem}")),
    }
}

fn unquoted_local_part(local: &str) -> Result<(), Problem> {
    if local.starts_with('.') {
        return refuse("starts with dot");
    }
    if local.ends_with('.') {
        return refuse("ends with dot");
    }
    if local.contains("..") {
        return refuse("consecutive dots");
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c);
    match local.chars().find(|c| !is_allowed(*c)) {
        Some(c) => refuse(format!("invalid character {}", quoted_char(c))),
        None => Ok(()),
    }
}
