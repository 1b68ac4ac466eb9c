//! Syntax errors of a JSON text, in the words of Go's encoding/json.

/// How deep Go reads; a text that nests deeper than what serde_json reads is refused by that.
const MAX_DEPTH: usize = 10_000;

/// Refuses what is no JSON.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut scanner = Scanner {
        rest: text,
        open: Vec::new(),
    };
    scanner.document()
}

struct Scanner<'a> {
    rest: &'a str,
    /// The brackets that are open.
    open: Vec<char>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), String> {
        self.value()?;
        while let Some(bracket) = self.open.last().copied() {
            let (close, what) = match bracket {
                '[' => (']', "after array element"),
                _ => ('}', "after object key:value pair"),
            };
            match self.next(what)? {
                ',' if bracket == '[' => self.value()?,
                ',' => {
                    self.key("looking for beginning of object key string")?;
                    self.value()?;
                }
                c if c == close => {
                    self.open.pop();
                }
                c => return Err(invalid(c, what)),
            }
        }
        self.skip_blanks();
        match self.rest.chars().next() {
            None => Ok(()),
            Some(c) => Err(invalid(c, "after top-level value")),
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn take(&mut self) -> Result<char, String> {
        let c = self.rest.chars().next().ok_or("unexpected end of JSON input")?;
        self.rest = &self.rest[c.len_utf8()..];
        Ok(c)
    }

    /// Takes the next character that is no blank.
    fn next(&mut self, _expecting: &str) -> Result<char, String> {
        self.skip_blanks();
        self.take()
    }

    /// Reads a scalar, or the start of a collection with all first elements in it.
    fn value(&mut self) -> Result<(), String> {
        const BEGINNING: &str = "looking for beginning of value";
        loop {
            match self.next(BEGINNING)? {
                '[' => {
                    self.push('[')?;
                    self.skip_blanks();
                    if self.rest.starts_with(']') {
                        self.open.pop();
                        return self.take().map(drop);
                    }
                }
                '{' => {
                    self.push('{')?;
                    self.skip_blanks();
                    if self.rest.starts_with('}') {
                        self.open.pop();
                        return self.take().map(drop);
                    }
                    self.key("looking for beginning of object key string")?;
                }
                '"' => return self.string(),
                't' => return self.literal("true"),
                'f' => return self.literal("false"),
                'n' => return self.literal("null"),
                c @ ('-' | '0'..='9') => return self.number(c),
                c => return Err(invalid(c, BEGINNING)),
            }
        }
    }

    fn push(&mut self, bracket: char) -> Result<(), String> {
        self.open.push(bracket);
        if self.open.len() > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }

    fn key(&mut self, what: &str) -> Result<(), String> {
        match self.next(what)? {
            '"' => self.string()?,
            c => return Err(invalid(c, what)),
        }
        match self.next("after object key")? {
            ':' => Ok(()),
            c => Err(invalid(c, "after object key")),
        }
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.take()? {
                '"' => return Ok(()),
                '\\' => match self.take()? {
                    'b' | 'f' | 'n' | 'r' | 't' | '\\' | '/' | '"' => {}
                    'u' => {
                        for _ in 0..4 {
                            let c = self.take()?;
                            if !c.is_ascii_hexdigit() {
                                return Err(invalid(c, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    c => return Err(invalid(c, "in string escape code")),
                },
                c if c < ' ' => return Err(invalid(c, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.chars().skip(1) {
            let c = self.take()?;
            if c != expected {
                return Err(invalid(c, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: char) -> Result<(), String> {
        let first = if first == '-' {
            self.digit("in numeric literal")?
        } else {
            first
        };
        if first != '0' {
            self.skip_digits();
        }
        if self.rest.starts_with('.') {
            self.take()?;
            self.digit("after decimal point in numeric literal")?;
            self.skip_digits();
        }
        if self.rest.starts_with(['e', 'E']) {
            self.take()?;
            if self.rest.starts_with(['+', '-']) {
                self.take()?;
            }
            self.digit("in exponent of numeric literal")?;
            self.skip_digits();
        }
        Ok(())
    }

    fn digit(&mut self, what: &str) -> Result<char, String> {
        let c = self.take()?;
        if c.is_ascii_digit() {
            Ok(c)
        } else {
            Err(invalid(c, what))
        }
    }

    fn skip_digits(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }
}

fn invalid(c: char, what: &str) -> String {
    let shown = match c {
        '\'' => r"'\''".to_owned(),
        '"' => r#"'"'"#.to_owned(),
        '\n' => r"'\n'".to_owned(),
        '\t' => r"'\t'".to_owned(),
        '\r' => r"'\r'".to_owned(),
        // Go looks at bytes.
        c if !c.is_ascii() => {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer);
            format!("'{}'", char::from(buffer[0]))
        }
        c if c.is_ascii_control() => format!("'\\x{:02x}'", u32::from(c)),
        c => format!("'{c}'"),
    };
    format!("invalid character {shown} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_refused_in_gos_words() {
        for (text, problem) in [
            ("[1, {\"a\": [true, null, -1.5e+3, \"x\\u0041\"]}, [], {}] ", None),
            ("[", Some("unexpected end of JSON input")),
            ("[1] x", Some("invalid character 'x' after top-level value")),
            ("[1 2]", Some("invalid character '2' after array element")),
            (
                "[,]",
                Some("invalid character ',' looking for beginning of value"),
            ),
            (
                "[1,]",
                Some("invalid character ']' looking for beginning of value"),
            ),
            (
                "[{a: 1}]",
                Some("invalid character 'a' looking for beginning of object key string"),
            ),
            ("[{\"a\" 1}]", Some("invalid character '1' after object key")),
            (
                "[{\"a\": 1 2}]",
                Some("invalid character '2' after object key:value pair"),
            ),
            (
                "[tru]",
                Some("invalid character ']' in literal true (expecting 'e')"),
            ),
            ("[01]", Some("invalid character '1' after array element")),
            (
                "[1.]",
                Some("invalid character ']' after decimal point in numeric literal"),
            ),
            ("[\"\\x\"]", Some("invalid character 'x' in string escape code")),
            ("[\"a\nb\"]", Some("invalid character '\\n' in string literal")),
        ] {
            assert_eq!(check(text).err().as_deref(), problem, "{text}");
        }
    }
}
