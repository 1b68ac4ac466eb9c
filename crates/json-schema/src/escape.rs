//! Percent encoding as Go's net/url does it, on bytes: what is decoded need not be UTF-8.

use go_text::quote::{quoted, quoted_bytes};

/// The part of a URL that is encoded; each leaves other characters as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    PathSegment,
    Host,
    Zone,
    User,
}

/// Encodes what the part does not hold as it is.
pub(super) fn escape(text: &[u8], part: Part) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text {
        if is_plain(*byte, part) {
            escaped.push(char::from(*byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Decodes, or says in Go's words which escape or character is wrong.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            decoded.push(unescape_one(rest, part)?);
            rest = &rest[3..];
            continue;
        }
        if matches!(part, Part::Host | Part::Zone) && first.is_ascii() && !is_plain(*first, part) {
            let shown = quoted(&char::from(*first).to_string());
            return Err(format!("invalid character {shown} in host name"));
        }
        decoded.push(*first);
        rest = tail;
    }
    Ok(decoded)
}

fn unescape_one(rest: &[u8], part: Part) -> Result<u8, String> {
    let shown = &rest[..rest.len().min(3)];
    let wrong = || format!("invalid URL escape {}", quoted_bytes(shown));
    let byte = match shown {
        [_, high, low] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
        _ => None,
    };
    let byte = byte.ok_or_else(wrong)?;
    let allowed = match part {
        _ if shown == b"%25" => true,
        Part::Host => byte >= 0x80,
        Part::Zone => byte == b' ' || is_plain(byte, Part::Host),
        _ => true,
    };
    if allowed { Ok(byte) } else { Err(wrong()) }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Returns whether the byte stands unescaped in the part.
pub(super) fn is_plain(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
        b'$' | b'&' | b'+' | b'=' => true,
        b':' => part != Part::User,
        b'@' => matches!(part, Part::Path | Part::PathSegment),
        b',' | b';' => part != Part::PathSegment,
        b'/' => part == Part::Path,
        b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'<' | b'>' | b'"' => {
            matches!(part, Part::Host | Part::Zone)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_plain_characters() {
        let text = b"a /?:@!$;,<\xe9";
        let cases = [
            (Part::Path, "a%20/%3F:@%21$;,%3C%E9"),
            (Part::PathSegment, "a%20%2F%3F:@%21$%3B%2C%3C%E9"),
            (Part::Host, "a%20%2F%3F:%40!$;,<%E9"),
            (Part::User, "a%20%2F%3F%3A%40%21$;,%3C%E9"),
        ];
        for (part, expected) in cases {
            assert_eq!(escape(text, part), expected);
        }
    }

    #[test]
    fn wrong_escapes_are_shown() {
        let cases = [
            ("%zz", Part::Path, "invalid URL escape \"%zz\""),
            ("a%4", Part::Path, "invalid URL escape \"%4\""),
            ("%41", Part::Host, "invalid URL escape \"%41\""),
            ("a b", Part::Host, "invalid character \" \" in host name"),
        ];
        for (text, part, expected) in cases {
            assert_eq!(unescape(text.as_bytes(), part), Err(expected.to_owned()));
        }
    }
}
