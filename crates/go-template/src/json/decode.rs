//! JSON to values, as `json.Unmarshal` reads it into an `interface {}` or a map.
//!
//! Numbers become `float64`; of equal keys the last one counts; what is no UTF-8 becomes replacement characters. The
//! nesting is kept on the heap, so that Go's 10,000 levels need no stack.

use std::collections::BTreeMap;

use crate::{Error, List, Map, Str, Type, Value};

/// Go's `maxNestingDepth`.
const MAX_DEPTH: usize = 10_000;

/// Result of decoding: Go stores what it can even where it reports an error.
#[derive(Debug)]
pub struct Decoded {
    /// Stored value; None where the target stays as it was (bad syntax, or a value of another type).
    pub value: Option<Value>,
    /// The first error.
    pub error: Option<Error>,
}

/// Reads a text into an `interface {}`.
pub fn decode(text: impl AsRef<[u8]>) -> Result<Value, Error> {
    let decoded = decode_as(text, Type::ANY);
    match decoded.error {
        Some(error) => Err(error),
        None => Ok(decoded.value.unwrap_or(Value::Nil)),
    }
}

/// Reads a text into a variable of the type `interface {}`, `map[string]interface {}` or `[]interface {}`.
pub fn decode_as(text: impl AsRef<[u8]>, type_: Type) -> Decoded {
    let mut decoder = Decoder {
        text: text.as_ref(),
        at: 0,
        stack: Vec::new(),
        error: None,
    };
    let value = match decoder.document() {
        Ok(value) => value,
        Err(error) => {
            return Decoded {
                value: None,
                error: Some(error),
            };
        }
    };
    // Only a number that is too large is nil and an error at once.
    let is_null = matches!(value, Value::Nil) && decoder.error.is_none();
    let value = match value {
        Value::Nil if is_null && type_ == Type::MAP_ANY => Value::Map(Map::nil(type_)),
        Value::Nil if is_null && type_ == Type::LIST_ANY => Value::List(List::nil(type_)),
        value if type_ == Type::ANY || value.type_() == Some(type_) => value,
        value => {
            let found = match value {
                Value::Map(_) => "object",
                Value::List(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            let message = format!("json: cannot unmarshal {found} into Go value of type {type_}");
            return Decoded {
                value: None,
                error: Some(Error::new(message)),
            };
        }
    };
    Decoded {
        value: Some(value),
        error: decoder.error,
    }
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
    stack: Vec<Open>,
    /// The first error that does not end the reading.
    error: Option<Error>,
}

/// A list or map that is not closed yet.
enum Open {
    List(Vec<Value>),
    /// The entries, and the key whose value is being read.
    Map(BTreeMap<Str, Value>, Str),
}

impl Decoder<'_> {
    fn document(&mut self) -> Result<Value, Error> {
        loop {
            // A value begins; lists and maps only open here.
            let Some(mut value) = self.begin()? else { continue };
            // It ends, and so may all that it is in.
            loop {
                match self.end(value)? {
                    Next::Begin => break,
                    Next::Closed(outer) => value = outer,
                    Next::Done(value) => return Ok(value),
                }
            }
        }
    }

    /// Reads a literal or an empty list or map, or opens one and gives None: the first value in it is next.
    fn begin(&mut self) -> Result<Option<Value>, Error> {
        self.skip_space();
        let value = match self.peek()? {
            b'{' => {
                self.open("{")?;
                if self.peek()? != b'}' {
                    let key = self.object_key()?;
                    self.stack.push(Open::Map(BTreeMap::new(), key));
                    return Ok(None);
                }
                self.at += 1;
                Value::Map(Map::new())
            }
            b'[' => {
                self.open("[")?;
                if self.peek()? != b']' {
                    self.stack.push(Open::List(Vec::new()));
                    return Ok(None);
                }
                self.at += 1;
                Value::List(List::from(Vec::new()))
            }
            b'"' => Value::String(self.string()?),
            b't' => self.literal("true", Value::Bool(true))?,
            b'f' => self.literal("false", Value::Bool(false))?,
            b'n' => self.literal("null", Value::Nil)?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Some(value))
    }

    /// Puts a value where it belongs, and reads what follows it.
    fn end(&mut self, value: Value) -> Result<Next, Error> {
        self.skip_space();
        let Some(open) = self.stack.last_mut() else {
            if self.at < self.text.len() {
                return Err(self.unexpected("after top-level value"));
            }
            return Ok(Next::Done(value));
        };
        match open {
            Open::List(items) => {
                items.push(value);
                match self.peek()? {
                    b',' => self.at += 1,
                    b']' => return Ok(self.close()),
                    _ => return Err(self.unexpected("after array element")),
                }
            }
            Open::Map(entries, key) => {
                entries.insert(std::mem::take(key), value);
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        self.skip_space();
                        let next = self.object_key()?;
                        if let Some(Open::Map(_, key)) = self.stack.last_mut() {
                            *key = next;
                        }
                    }
                    b'}' => return Ok(self.close()),
                    _ => return Err(self.unexpected("after object key:value pair")),
                }
            }
        }
        Ok(Next::Begin)
    }

    fn open(&mut self, bracket: &str) -> Result<(), Error> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(Error::new(format!(
                "invalid character '{bracket}' exceeded max depth"
            )));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn close(&mut self) -> Next {
        self.at += 1;
        Next::Closed(match self.stack.pop() {
            Some(Open::List(items)) => Value::List(List::from(items)),
            Some(Open::Map(entries, _)) => Value::Map(Map::with_entries(Type::MAP_ANY, entries)),
            None => Value::Nil,
        })
    }

    fn object_key(&mut self) -> Result<Str, Error> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek()? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(key)
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        for expected in word.bytes() {
            if self.here() != expected {
                let expecting = char::from(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expecting}')")));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        if self.text[self.at] == b'-' {
            self.at += 1;
            if !self.here().is_ascii_digit() {
                return Err(self.unexpected("in numeric literal"));
            }
        }
        if self.text[self.at] == b'0' {
            self.at += 1;
        } else {
            self.skip_digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.here().is_ascii_digit() {
                return Err(self.unexpected("after decimal point in numeric literal"));
            }
            self.skip_digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.here(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.here().is_ascii_digit() {
                return Err(self.unexpected("in exponent of numeric literal"));
            }
            self.skip_digits();
        }
        Ok(self.float(start))
    }

    /// Converts the number that ends here. One that is too large becomes nil, and an error for later.
    fn float(&mut self, start: usize) -> Value {
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => {
                self.error.get_or_insert_with(|| {
                    Error::new(format!(
                        "json: cannot unmarshal number {digits} into Go value of type float64"
                    ))
                });
                Value::Nil
            }
        }
    }

    fn skip_digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// Reads a string, from its opening quote on.
    fn string(&mut self) -> Result<Str, Error> {
        self.at += 1;
        let start = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    let plain = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(valid(plain));
                }
                b'\\' => break,
                0..0x20 => return Err(self.unexpected("in string literal")),
                _ => self.at += 1,
            }
        }
        self.escaped_string(start)
    }

    /// Reads on in a string that has escapes, the first of them here.
    fn escaped_string(&mut self, start: usize) -> Result<Str, Error> {
        let mut bytes = self.text[start..self.at].to_vec();
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(valid(&bytes));
                }
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut bytes)?;
                }
                0..0x20 => return Err(self.unexpected("in string literal")),
                byte => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let byte = match self.here() {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            byte @ (b'\\' | b'/' | b'"') => byte,
            b'u' => {
                let character = self.unicode_escape()?;
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        bytes.push(byte);
        Ok(())
    }

    /// Reads `uXXXX`, or two that make a pair; half a pair is a replacement character.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        self.at += 1;
        let first = self.four_digits()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let after_first = self.at;
        if self.text[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.four_digits()?;
            if (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after_first;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.here()).to_digit(16) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Error> {
        self.text
            .get(self.at)
            .copied()
            .ok_or_else(|| Error::new("unexpected end of JSON input"))
    }

    /// Returns the byte here. Within a literal Go finds out by a space that the text is over, and complains of that.
    fn here(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b' ')
    }

    /// Words that the byte here is wrong.
    fn unexpected(&self, place: &str) -> Error {
        let byte = self.here();
        let character = match byte {
            b'\'' => "\\'".to_owned(),
            b'"' => "\"".to_owned(),
            b'\\' => "\\\\".to_owned(),
            0x07 => "\\a".to_owned(),
            0x08 => "\\b".to_owned(),
            0x0c => "\\f".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            0x0b => "\\v".to_owned(),
            // Go takes the byte for a code point, of which these cannot be printed.
            0..0x20 | 0x7f => format!("\\x{byte:02x}"),
            0x80..0xa1 | 0xad => format!("\\u{byte:04x}"),
            byte => char::from(byte).to_string(),
        };
        Error::new(format!("invalid character '{character}' {place}"))
    }
}

enum Next {
    Begin,
    Closed(Value),
    Done(Value),
}

/// Makes a string; each byte that begins no character becomes a replacement character.
fn valid(bytes: &[u8]) -> Str {
    if std::str::from_utf8(bytes).is_ok() {
        return Str::from(bytes);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Str::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Style, encode};

    /// Compares with the JSON of what was read, or with the error.
    fn check(text: impl AsRef<[u8]>, expected: &str) {
        let found = match decode(&text) {
            Ok(value) => encode(&value, Style::RAW).expect("what was read can be written"),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(text.as_ref()));
    }

    #[test]
    fn values_are_read() {
        check(
            " {\"b\" : [1, 2.50, -3e2,true,false,null] ,\"a\":{},\"b\":[]}\n",
            r#"{"a":{},"b":[]}"#,
        );
        check(
            "[1, 2.50, -3e2,true,false,null, [ ] ]",
            "[1,2.5,-300,true,false,null,[]]",
        );
        check(r#""\u00e9\ud83d\ude00\ud83dx\n\/""#, "\"é😀\u{fffd}x\\n/\"");
        check(b"\"a\xe2\x82\"", "\"a\u{fffd}\u{fffd}\"");
    }

    #[test]
    fn errors_are_in_the_words_of_go() {
        check("", "unexpected end of JSON input");
        check("{", "unexpected end of JSON input");
        check("[1,", "unexpected end of JSON input");
        check("\"tru", "unexpected end of JSON input");
        check("tru", "invalid character ' ' in literal true (expecting 'e')");
        check("\"\\", "invalid character ' ' in string escape code");
        check("trux", "invalid character 'x' in literal true (expecting 'e')");
        check("a: b", "invalid character 'a' looking for beginning of value");
        check(
            "{a}",
            "invalid character 'a' looking for beginning of object key string",
        );
        check("{\"a\" 1}", "invalid character '1' after object key");
        check("{\"a\":1 2}", "invalid character '2' after object key:value pair");
        check("[1 2]", "invalid character '2' after array element");
        check("[1,]", "invalid character ']' looking for beginning of value");
        check("1 2", "invalid character '2' after top-level value");
        check("01", "invalid character '1' after top-level value");
        check("-x", "invalid character 'x' in numeric literal");
        check(
            "1.x",
            "invalid character 'x' after decimal point in numeric literal",
        );
        check("1ex", "invalid character 'x' in exponent of numeric literal");
        check("\"\\x\"", "invalid character 'x' in string escape code");
        check(
            "\"\\u12g4\"",
            "invalid character 'g' in \\u hexadecimal character escape",
        );
        check("\"\n\"", "invalid character '\\n' in string literal");
        check("'a'", "invalid character '\\'' looking for beginning of value");
        check("é", "invalid character 'Ã' looking for beginning of value");
        check(
            "1e999",
            "json: cannot unmarshal number 1e999 into Go value of type float64",
        );
        check("[".repeat(10_001), "invalid character '[' exceeded max depth");
        check("[".repeat(10_000), "unexpected end of JSON input");
    }

    #[test]
    fn what_can_be_read_is_stored_beside_an_error() {
        let decoded = decode_as("{\"a\":1e999,\"b\":1}", Type::MAP_ANY);
        let map = decoded.value.expect("the rest is stored");
        assert_eq!(
            encode(&map, Style::RAW).expect("it is plain"),
            r#"{"a":null,"b":1}"#
        );
        assert!(decoded.error.is_some());
    }

    #[test]
    fn a_target_of_another_type_is_refused() {
        for (text, type_, expected) in [
            (
                "[]",
                Type::MAP_ANY,
                "json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                "1e999",
                Type::MAP_ANY,
                "json: cannot unmarshal number into Go value of type map[string]interface {}",
            ),
            (
                "{}",
                Type::LIST_ANY,
                "json: cannot unmarshal object into Go value of type []interface {}",
            ),
            (
                "true",
                Type::LIST_ANY,
                "json: cannot unmarshal bool into Go value of type []interface {}",
            ),
        ] {
            let decoded = decode_as(text, type_);
            assert!(decoded.value.is_none());
            assert_eq!(
                decoded.error.map(|error| error.to_string()).as_deref(),
                Some(expected)
            );
        }
        assert!(
            decode_as("null", Type::MAP_ANY)
                .value
                .is_some_and(|value| value.is_nil())
        );
    }
}
