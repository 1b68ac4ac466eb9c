//! Text in quotes as Go's `%q` writes it, for errors that show what was read.

use go_template::quote::{Quoting, quote as go_quote, quote_as};

/// The text in double quotes, with what Go's strconv.Quote escapes.
pub(crate) fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// The same for bytes that need not be UTF-8.
pub(crate) fn quote_bytes(text: &[u8]) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    go_quote(text, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

/// The character in single quotes, as `%q` of a rune.
pub(crate) fn quote_char(c: char) -> String {
    let quoting = Quoting {
        mark: '\'',
        ascii_only: false,
    };
    let mut quoted = Vec::new();
    quote_as(c.encode_utf8(&mut [0; 4]).as_bytes(), quoting, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_as_go_escapes_it() {
        assert_eq!(quote("a\"\\b'\u{1}\u{a0}é"), r#""a\"\\b'\x01\u00a0é""#);
        assert_eq!(quote_bytes(b"%\xc3"), r#""%\xc3""#);
    }

    #[test]
    fn a_character_is_escaped_for_single_quotes() {
        let cases = [('a', "'a'"), ('\'', r"'\''"), ('"', "'\"'"), ('\u{1}', r"'\x01'")];
        for (c, expected) in cases {
            assert_eq!(quote_char(c), expected);
        }
    }
}
