//! The text of a label selector to its requirements, as apimachinery's parser reads it.

use std::collections::BTreeSet;

use super::requirement::{Operator, Requirement};
use super::validate;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Symbol,
    Word,
    End,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    fn is(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    fn starts_requirement(&self) -> bool {
        self.kind == Kind::Word || self.is("!")
    }

    fn ends_requirement(&self) -> bool {
        self.kind == Kind::End || self.is(",")
    }
}

/// Parses a selector.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let tokens = tokens(text);
    Parser { tokens, at: 0 }.requirements()
}

/// Splits into symbols and words; a NUL ends a word, and the text where it stands between words.
fn tokens(text: &str) -> Vec<Token<'_>> {
    const SYMBOLS: &[u8] = b"=!(),<>";
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += text.as_bytes()[at..].iter().take_while(|b| is_blank(b)).count();
        let rest = &text[at..];
        let (kind, length) = match rest.as_bytes().first() {
            None | Some(0) => break,
            Some(_) if rest.starts_with("==") || rest.starts_with("!=") => (Kind::Symbol, 2),
            Some(first) if SYMBOLS.contains(first) => (Kind::Symbol, 1),
            Some(_) => {
                let ends = |b: u8| b == 0 || SYMBOLS.contains(&b) || is_blank(&b);
                let length = rest.bytes().position(ends).unwrap_or(rest.len());
                (Kind::Word, length)
            }
        };
        tokens.push(Token {
            kind,
            text: &rest[..length],
        });
        at += length;
        if kind == Kind::Word && text.as_bytes().get(at) == Some(&0) {
            at += 1;
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        let end = Token {
            kind: Kind::End,
            text: "",
        };
        self.tokens.get(self.at).copied().unwrap_or(end)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let token = self.peek();
            if token.kind == Kind::End {
                return Ok(requirements);
            }
            if !token.starts_requirement() {
                let found = token.text;
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
            let requirement = self
                .requirement()
                .map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            let behind = self.next();
            if behind.kind == Kind::End {
                return Ok(requirements);
            }
            if !behind.is(",") {
                let found = behind.text;
                return Err(format!("found '{found}', expected: ',' or 'end of string'"));
            }
            let next = self.peek();
            if !next.starts_requirement() {
                return Err(format!("found '{}', expected: identifier after ','", next.text));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut key = self.next();
        let negated = key.is("!");
        if negated {
            key = self.next();
        }
        if key.kind != Kind::Word {
            return Err(format!("found '{}', expected: identifier", key.text));
        }
        validate::key(key.text)?;
        let (operator, values) = if negated {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if self.peek().ends_requirement() {
            (Operator::Exists, BTreeSet::new())
        } else {
            self.comparison()?
        };
        if matches!(operator, Operator::GreaterThan | Operator::LessThan)
            && values.iter().any(|value| value.parse::<i64>().is_err())
        {
            return Err("for 'Gt', 'Lt' operators, the value must be an integer".to_owned());
        }
        for value in &values {
            validate::value(key.text, value)?;
        }
        Ok(Requirement {
            key: key.text.to_owned(),
            operator,
            values: values.into_iter().map(str::to_owned).collect(),
        })
    }

    fn comparison(&mut self) -> Result<(Operator, BTreeSet<&'a str>), String> {
        let operator = match self.next().text {
            "=" | "==" => Operator::In,
            "!=" => Operator::NotIn,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            "in" => return Ok((Operator::In, self.values()?)),
            "notin" => return Ok((Operator::NotIn, self.values()?)),
            found => {
                return Err(format!(
                    "found '{found}', expected: '=', '!=', '==', 'in', notin'"
                ));
            }
        };
        if self.peek().ends_requirement() {
            return Ok((operator, BTreeSet::from([""])));
        }
        let value = self.next();
        if value.kind == Kind::Word {
            Ok((operator, BTreeSet::from([value.text])))
        } else {
            Err(format!("found '{}', expected: identifier", value.text))
        }
    }

    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let open = self.next();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let first = self.peek();
        if first.is(")") {
            self.next();
            return Ok(BTreeSet::from([""]));
        }
        if first.kind != Kind::Word && !first.is(",") {
            let found = first.text;
            return Err(format!("found '{found}', expected: ',', ')' or identifier"));
        }
        self.values_until_close()
    }

    fn values_until_close(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut values = BTreeSet::new();
        loop {
            let token = self.next();
            if token.kind == Kind::Word {
                values.insert(token.text);
                let behind = self.peek();
                if behind.is(")") {
                    self.next();
                    return Ok(values);
                }
                if !behind.is(",") {
                    return Err(format!("found '{}', expected: ',' or ')'", behind.text));
                }
            } else if token.is(",") {
                if values.is_empty() {
                    values.insert("");
                }
                let behind = self.peek();
                if behind.is(")") {
                    values.insert("");
                    self.next();
                    return Ok(values);
                }
                if behind.is(",") {
                    self.next();
                    values.insert("");
                }
            } else {
                let found = token.text;
                return Err(format!("found '{found}', expected: ',', or identifier"));
            }
        }
    }
}
