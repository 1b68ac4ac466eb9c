//! Quotes and unquotes strings as Go's `strconv` does: in constants, in `%q`, and in error texts.

use std::borrow::Cow;

use crate::rune::{self, decode, encode};

/// How to quote.
#[derive(Clone, Copy, Debug)]
pub struct Quoting {
    /// `"` for strings, `'` for characters.
    pub mark: char,
    /// True if everything beyond ASCII is escaped (`%+q`).
    pub ascii_only: bool,
}

/// Appends `strconv.Quote(text)`.
pub fn quote(text: &[u8], out: &mut Vec<u8>) {
    quote_as(
        text,
        Quoting {
            mark: '"',
            ascii_only: false,
        },
        out,
    );
}

/// Returns `strconv.Quote(text)`.
pub fn quoted(text: &str) -> String {
    quoted_bytes(text.as_bytes())
}

/// Returns `strconv.Quote(text)` of bytes that need not be UTF-8.
pub fn quoted_bytes(text: &[u8]) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quote(text, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// Returns the character in single quotes, as `%q` of a rune.
pub fn quoted_char(c: char) -> String {
    let quoting = Quoting {
        mark: '\'',
        ascii_only: false,
    };
    let mut quoted = Vec::new();
    quote_as(c.encode_utf8(&mut [0; 4]).as_bytes(), quoting, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// Appends `text` between quotation marks.
pub fn quote_as(mut text: &[u8], quoting: Quoting, out: &mut Vec<u8>) {
    encode(quoting.mark, out);
    while let (character, width @ 1..) = decode(text) {
        if width == 1 && character == rune::ERROR {
            escape_byte(text[0], out);
        } else {
            escape(character, quoting, out);
        }
        text = &text[width..];
    }
    encode(quoting.mark, out);
}

/// Appends a character as it stands between quotation marks (`appendEscapedRune`).
pub fn escape(character: char, quoting: Quoting, out: &mut Vec<u8>) {
    if character == quoting.mark || character == '\\' {
        out.push(b'\\');
        return encode(character, out);
    }
    if rune::is_printable(character) && (character.is_ascii() || !quoting.ascii_only) {
        return encode(character, out);
    }
    let escaped = match character {
        '\x07' => r"\a".to_owned(),
        '\x08' => r"\b".to_owned(),
        '\x0c' => r"\f".to_owned(),
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        '\x0b' => r"\v".to_owned(),
        '\0'..'\x20' | '\x7f' => format!(r"\x{:02x}", u32::from(character)),
        '\x20'..'\u{10000}' => format!(r"\u{:04x}", u32::from(character)),
        _ => format!(r"\U{:08x}", u32::from(character)),
    };
    out.extend_from_slice(escaped.as_bytes());
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(r"\x{byte:02x}").as_bytes());
}

/// `strconv.ErrSyntax`: the text is no quoted string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid syntax")]
pub struct InvalidSyntax;

/// Returns what a string or character in `"`, `` ` `` or `'` stands for (`strconv.Unquote`).
pub fn unquote(quoted: &[u8]) -> Result<Cow<'_, [u8]>, InvalidSyntax> {
    let [mark @ (b'"' | b'`' | b'\''), inner @ .., last] = quoted else {
        return Err(InvalidSyntax);
    };
    if last != mark {
        return Err(InvalidSyntax);
    }
    if *mark == b'`' {
        return unquote_raw(inner);
    }
    if *mark == b'"' && is_plain(inner) {
        return Ok(Cow::Borrowed(inner));
    }
    let unescaped = unescape(inner, *mark)?;
    if *mark == b'\'' && rune::decode_all(&unescaped).count() != 1 {
        return Err(InvalidSyntax);
    }
    Ok(Cow::Owned(unescaped))
}

/// Go drops carriage returns from raw strings, as its compiler does.
fn unquote_raw(inner: &[u8]) -> Result<Cow<'_, [u8]>, InvalidSyntax> {
    if inner.contains(&b'`') {
        return Err(InvalidSyntax);
    }
    if !inner.contains(&b'\r') {
        return Ok(Cow::Borrowed(inner));
    }
    Ok(Cow::Owned(
        inner.iter().copied().filter(|byte| *byte != b'\r').collect(),
    ))
}

fn is_plain(inner: &[u8]) -> bool {
    !inner.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'"')) && std::str::from_utf8(inner).is_ok()
}

fn unescape(mut inner: &[u8], mark: u8) -> Result<Vec<u8>, InvalidSyntax> {
    let mut out = Vec::with_capacity(inner.len());
    while let Some(&first) = inner.first() {
        if first == b'\n' {
            return Err(InvalidSyntax);
        }
        let unquoted = unquote_character(inner, mark)?;
        match unquoted.value {
            Unit::Byte(byte) => out.push(byte),
            Unit::Character(character) => encode(character, &mut out),
        }
        inner = unquoted.rest;
    }
    Ok(out)
}

/// The first character of the inside of a quoted string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unquoted<'s> {
    /// Its value.
    pub value: Unit,
    /// The rest of the text.
    pub rest: &'s [u8],
}

/// A piece of a string: `\xff` is a byte, `ÿ` and `\u00ff` are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One byte, perhaps no UTF-8.
    Byte(u8),
    /// One character.
    Character(char),
}

impl Unit {
    /// Returns the number that a character constant stands for.
    pub fn code(self) -> u32 {
        match self {
            Unit::Byte(byte) => u32::from(byte),
            Unit::Character(character) => u32::from(character),
        }
    }
}

/// Reads one character or escape sequence (`strconv.UnquoteChar`). The mark itself must be escaped; the other is not.
pub fn unquote_character(text: &[u8], mark: u8) -> Result<Unquoted<'_>, InvalidSyntax> {
    let byte = |value, rest| {
        Ok(Unquoted {
            value: Unit::Byte(value),
            rest,
        })
    };
    match text {
        [] => Err(InvalidSyntax),
        [first, ..] if *first == mark && matches!(mark, b'\'' | b'"') => Err(InvalidSyntax),
        [0x80..=0xff, ..] => {
            let (character, width) = decode(text);
            Ok(Unquoted {
                value: Unit::Character(character),
                rest: &text[width..],
            })
        }
        [b'\\', escaped, rest @ ..] => match escaped {
            b'a' => byte(0x07, rest),
            b'b' => byte(0x08, rest),
            b'f' => byte(0x0c, rest),
            b'n' => byte(b'\n', rest),
            b'r' => byte(b'\r', rest),
            b't' => byte(b'\t', rest),
            b'v' => byte(0x0b, rest),
            b'\\' => byte(b'\\', rest),
            b'\'' | b'"' if *escaped == mark => byte(mark, rest),
            b'x' => {
                let (code, rest) = digits(rest, 2, 16)?;
                byte(u8::try_from(code).map_err(|_| InvalidSyntax)?, rest)
            }
            b'0'..=b'7' => {
                let (code, rest) = digits(&text[1..], 3, 8)?;
                byte(u8::try_from(code).map_err(|_| InvalidSyntax)?, rest)
            }
            b'u' => character(digits(rest, 4, 16)?),
            b'U' => character(digits(rest, 8, 16)?),
            _ => Err(InvalidSyntax),
        },
        [b'\\'] => Err(InvalidSyntax),
        [first, rest @ ..] => byte(*first, rest),
    }
}

fn character((code, rest): (u32, &[u8])) -> Result<Unquoted<'_>, InvalidSyntax> {
    let value = Unit::Character(char::from_u32(code).ok_or(InvalidSyntax)?);
    Ok(Unquoted { value, rest })
}

fn digits(text: &[u8], count: usize, base: u32) -> Result<(u32, &[u8]), InvalidSyntax> {
    let (digits, rest) = text.split_at_checked(count).ok_or(InvalidSyntax)?;
    let mut code = 0;
    for digit in digits {
        code = code * base + char::from(*digit).to_digit(base).ok_or(InvalidSyntax)?;
    }
    Ok((code, rest))
}

/// `strconv.CanBackquote`: whether a string can stand between back quotes on one line.
pub fn can_backquote(mut text: &[u8]) -> bool {
    while let (character, width @ 1..) = rune::decode(text) {
        let is_fine = match character {
            '\u{feff}' | '`' | '\x7f' => false,
            '\t' => true,
            rune::ERROR => width > 1,
            character => character >= ' ',
        };
        if !is_fine {
            return false;
        }
        text = &text[width..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_strconv_does() {
        let check = |text: &[u8], expected: &str| {
            let mut out = Vec::new();
            quote(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check(b"", r#""""#);
        check(br#"a"b'c\d`"#, r#""a\"b'c\\d`""#);
        check(
            b"\x07\x08\x0c\n\r\t\x0b\x00\x1f\x7f",
            r#""\a\b\f\n\r\t\v\x00\x1f\x7f""#,
        );
        check("é€😀".as_bytes(), r#""é€😀""#);
        check(
            "\u{a0}\u{ad}\u{2028}\u{feff}\u{e000}\u{10ffff}".as_bytes(),
            r#""\u00a0\u00ad\u2028\ufeff\ue000\U0010ffff""#,
        );
        check(b"a\xff\xe2\x82", r#""a\xff\xe2\x82""#);
        check("\u{fffd}".as_bytes(), "\"\u{fffd}\"");
    }

    #[test]
    fn ascii_quoting_escapes_everything_else() {
        let mut out = Vec::new();
        quote_as(
            "aé'😀".as_bytes(),
            Quoting {
                mark: '\'',
                ascii_only: true,
            },
            &mut out,
        );
        assert_eq!(String::from_utf8(out).unwrap(), r"'a\u00e9\'\U0001f600'");
    }

    #[test]
    fn constants_are_unquoted_as_strconv_does() {
        let check = |quoted: &[u8], expected: Option<&[u8]>| {
            assert_eq!(
                unquote(quoted).ok().as_deref(),
                expected,
                "{}",
                String::from_utf8_lossy(quoted)
            );
        };
        check(br#""""#, Some(b""));
        check(br#""abc""#, Some(b"abc"));
        check(br#""\a\b\f\n\r\t\v\\\"'""#, Some(b"\x07\x08\x0c\n\r\t\x0b\\\"'"));
        check(
            br#""\x41\101\377\xff\u00e9\U0001F600""#,
            Some(b"AA\xff\xff\xc3\xa9\xf0\x9f\x98\x80"),
        );
        check(br#""\'""#, None);
        check(br#""\400""#, None);
        check(br#""\x4""#, None);
        check(br#""\ud800""#, None);
        check(br#""\UFFFFFFFF""#, None);
        check(br#""\q""#, None);
        check(br#""\""#, None);
        check(b"\"a\nb\"", None);
        check(b"\"a\xffb\"", Some("a\u{fffd}b".as_bytes())); // read as characters, so not kept
        check(br#""a"b""#, None);
        check(b"`a\\n\r\n\xff`", Some(b"a\\n\n\xff"));
        check(b"'a'", Some(b"a"));
        check(b"'\\''", Some(b"'"));
        check(b"'ab'", None);
        check(b"''", None);
        check(b"\"", None);
        check(b"abc", None);
    }

    #[test]
    fn text_is_escaped_as_go_escapes_it() {
        assert_eq!(quoted("a\"\\b'\u{1}\u{a0}é"), r#""a\"\\b'\x01\u00a0é""#);
        assert_eq!(quoted_bytes(b"%\xc3"), r#""%\xc3""#);
    }

    #[test]
    fn a_character_is_escaped_for_single_quotes() {
        let cases = [('a', "'a'"), ('\'', r"'\''"), ('"', "'\"'"), ('\u{1}', r"'\x01'")];
        for (c, expected) in cases {
            assert_eq!(quoted_char(c), expected);
        }
    }
}
