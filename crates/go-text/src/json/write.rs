//! Writes JSON as Go's `encoding/json` does: which characters are escaped, how floats look, keys in order.

use std::io::{self, Write};

use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::Formatter;

use crate::number::format_json;

/// Appends a string with its quotation marks. With `html`, as by default in Go, what means something to HTML is escaped too.
pub fn push_string(text: &[u8], html: bool, out: &mut String) {
    out.push('"');
    for chunk in text.utf8_chunks() {
        push_text(chunk.valid(), html, out);
        // Go writes one replacement for each byte that begins no character.
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
}

fn push_text(text: &str, html: bool, out: &mut String) {
    let mut start = 0;
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        if !IS_SPECIAL[usize::from(byte)] {
            continue;
        }
        let Some((escape, length)) = escape(&text.as_bytes()[at..], html) else {
            continue;
        };
        out.push_str(&text[start..at]);
        out.push_str(escape);
        start = at + length;
    }
    out.push_str(&text[start..]);
}

/// Returns what stands for the first character, and how many bytes that has; None where it stands for itself.
fn escape(text: &[u8], html: bool) -> Option<(&'static str, usize)> {
    let escape = match text[0] {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        0x08 => "\\b",
        0x0c => "\\f",
        b'<' | b'>' | b'&' if !html => return None,
        b'<' => "\\u003c",
        b'>' => "\\u003e",
        b'&' => "\\u0026",
        // The separators that JavaScript would take for ends of lines.
        0xe2 => match text.get(1..3) {
            Some([0x80, 0xa8]) => return Some(("\\u2028", 3)),
            Some([0x80, 0xa9]) => return Some(("\\u2029", 3)),
            _ => return None,
        },
        control => CONTROLS[usize::from(control)],
    };
    Some((escape, 1))
}

/// Writes a value as `json.Marshal` would.
///
/// # Errors
///
/// When the writer fails, or a map has keys that are no strings.
pub fn write(to: impl Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(to, GoFormatter))
}

/// Returns a value as `json.Marshal` would write it; nothing if its maps have keys that are no strings.
pub fn to_vec(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = write(&mut bytes, value);
    debug_assert!(written.is_ok(), "a map has keys that are no strings");
    bytes
}

/// Returns the same as a text.
pub fn to_string(value: &(impl Serialize + ?Sized)) -> String {
    String::from_utf8(to_vec(value)).unwrap_or_default()
}

/// A value as Go's `any` holds it: every number is a float, keys are sorted.
pub struct Any<'a>(pub &'a Value);

impl Serialize for Any<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_f64() {
                Some(float) => serializer.serialize_f64(float),
                None => number.serialize(serializer),
            },
            Value::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(&Any(item))?;
                }
                sequence.end()
            }
            Value::Object(fields) => AnyMap(fields).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

/// A map of such values.
pub struct AnyMap<'a>(pub &'a serde_json::Map<String, Value>);

impl Serialize for AnyMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A crate that turns on serde_json's preserve_order must not change a digest.
        let mut fields: Vec<_> = self.0.iter().collect();
        fields.sort_unstable_by_key(|(key, _)| *key);
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (key, value) in fields {
            map.serialize_entry(key, &Any(value))?;
        }
        map.end()
    }
}

/// Makes serde_json write as Go does.
pub struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, float: f64) -> io::Result<()> {
        writer.write_all(format_json(float).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        let mut start = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if !IS_SPECIAL[usize::from(byte)] {
                continue;
            }
            if let Some((escape, length)) = escape(&bytes[at..], true) {
                writer.write_all(&bytes[start..at])?;
                writer.write_all(escape.as_bytes())?;
                start = at + length;
            }
        }
        writer.write_all(&bytes[start..])
    }
}

/// The bytes that may need an escape.
const IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    table[0xe2] = true;
    table
};

const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b", "\\t",
    "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013",
    "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c",
    "\\u001d", "\\u001e", "\\u001f",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_looks_as_go_writes_it() {
        let value = json!({
            "b": [1, -0.0, 1.5, 1e21, 1e20, 123_456_789_012_345_678_u64, 1e-6, 1.25e-7, 5e-324, true, null],
            "a": "<a href=\"x\">&\u{2028}\u{2029}\u{7f}\u{1}\u{8}\u{c}\n\t\\é</a>",
            "B": {},
        });
        // json.Marshal of the same, decoded into an any, in Go 1.26.
        let expected = concat!(
            r#"{"B":{},"a":"\u003ca href=\"x\"\u003e\u0026\u2028\u2029"#,
            "\u{7f}",
            r#"\u0001\b\f\n\t\\é\u003c/a\u003e","b":[1,-0,1.5,1e+21,100000000000000000000,123456789012345680,"#,
            r#"0.000001,1.25e-7,5e-324,true,null]}"#,
        );
        assert_eq!(to_string(&Any(&value)), expected);
    }
}
