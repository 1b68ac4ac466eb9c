//! From bytes to the text that is scanned: encodings, byte order marks, characters that YAML does not allow.
//!
//! go-yaml decodes its input in pieces, when the scanner needs more. What is wrong with a character is therefore said
//! only if nothing in the pieces before was wrong; [`Input`] keeps the text before that piece, and the problem.

use std::borrow::Cow;

use super::error::Problem;

/// How many bytes go-yaml decodes at a time (`input_raw_buffer_size`).
const PIECE: usize = 512;

const INCOMPLETE: &str = "incomplete UTF-8 octet sequence";

/// A text to read, and what is wrong with its bytes behind that text.
///
/// ```
/// use manifest::yaml::{Dialect, Input, Nodes, compose_first};
///
/// let mut nodes = Nodes::default();
/// let utf16 = b"\xff\xfea\0:\0 \01\0";
/// let root = compose_first(Input::from(&utf16[..]), &mut nodes, Dialect::Sigs).unwrap();
/// assert!(nodes.field(root.unwrap(), "a").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Input<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) failure: Option<Problem>,
}

impl<'a> From<&'a str> for Input<'a> {
    fn from(text: &'a str) -> Self {
        match first_refused(text) {
            None => Self::whole(Cow::Borrowed(without_mark(text))),
            Some(at) => Self::broken(text.as_bytes(), at, "control characters are not allowed"),
        }
    }
}

impl<'a> From<&'a String> for Input<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl<'a> From<&'a [u8]> for Input<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        match bytes {
            [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
            _ => utf8(bytes),
        }
    }
}

impl<'a> Input<'a> {
    fn whole(text: Cow<'a, str>) -> Self {
        Self { text, failure: None }
    }

    /// Keeps the pieces before the one that holds the byte at `at`; what stands before that byte is valid UTF-8.
    fn broken(bytes: &'a [u8], at: usize, what: &str) -> Self {
        // The end of a piece may cut a character, so that is no problem before the text ends.
        let mut piece = if what == INCOMPLETE { at } else { 0 };
        loop {
            let next = character_start(bytes, piece + PIECE);
            if next > at || next == bytes.len() {
                break;
            }
            piece = next;
        }
        let text = std::str::from_utf8(&bytes[..piece]).unwrap_or_default();
        Self {
            text: Cow::Borrowed(without_mark(text)),
            failure: Some(Problem::in_node(0, what)),
        }
    }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn character_start(bytes: &[u8], mut at: usize) -> usize {
    at = at.min(bytes.len());
    while at > 0 && bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}

/// Finds the first character that go-yaml's reader refuses.
fn first_refused(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|byte| SUSPECT[*byte as usize]) {
        let at = from + found;
        let refused = match bytes[at] {
            0xc2 => !matches!(bytes.get(at + 1), Some(0x85 | 0xa0..)),
            0xef => matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf])),
            _ => true,
        };
        if refused {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// Control characters, and the bytes that start one beyond ASCII.
const SUSPECT: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte as u8, b'\t' | b'\n' | b'\r');
        byte += 1;
    }
    table[0x7f] = true;
    table[0xc2] = true;
    table[0xef] = true;
    table
};

fn utf8(bytes: &[u8]) -> Input<'_> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Input::from(text),
        Err(error) => error,
    };
    let at = error.valid_up_to();
    let valid = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
    match first_refused(valid) {
        Some(control) => Input::broken(bytes, control, "control characters are not allowed"),
        None => Input::broken(bytes, at, problem_of_sequence(&bytes[at..])),
    }
}

/// Says what is wrong with a sequence that is no UTF-8, in go-yaml's order of checks.
fn problem_of_sequence(bytes: &[u8]) -> &'static str {
    let (width, lead) = match bytes[0] {
        byte if byte & 0xe0 == 0xc0 => (2, u32::from(byte & 0x1f)),
        byte if byte & 0xf0 == 0xe0 => (3, u32::from(byte & 0x0f)),
        byte if byte & 0xf8 == 0xf0 => (4, u32::from(byte & 0x07)),
        _ => return "invalid leading UTF-8 octet",
    };
    if bytes.len() < width {
        return INCOMPLETE;
    }
    if bytes[1..width].iter().any(|byte| byte & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let value = bytes[1..width]
        .iter()
        .fold(lead, |value, byte| value << 6 | u32::from(byte & 0x3f));
    let shortest = [0, 0, 0x80, 0x800, 0x1_0000];
    if value < shortest[width] {
        "invalid length of a UTF-8 sequence"
    } else {
        "invalid Unicode character"
    }
}

/// Decodes UTF-16 behind its byte order mark.
fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Input<'static> {
    let mut text = String::with_capacity(bytes.len() / 2);
    // Where the piece starts that is being decoded, in the decoded text; the byte order mark is part of the first.
    let (mut piece, mut piece_end) = (0, PIECE - 2);
    let mut at = 0;
    while at < bytes.len() {
        if at >= piece_end {
            (piece, piece_end) = (text.len(), piece_end + PIECE);
        }
        match character(&bytes[at..], unit) {
            Ok(character) => {
                at += character.len_utf16() * 2;
                text.push(character);
            }
            Err(what) => {
                text.truncate(piece);
                return Input {
                    text: Cow::Owned(text),
                    failure: Some(Problem::in_node(0, what)),
                };
            }
        }
    }
    Input::whole(Cow::Owned(text))
}

fn character(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<char, &'static str> {
    let unit_at = |at: usize| Some(unit([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let first = unit_at(0).ok_or("incomplete UTF-16 character")?;
    let value = match first {
        0xdc00..=0xdfff => return Err("unexpected low surrogate area"),
        0xd800..=0xdbff => match unit_at(2).ok_or("incomplete UTF-16 surrogate pair")? {
            second @ 0xdc00..=0xdfff => {
                0x1_0000 + (u32::from(first & 0x3ff) << 10) + u32::from(second & 0x3ff)
            }
            _ => return Err("expected low surrogate area"),
        },
        unit => u32::from(unit),
    };
    let character = char::from_u32(value).ok_or("invalid Unicode character")?;
    let mut buffer = [0; 4];
    match first_refused(character.encode_utf8(&mut buffer)) {
        Some(_) => Err("control characters are not allowed"),
        None => Ok(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(bytes: &[u8]) -> Option<String> {
        Input::from(bytes).failure.map(|problem| problem.to_string())
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_in_go_yamls_words() {
        for (bytes, message) in [
            (&b"a\x01"[..], "yaml: control characters are not allowed"),
            (b"a\xc2\x80", "yaml: control characters are not allowed"),
            (b"a\xef\xbf\xbe", "yaml: control characters are not allowed"),
            (b"\x80", "yaml: invalid leading UTF-8 octet"),
            (b"\xe2\x82", "yaml: incomplete UTF-8 octet sequence"),
            (b"\xe2\x28\xa1", "yaml: invalid trailing UTF-8 octet"),
            (b"\xc0\x80", "yaml: invalid length of a UTF-8 sequence"),
            (b"\xed\xa0\x80", "yaml: invalid Unicode character"),
            (b"\xff\xfe\x00\xdc", "yaml: unexpected low surrogate area"),
            (b"\xff\xfea", "yaml: incomplete UTF-16 character"),
        ] {
            assert_eq!(failure(bytes).as_deref(), Some(message), "{bytes:?}");
        }
        assert_eq!(failure("a\u{85}\u{a0}\u{feff}😀\t\r\n".as_bytes()), None);
    }

    #[test]
    fn text_before_the_piece_with_the_problem_is_kept() {
        let text = format!("{}\u{1}", "é".repeat(400));
        let input = Input::from(text.as_str());
        assert_eq!(input.text.len(), 512);
        assert!(input.failure.is_some());
    }

    #[test]
    fn byte_order_marks_choose_the_encoding() {
        for bytes in [&b"\xef\xbb\xbfa"[..], b"\xff\xfea\0", b"\xfe\xff\0a"] {
            assert_eq!(Input::from(bytes).text, "a");
        }
    }
}
