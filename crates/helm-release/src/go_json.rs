//! JSON as Go's `encoding/json` writes it: which characters are escaped, how floats look, keys in order.
//!
//! For what digests are made of. A record itself may be any JSON, and is written the same way all the same.

use std::io::{self, Write};

use manifest::yaml::number::format_json;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

/// Writes a value as `json.Marshal` would.
pub(crate) fn write(to: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(to, Go))
}

/// The same as a text.
pub(crate) fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let written = write(&mut bytes, value);
    debug_assert!(written.is_ok(), "nothing of ours cannot be written");
    String::from_utf8(bytes).unwrap_or_default()
}

/// A value as Go's `any` holds it: every number is a float, keys are sorted.
pub(crate) struct Any<'a>(pub(crate) &'a Value);

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
pub(crate) struct AnyMap<'a>(pub(crate) &'a serde_json::Map<String, Value>);

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

struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, float: f64) -> io::Result<()> {
        writer.write_all(format_json(float).as_bytes())
    }

    /// Go escapes what could end a script in a web page, and JavaScript's two line ends.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            CompactFormatter.write_string_fragment(writer, before)?;
            let mut characters = from.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

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
        let mut text = Vec::new();
        write(&mut text, &Any(&value)).unwrap();
        // json.Marshal of the same, decoded into an any, in Go 1.26.
        let expected = concat!(
            r#"{"B":{},"a":"\u003ca href=\"x\"\u003e\u0026\u2028\u2029"#,
            "\u{7f}",
            r#"\u0001\b\f\n\t\\é\u003c/a\u003e","b":[1,-0,1.5,1e+21,100000000000000000000,123456789012345680,"#,
            r#"0.000001,1.25e-7,5e-324,true,null]}"#,
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
