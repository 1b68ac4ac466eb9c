//! Text in quotes as Go's time package writes it into its errors.

use std::fmt::Write;

/// The text in double quotes, with every byte beyond printable ASCII as `\x…`; only DEL is let through, as in Go.
pub(crate) fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => write!(quoted, "\\x{byte:02x}").expect("writing to a String never fails"),
        }
    }
    quoted.push('"');
    quoted
}
