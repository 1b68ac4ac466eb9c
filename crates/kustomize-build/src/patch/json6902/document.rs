//! JSON as the patch library holds it: scalars are the text that they were written in, and compared as such.

use std::collections::BTreeMap;

use serde_json::Value;

use super::syntax;
use crate::error::{Error, Result};
use crate::generate::hash::to_go_json;

/// A value whose scalars are text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Scalar(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Takes over a value; its scalars are written as Go writes them.
    pub(super) fn from_value(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Array(elements) => Self::Array(elements.into_iter().map(Self::from_value).collect()),
            Value::Object(fields) => {
                let field = |(key, value)| (key, Self::from_value(value));
                Self::Object(fields.into_iter().map(field).collect())
            }
            scalar => Self::Scalar(to_go_json(&scalar)),
        }
    }

    /// Reads a text; its scalars stay as they are written.
    pub(super) fn parse(text: &str) -> Result<Self> {
        syntax::check(text).map_err(Error::patch)?;
        serde_json::from_str::<Value>(text).map_err(|error| Error::patch(error.to_string()))?;
        Ok(Reader { text, at: 0 }.value())
    }

    /// Gives the value back.
    pub(super) fn to_value(&self) -> Result<Value> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Scalar(text) => serde_json::from_str(text).map_err(|_| {
                Error::patch(format!(
                    "json: cannot unmarshal number {text} into Go value of type float64"
                ))
            })?,
            Self::Array(elements) => elements.iter().map(Self::to_value).collect::<Result<_>>()?,
            Self::Object(fields) => {
                let field = |(key, value): (&String, &Self)| Ok((key.clone(), value.to_value()?));
                Value::Object(fields.iter().map(field).collect::<Result<_>>()?)
            }
        })
    }

    /// Approximate memory of the value in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null => 0,
                Self::Scalar(text) => text.len(),
                Self::Array(elements) => elements.iter().map(Self::size).sum(),
                Self::Object(fields) => fields.iter().map(|(key, value)| key.len() + value.size()).sum(),
            }
    }

    /// Reads a string; None for anything else.
    pub(super) fn as_string(&self) -> Option<String> {
        match self {
            Self::Scalar(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }

    /// The error of Go's decoder for a value that is no such thing.
    pub(super) fn mistaken_for(&self, wanted: &str) -> Error {
        let kind = match self {
            Self::Null => "null",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
            Self::Scalar(text) if text.starts_with('"') => "string",
            Self::Scalar(text) if text.starts_with(['t', 'f']) => "bool",
            Self::Scalar(_) => "number",
        };
        Error::patch(format!(
            "json: cannot unmarshal {kind} into Go value of type {wanted}"
        ))
    }

    /// Finds the container that a path's last part is a key of.
    pub(super) fn container(&mut self, path: &str) -> Option<(&mut Self, String)> {
        let mut parts = path.split('/').skip(1).map(decoded);
        let mut key = parts.next()?;
        let mut at = self;
        for next in parts {
            at = match at {
                Self::Object(fields) => fields.get_mut(&key)?,
                Self::Array(elements) => {
                    let index = index(&key, elements.len(), elements.len()).ok()?;
                    &mut elements[index]
                }
                Self::Null | Self::Scalar(_) => return None,
            };
            key = next;
        }
        matches!(at, Self::Array(_) | Self::Object(_)).then_some((at, key))
    }

    /// Gets an element of a container; null where a field is not there.
    pub(super) fn get(&self, key: &str) -> Result<&Self> {
        match self {
            Self::Array(elements) => Ok(&elements[index(key, elements.len(), elements.len())?]),
            Self::Object(fields) => Ok(fields.get(key).unwrap_or(&Self::Null)),
            Self::Null | Self::Scalar(_) => Ok(&Self::Null),
        }
    }

    /// Sets a field, or an element that is there.
    pub(super) fn set(&mut self, key: String, value: Self) -> Result<()> {
        match self {
            Self::Array(elements) => {
                let index = index(&key, elements.len(), elements.len())?;
                elements[index] = value;
            }
            Self::Object(fields) => {
                fields.insert(key, value);
            }
            Self::Null | Self::Scalar(_) => {}
        }
        Ok(())
    }

    /// Sets a field, or puts an element before the one at the place.
    pub(super) fn add(&mut self, key: String, value: Self) -> Result<()> {
        match self {
            Self::Array(elements) if key == "-" => elements.push(value),
            Self::Array(elements) => {
                let places = elements.len() + 1;
                number(&key)
                    .map_err(|error| error.context(format!("value was not a proper array index: '{key}'")))?;
                elements.insert(index(&key, places, places)?, value);
            }
            _ => self.set(key, value)?,
        }
        Ok(())
    }

    /// Takes an element out of a container.
    pub(super) fn take(&mut self, key: &str) -> Result<Self> {
        match self {
            Self::Object(fields) => fields.remove(key).ok_or_else(|| {
                Error::patch(format!("Unable to remove nonexistent key: {key}: missing value"))
            }),
            Self::Array(elements) => {
                let index = index(key, elements.len(), elements.len())?;
                Ok(elements.remove(index))
            }
            Self::Null | Self::Scalar(_) => Ok(Self::Null),
        }
    }
}

fn decoded(part: &str) -> String {
    // One pass, as Go's replacer makes: `~01` is `~1`.
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (replaced, length) = match rest.as_bytes().get(at + 1) {
            Some(b'0') => ("~", 2),
            Some(b'1') => ("/", 2),
            _ => ("~", 1),
        };
        out.push_str(replaced);
        rest = &rest[at + length..];
    }
    out + rest
}

/// Reads a number as Go's `Atoi`.
fn number(key: &str) -> Result<i64> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    key.parse().map_err(|error: std::num::ParseIntError| {
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Error::patch(format!("strconv.Atoi: parsing {key:?}: {why}"))
    })
}

/// Reads an index below `bound`; negative ones count back from `from_end`.
fn index(key: &str, bound: usize, from_end: usize) -> Result<usize> {
    let number = number(key)?;
    let found = match usize::try_from(number) {
        Ok(index) => Some(index).filter(|index| *index < bound),
        Err(_) => usize::try_from(number.unsigned_abs())
            .ok()
            .and_then(|back| from_end.checked_sub(back)),
    };
    found.ok_or_else(|| {
        Error::patch(format!(
            "Unable to access invalid index: {number}: invalid index referenced"
        ))
    })
}

/// Reads a text that is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// Skips blanks, and returns what stands there.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(b']')
    }

    fn value(&mut self) -> Json {
        match self.peek() {
            b'[' => self.array(),
            b'{' => self.object(),
            _ => match self.scalar() {
                "null" => Json::Null,
                scalar => Json::Scalar(scalar.to_owned()),
            },
        }
    }

    fn array(&mut self) -> Json {
        self.at += 1;
        let mut elements = Vec::new();
        while self.peek() != b']' {
            elements.push(self.value());
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Json::Array(elements)
    }

    fn object(&mut self) -> Json {
        self.at += 1;
        let mut fields = BTreeMap::new();
        while self.peek() == b'"' {
            let key = serde_json::from_str(self.scalar()).unwrap_or_default();
            self.peek();
            self.at += 1;
            fields.insert(key, self.value());
            if self.peek() == b',' {
                self.at += 1;
                self.peek();
            }
        }
        self.at += 1;
        Json::Object(fields)
    }

    fn scalar(&mut self) -> &str {
        let start = self.at;
        let bytes = self.text.as_bytes();
        if bytes.get(start) == Some(&b'"') {
            self.at += 1;
            while bytes.get(self.at).is_some_and(|b| *b != b'"') {
                self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
            }
            self.at += 1;
        } else {
            let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}');
            let rest = &bytes[start..];
            self.at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
        }
        self.text.get(start..self.at).unwrap_or("null")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_keep_their_text() {
        let json = Json::parse(r#" [ {"a\u0062": 1.0 , "s":"x\"]y<" }, null, [ ] , {} , true]"#).unwrap();
        let object = [("ab", "1.0"), ("s", r#""x\"]y<""#)];
        let object = object.map(|(key, text)| (key.to_owned(), Json::Scalar(text.to_owned())));
        let expected = vec![
            Json::Object(object.into()),
            Json::Null,
            Json::Array(Vec::new()),
            Json::Object(BTreeMap::new()),
            Json::Scalar("true".to_owned()),
        ];
        assert_eq!(json, Json::Array(expected));
    }
}
