//! JSON as Go writes it, byte for byte: signatures are made over it, and receivers may compare it.
//!
//! It differs from serde_json's in characters that mean something to HTML and JavaScript, which are escaped.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

/// Writes a value.
pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Go);
    value
        .serialize(&mut serializer)
        .expect("values with names for keys can be written to memory");
    bytes
}

struct Go;

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, found)) = first_escaped(rest) {
            writer.write_all(&rest.as_bytes()[..at])?;
            write!(writer, "\\u{:04x}", u32::from(found))?;
            rest = &rest[at + found.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

/// The first character that Go escapes, and where it is.
fn first_escaped(text: &str) -> Option<(usize, char)> {
    let may_be = |byte: &u8| matches!(byte, b'<' | b'>' | b'&' | 0xE2);
    let mut from = 0;
    loop {
        let at = from + text.as_bytes()[from..].iter().position(may_be)?;
        match text[at..].chars().next()? {
            found @ ('<' | '>' | '&' | '\u{2028}' | '\u{2029}') => return Some((at, found)),
            other => from = at + other.len_utf8(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_means_something_to_html_is_escaped_as_in_go() {
        let written = super::to_vec("<a href=\"x\">&amp;\u{2028}–é\n\u{1}</a>");
        assert_eq!(
            String::from_utf8(written).unwrap(),
            r#""\u003ca href=\"x\"\u003e\u0026amp;\u2028–é\n\u0001\u003c/a\u003e""#
        );
    }
}
