//! Text in quotes as Go's `%q` writes it, for errors that show what was read.

use std::fmt::Write;

/// The text in double quotes, with what Go's strconv.Quote escapes.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c, '"');
    }
    quoted.push('"');
    quoted
}

/// The character in single quotes, as `%q` of a rune.
pub(crate) fn quote_char(c: char) -> String {
    let mut quoted = String::from('\'');
    push_escaped(&mut quoted, c, '\'');
    quoted.push('\'');
    quoted
}

fn push_escaped(quoted: &mut String, c: char, mark: char) {
    match c {
        '\\' => quoted.push_str("\\\\"),
        _ if c == mark => quoted.extend(['\\', c]),
        ' '..='~' => quoted.push(c),
        '\x07' => quoted.push_str("\\a"),
        '\x08' => quoted.push_str("\\b"),
        '\x0c' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\x0b' => quoted.push_str("\\v"),
        _ if is_printable(c) => quoted.push(c),
        _ => {
            let code = u32::from(c);
            let written = match code {
                0..0x80 => write!(quoted, "\\x{code:02x}"),
                0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                _ => write!(quoted, "\\U{code:08x}"),
            };
            written.expect("writing to a String never fails");
        }
    }
}

/// Whether Go's unicode.IsPrint holds: letters, marks, numbers, punctuation, symbols and the plain space.
///
/// The standard library knows the same set, but tells it only through escaping; behind another character it does
/// not escape combining marks, which are printable too.
pub(crate) fn is_printable(c: char) -> bool {
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    let text = str::from_utf8(&buffer[..=length]).expect("two characters are UTF-8");
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_as_go_escapes_it() {
        let cases = [
            ("", r#""""#),
            ("a\"\\b'", r#""a\"\\b'""#),
            (
                "\0\x07\x08\t\n\x0b\x0c\r\x1b\x7f",
                r#""\x00\a\b\t\n\v\f\r\x1b\x7f""#,
            ),
            ("é世e\u{301}🙂", "\"é世e\u{301}🙂\""),
            (
                "\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}",
                r#""\u00a0\u00ad\u200b\u2028\ufeff""#,
            ),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn a_character_is_escaped_for_single_quotes() {
        let cases = [('a', "'a'"), ('\'', r"'\''"), ('"', "'\"'"), ('\u{1}', r"'\x01'")];
        for (c, expected) in cases {
            assert_eq!(quote_char(c), expected);
        }
    }
}
