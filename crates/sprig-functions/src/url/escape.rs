//! Characters of URLs that are written as `%XX`, and back.

use go_text::quote::quote;

/// A part of a URL, which has its own characters that need no escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    User,
    Host,
    Zone,
    Fragment,
}

/// Returns whether the character cannot stand for itself in the part.
fn needs_escape(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b';' | b'=' => false,
        b'/' | b'?' | b'@' | b':' => match part {
            Part::Path => byte == b'?',
            Part::User => true,
            // Go's list for hosts lacks the others, which it escapes.
            Part::Host | Part::Zone => byte != b':',
            Part::Fragment => false,
        },
        b'!' | b'(' | b')' | b'*' => matches!(part, Part::Path | Part::User),
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !matches!(part, Part::Host | Part::Zone),
        _ => true,
    }
}

pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = Vec::with_capacity(text.len());
    for &byte in text {
        if needs_escape(byte, part) {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            escaped.extend([b'%', HEX[high], HEX[low]]);
        } else {
            escaped.push(byte);
        }
    }
    escaped
}

/// Replaces what is escaped. The error is Go's.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut unescaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            let is_of_host = matches!(part, Part::Host | Part::Zone);
            if is_of_host && byte.is_ascii() && needs_escape(byte, part) {
                return Err(format!("invalid character {} in host name", quoted(&rest[..1])));
            }
            unescaped.push(byte);
            rest = after;
            continue;
        }
        let invalid = || format!("invalid URL escape {}", quoted(&rest[..rest.len().min(3)]));
        let [high, low, ..] = after else {
            return Err(invalid());
        };
        let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low)) else {
            return Err(invalid());
        };
        let value = high << 4 | low;
        let is_forbidden = match part {
            // Only other than ASCII may be escaped in a host, and the percent sign itself.
            Part::Host => high < 8 && value != b'%',
            Part::Zone => value != b'%' && value != b' ' && needs_escape(value, Part::Host),
            _ => false,
        };
        if is_forbidden {
            return Err(invalid());
        }
        unescaped.push(value);
        rest = &after[2..];
    }
    Ok(unescaped)
}

fn hex_value(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

pub(super) fn quoted(text: &[u8]) -> String {
    let mut quoted = Vec::new();
    quote(text, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}
