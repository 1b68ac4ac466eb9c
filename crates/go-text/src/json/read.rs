//! Reads one value from text, in one pass and without recursion.
//!
//! The errors are those of Go's scanner, which names the character and what it looked for.

use std::borrow::Cow;

use super::Json;
use crate::quote;

/// Go's bound on nesting is 10,000; ours keeps the recursion of everything that walks a value small.
const MAX_DEPTH: usize = 2_000;

/// Reads the first value of the text and returns how many bytes it took, as a `json.Decoder` does.
pub fn decode_first(text: &[u8]) -> Result<(Json<'_>, usize), String> {
    Reader::new(text).value().map_err(|problem| match problem {
        Problem::End if text.iter().all(|c| is_space(*c)) => "EOF".to_owned(),
        Problem::End => "unexpected EOF".to_owned(),
        Problem::Found(message) => message,
    })
}

/// Reads the only value of the text, as santhosh-tekuri's `jsonschema.UnmarshalJSON` does.
pub fn decode_only(text: &[u8]) -> Result<Json<'_>, String> {
    let (json, end) = decode_first(text)?;
    if text[end..].iter().all(|c| is_space(*c)) {
        Ok(json)
    } else {
        Err("invalid character after top-level value".to_owned())
    }
}

/// Reads the only value of the text, as `json.Unmarshal` does.
pub fn unmarshal(text: &[u8]) -> Result<Json<'_>, String> {
    let (json, end) = Reader::new(text).value().map_err(|problem| match problem {
        Problem::End => "unexpected end of JSON input".to_owned(),
        Problem::Found(message) => message,
    })?;
    match text[end..].iter().find(|c| !is_space(**c)) {
        None => Ok(json),
        Some(c) => Err(unexpected(*c, "after top-level value")),
    }
}

enum Problem {
    End,
    Found(String),
}

/// An array or object that is not closed yet.
enum Open<'a> {
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>, Cow<'a, str>),
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn value(mut self) -> Result<(Json<'a>, usize), Problem> {
        let mut open: Vec<Open<'a>> = Vec::new();
        loop {
            let Some(mut done) = self.begin(&mut open)? else {
                continue;
            };
            loop {
                let Some(container) = open.pop() else {
                    return Ok((done, self.at));
                };
                match self.end_of_element(container, done)? {
                    Closed::Yes(json) => done = json,
                    Closed::No(container) => {
                        open.push(container);
                        break;
                    }
                }
            }
        }
    }

    /// Reads a value's beginning: a scalar or an empty container is the value, else one more container is open.
    fn begin(&mut self, open: &mut Vec<Open<'a>>) -> Result<Option<Json<'a>>, Problem> {
        let c = self.next_solid()?;
        let json = match c {
            b'{' | b'[' if open.len() >= MAX_DEPTH => {
                return Err(Problem::Found("exceeded max depth".to_owned()));
            }
            b'{' => {
                if self.next_solid()? == b'}' {
                    return Ok(Some(Json::Object(Vec::new())));
                }
                self.at -= 1;
                let key = self.key()?;
                open.push(Open::Object(Vec::new(), key));
                return Ok(None);
            }
            b'[' => {
                if self.next_solid()? == b']' {
                    return Ok(Some(Json::Array(Vec::new())));
                }
                self.at -= 1;
                open.push(Open::Array(Vec::new()));
                return Ok(None);
            }
            b'"' => Json::Text(self.string()?),
            b'-' | b'0'..=b'9' => Json::Number(self.number(c)?.into()),
            b't' => self.literal("true", Json::Bool(true))?,
            b'f' => self.literal("false", Json::Bool(false))?,
            b'n' => self.literal("null", Json::Null)?,
            _ => return Err(found(c, "looking for beginning of value")),
        };
        Ok(Some(json))
    }

    fn end_of_element(&mut self, container: Open<'a>, done: Json<'a>) -> Result<Closed<'a>, Problem> {
        let c = self.next_solid()?;
        match container {
            Open::Array(mut items) => {
                items.push(done);
                match c {
                    b',' => Ok(Closed::No(Open::Array(items))),
                    b']' => Ok(Closed::Yes(Json::Array(items))),
                    _ => Err(found(c, "after array element")),
                }
            }
            Open::Object(mut fields, key) => {
                fields.push((key, done));
                match c {
                    b',' => Ok(Closed::No(Open::Object(fields, self.key()?))),
                    b'}' => Ok(Closed::Yes(Json::Object(sorted(fields)))),
                    _ => Err(found(c, "after object key:value pair")),
                }
            }
        }
    }

    fn key(&mut self) -> Result<Cow<'a, str>, Problem> {
        match self.next_solid()? {
            b'"' => {}
            c => return Err(found(c, "looking for beginning of object key string")),
        }
        let key = self.string()?;
        match self.next_solid()? {
            b':' => Ok(key),
            c => Err(found(c, "after object key")),
        }
    }

    /// Reads a string, whose first quote is read already.
    fn string(&mut self) -> Result<Cow<'a, str>, Problem> {
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                c @ 0..0x20 => return Err(found(c, "in string literal")),
                _ => {}
            }
        }
        let raw = &self.text[start..self.at - 1];
        Ok(if escaped {
            Cow::Owned(unescape(raw))
        } else {
            lossy(raw)
        })
    }

    fn escape(&mut self) -> Result<(), Problem> {
        match self.next()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let c = self.next()?;
                    if !c.is_ascii_hexdigit() {
                        return Err(found(c, "in \\u hexadecimal character escape"));
                    }
                }
                Ok(())
            }
            c => Err(found(c, "in string escape code")),
        }
    }

    fn number(&mut self, first: u8) -> Result<&'a str, Problem> {
        let start = self.at - 1;
        let digit = if first == b'-' { self.next()? } else { first };
        match digit {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            c => return Err(found(c, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.required_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.required_digits("in exponent of numeric literal")?;
        }
        Ok(str::from_utf8(&self.text[start..self.at]).expect("digits and signs are ASCII"))
    }

    fn required_digits(&mut self, place: &str) -> Result<(), Problem> {
        match self.next()? {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            c => Err(found(c, place)),
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str, json: Json<'a>) -> Result<Json<'a>, Problem> {
        for expected in word.bytes().skip(1) {
            let c = self.next()?;
            if c != expected {
                let place = format!(
                    "in literal {word} (expecting {})",
                    quote::quoted_char(char::from(expected))
                );
                return Err(found(c, &place));
            }
        }
        Ok(json)
    }

    fn next_solid(&mut self) -> Result<u8, Problem> {
        loop {
            let c = self.next()?;
            if !is_space(c) {
                return Ok(c);
            }
        }
    }

    fn next(&mut self) -> Result<u8, Problem> {
        let c = self.peek().ok_or(Problem::End)?;
        self.at += 1;
        Ok(c)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

enum Closed<'a> {
    Yes(Json<'a>),
    No(Open<'a>),
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\r' | b'\n')
}

/// Sorts by key; of equal keys the last one stays.
fn sorted<'a>(mut fields: Vec<(Cow<'a, str>, Json<'a>)>) -> Vec<(Cow<'a, str>, Json<'a>)> {
    if fields.is_sorted_by(|(a, _), (b, _)| a < b) {
        return fields;
    }
    fields.reverse();
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.dedup_by(|(later, _), (kept, _)| later == kept);
    fields
}

fn found(c: u8, place: &str) -> Problem {
    Problem::Found(unexpected(c, place))
}

/// Go shows the byte as if it were a character of Latin-1.
fn unexpected(c: u8, place: &str) -> String {
    format!("invalid character {} {place}", quote::quoted_char(char::from(c)))
}

/// Text as Go makes it of bytes: every byte that is not part of UTF-8 is a replacement character of its own.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    push_lossy(&mut text, bytes);
    Cow::Owned(text)
}

fn push_lossy(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('\u{fffd}', chunk.invalid().len()));
    }
}

/// Resolves escapes that the reader has checked.
fn unescape(mut raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len());
    while let Some(place) = raw.iter().position(|c| *c == b'\\') {
        push_lossy(&mut text, &raw[..place]);
        raw = &raw[place + 1..];
        let (c, taken) = match raw[0] {
            b'b' => ('\x08', 1),
            b'f' => ('\x0c', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            b'u' => unescape_unit(raw),
            c => (char::from(c), 1),
        };
        text.push(c);
        raw = &raw[taken..];
    }
    push_lossy(&mut text, raw);
    text
}

/// Reads `uXXXX`, or a pair of surrogates `uXXXX\uXXXX`; a lone surrogate is a replacement character.
fn unescape_unit(raw: &[u8]) -> (char, usize) {
    let high = hex(&raw[1..5]);
    if let Some(c) = char::from_u32(high) {
        return (c, 5);
    }
    if high < 0xdc00 && raw.len() >= 11 && raw[5] == b'\\' && raw[6] == b'u' {
        let low = hex(&raw[7..11]);
        if (0xdc00..0xe000).contains(&low) {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            return (char::from_u32(code).unwrap_or('\u{fffd}'), 11);
        }
    }
    ('\u{fffd}', 5)
}

fn hex(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| {
        number * 16 + char::from(*digit).to_digit(16).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_text_of_numbers() {
        let cases = [
            ("null", Json::Null),
            (" true ", Json::Bool(true)),
            ("-0.10e+2", Json::Number("-0.10e+2".into())),
            (
                r#"[1,"a",[],{}]"#,
                Json::Array(vec![
                    Json::Number("1".into()),
                    Json::Text("a".into()),
                    Json::Array(vec![]),
                    Json::Object(vec![]),
                ]),
            ),
            (
                r#"{"b":1,"a":{"c":[]},"b":2}"#,
                Json::Object(vec![
                    ("a".into(), Json::Object(vec![("c".into(), Json::Array(vec![]))])),
                    ("b".into(), Json::Number("2".into())),
                ]),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(unmarshal(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn strings_are_unescaped_and_made_utf8() {
        let cases: [(&[u8], &str); 5] = [
            (br#""\"\\\/\b\f\n\r\t""#, "\"\\/\x08\x0c\n\r\t"),
            (br#""\u00e9\ud83d\ude00""#, "é😀"),
            (br#""\ud83d\u0041\udc00x""#, "\u{fffd}A\u{fffd}x"),
            (b"\"a\xffb\xe4\xb8\"", "a\u{fffd}b\u{fffd}\u{fffd}"),
            (b"\"\xff\\n\"", "\u{fffd}\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(unmarshal(text), Ok(Json::Text(expected.into())), "{text:?}");
        }
    }

    #[test]
    fn problems_are_worded_as_go_words_them() {
        let cases: [(&[u8], &str); 22] = [
            (b"", "unexpected end of JSON input"),
            (b"{\"a\"", "unexpected end of JSON input"),
            (b"-", "unexpected end of JSON input"),
            (b"x", "invalid character 'x' looking for beginning of value"),
            (b"'", r"invalid character '\'' looking for beginning of value"),
            (
                b"\xc3\xa9",
                "invalid character 'Ã' looking for beginning of value",
            ),
            (b"[,", "invalid character ',' looking for beginning of value"),
            (b"[1,]", "invalid character ']' looking for beginning of value"),
            (
                b"{a",
                "invalid character 'a' looking for beginning of object key string",
            ),
            (
                b"{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            (b"{\"a\" 1", "invalid character '1' after object key"),
            (b"{\"a\":1 2", "invalid character '2' after object key:value pair"),
            (b"[1 2", "invalid character '2' after array element"),
            (b"\"\n", r"invalid character '\n' in string literal"),
            (b"\"\\x", "invalid character 'x' in string escape code"),
            (
                b"\"\\u12g",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            (b"-x", "invalid character 'x' in numeric literal"),
            (
                b"1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (b"1e+x", "invalid character 'x' in exponent of numeric literal"),
            (b"trUe", "invalid character 'U' in literal true (expecting 'u')"),
            (b"01", "invalid character '1' after top-level value"),
            (b"{} \"", "invalid character '\"' after top-level value"),
        ];
        for (text, expected) in cases {
            assert_eq!(unmarshal(text), Err(expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_decoder_stops_behind_the_first_value() {
        let cases: [(&[u8], usize); 5] = [
            (b" 12abc", 3),
            (b"{} x", 2),
            (b"\"a\"b", 3),
            (b"[1],", 3),
            (b"true", 4),
        ];
        for (text, end) in cases {
            assert_eq!(decode_first(text).map(|(_, end)| end), Ok(end), "{text:?}");
        }
    }

    #[test]
    fn a_decoder_words_the_end_of_the_text_otherwise() {
        let cases: [(&[u8], &str); 4] = [
            (b" \n", "EOF"),
            (b"{", "unexpected EOF"),
            (b"{} x", "invalid character after top-level value"),
            (b"1 2", "invalid character after top-level value"),
        ];
        for (text, expected) in cases {
            assert_eq!(decode_only(text), Err(expected.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let text = "[".repeat(1_000_000);
        assert_eq!(unmarshal(text.as_bytes()), Err("exceeded max depth".to_owned()));
    }
}
