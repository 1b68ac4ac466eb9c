//! From the text to its parts: plain text and functions with arguments.
//!
//! A function takes what follows its name greedily and looks ahead one character, so what a character means depends on
//! where it stands: `}` ends an argument, except the pattern of a replacement; `$$` is `$` in plain text and in a
//! replacement, and stays `$$` elsewhere.

use std::borrow::Cow;

use super::error::{Error, MAXIMUM_DEPTH};
use super::identifier::is_identifier;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Part<'t> {
    /// Stays as it is.
    Text(Cow<'t, str>),
    /// Becomes the value of a variable, changed by a function.
    Function(Function<'t>),
}

/// `${name operator arguments}`.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub(super) name: &'t str,
    /// Empty for the value alone.
    pub(super) operator: &'t str,
    pub(super) arguments: Vec<Part<'t>>,
}

/// Parses a whole template.
pub(super) fn parse(text: &str) -> Result<Vec<Part<'_>>, Error> {
    // The library takes U+0000 for the end of the text.
    let (text, is_cut) = text
        .split_once('\0')
        .map_or((text, false), |(head, _)| (head, true));
    let mut parser = Parser {
        rest: text,
        is_cut,
        depth: 0,
    };
    let mut parts = Vec::new();
    while !parser.rest.is_empty() {
        parts.push(parser.argument(|_| true, "$")?);
    }
    Ok(parts)
}

/// The rest of a text, from the first part on that cannot be parsed.
pub(super) fn malformed(text: &str) -> Option<&str> {
    let text = text.split('\0').next().unwrap_or_default();
    let mut parser = Parser {
        rest: text,
        is_cut: false,
        depth: 0,
    };
    while !parser.rest.is_empty() {
        let part = parser.rest;
        if parser.argument(|_| true, "$").is_err() {
            return Some(part);
        }
    }
    None
}

struct Parser<'t> {
    rest: &'t str,
    /// True if U+0000 follows the rest.
    is_cut: bool,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn function(&mut self) -> Result<Function<'t>, Error> {
        if self.depth == MAXIMUM_DEPTH {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        let function = self.function_at_this_depth();
        self.depth -= 1;
        function
    }

    fn function_at_this_depth(&mut self) -> Result<Function<'t>, Error> {
        if self.peek() == Some('#') {
            return self.length();
        }
        let name = self.run(|c, _| is_identifier(c)).ok_or(Error::VariableName)?;
        match self.peek() {
            Some(':') => self.default_or_substring(name),
            Some('=') => self.default(name),
            Some(',' | '^') => self.casing(name),
            Some('/') => self.replacement(name),
            Some('#') => self.removal(name, '#'),
            Some('%') => self.removal(name, '%'),
            Some('}') => {
                self.closing()?;
                Ok(Function::new(name, "", Vec::new()))
            }
            _ => Err(Error::MissingClosingBrace),
        }
    }

    /// `${#name}`.
    fn length(&mut self) -> Result<Function<'t>, Error> {
        let operator = self.run(|c, end| c == '#' && end == 1);
        let name = self.run(|c, _| is_identifier(c));
        self.closing()?;
        Ok(Function::new(
            name.ok_or(Error::BadSubstitution)?,
            operator.ok_or(Error::BadSubstitution)?,
            Vec::new(),
        ))
    }

    fn default_or_substring(&mut self, name: &'t str) -> Result<Function<'t>, Error> {
        match self.rest.chars().nth(1) {
            Some('=' | '-' | '?' | '+') => self.default(name),
            Some(next) if next.is_ascii() => self.substring(name),
            None if self.is_cut => self.substring(name),
            // The library steps back by the width of the character after the colon, and then misses the colon.
            _ => Err(Error::BadSubstitution),
        }
    }

    /// `${name=word}`, `${name:=word}`, and the same with `-`, `?` and `+` after the colon.
    fn default(&mut self, name: &'t str) -> Result<Function<'t>, Error> {
        let length = if self.peek() == Some('=') { 1 } else { 2 };
        let operator = self.run(|_, end| end <= length).ok_or(Error::BadSubstitution)?;
        let mut arguments = Vec::new();
        while self.peek() != Some('}') {
            arguments.push(self.argument(is_not_closing, "")?);
        }
        self.closing()?;
        Ok(Function::new(name, operator, arguments))
    }

    /// `${name:offset}` and `${name:offset:length}`.
    fn substring(&mut self, name: &'t str) -> Result<Function<'t>, Error> {
        let operator = self
            .run(|c, end| c == ':' && end == 1)
            .ok_or(Error::BadSubstitution)?;
        let mut arguments = vec![self.argument(|c| c != ':' && c != '}', "")?];
        if self.peek() != Some('}') {
            // However many colons follow each other, they are one.
            self.run(|c, _| c == ':').ok_or(Error::BadSubstitution)?;
            arguments.push(self.argument(is_not_closing, "")?);
        }
        self.closing()?;
        Ok(Function::new(name, operator, arguments))
    }

    /// `${name^}`, `${name^^}`, `${name,}` and `${name,,}`.
    fn casing(&mut self, name: &'t str) -> Result<Function<'t>, Error> {
        let operator = self.run(|c, end| matches!(c, ',' | '^') && end < 3);
        self.closing()?;
        Ok(Function::new(
            name,
            operator.ok_or(Error::BadSubstitution)?,
            Vec::new(),
        ))
    }

    /// `${name#pattern}`, `${name##pattern}`, and the same with `%`.
    fn removal(&mut self, name: &'t str, sign: char) -> Result<Function<'t>, Error> {
        let operator = self
            .run(|c, end| c == sign && end < 3)
            .ok_or(Error::BadSubstitution)?;
        let arguments = vec![self.argument(is_not_closing, "")?];
        self.closing()?;
        Ok(Function::new(name, operator, arguments))
    }

    /// `${name/pattern/word}`, and the same with `//`, `/#` and `/%`.
    fn replacement(&mut self, name: &'t str) -> Result<Function<'t>, Error> {
        let operator = self
            .run(|c, end| (end == 1 && c == '/') || (end == 2 && matches!(c, '/' | '#' | '%')))
            .ok_or(Error::BadSubstitution)?;
        let mut arguments = vec![self.argument(|c| c != '/', "$\\")?];
        self.run(|c, _| c == '/').ok_or(Error::BadSubstitution)?;
        if self.peek() != Some('}') {
            arguments.push(self.argument(is_not_closing, "$\\")?);
        }
        self.closing()?;
        Ok(Function::new(name, operator, arguments))
    }

    /// One argument: a text up to the next `${`, or a function.
    fn argument(&mut self, accepts: fn(char) -> bool, escapes: &str) -> Result<Part<'t>, Error> {
        if self.opening() {
            return Ok(Part::Function(self.function()?));
        }
        let text = self.text(accepts, escapes).ok_or(Error::Argument)?;
        Ok(Part::Text(text))
    }

    /// Takes text up to a `${` or a character that is not accepted; none when that is the first one. Of an escaped
    /// character only the sign before it is dropped.
    fn text(&mut self, accepts: fn(char) -> bool, escapes: &str) -> Option<Cow<'t, str>> {
        let (mut unescaped, mut start, mut at) = (String::new(), 0, 0);
        while let Some(next) = self.rest[at..].chars().next() {
            let rest = &self.rest[at..];
            if is_escape(rest, escapes) {
                unescaped.push_str(&self.rest[start..at]);
                (start, at) = (at + 1, at + 2);
            } else if rest.starts_with("${") || !accepts(next) {
                break;
            } else {
                at += next.len_utf8();
            }
        }
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        match (at, start) {
            (0, _) => None,
            (_, 0) => Some(Cow::Borrowed(taken)),
            _ => Some(Cow::Owned(unescaped + &taken[start..])),
        }
    }

    /// Takes characters as long as they are accepted, each with the number of bytes up to its end.
    fn run(&mut self, accepts: impl Fn(char, usize) -> bool) -> Option<&'t str> {
        let mut characters = self.rest.char_indices();
        let refused = characters.find(|&(at, c)| !accepts(c, at + c.len_utf8()));
        let at = refused.map_or(self.rest.len(), |(at, _)| at);
        let (taken, rest) = self.rest.split_at(at);
        self.rest = rest;
        (!taken.is_empty()).then_some(taken)
    }

    fn opening(&mut self) -> bool {
        self.skip("${")
    }

    fn closing(&mut self) -> Result<(), Error> {
        if self.skip("}") {
            Ok(())
        } else {
            Err(Error::BadSubstitution)
        }
    }

    fn skip(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
}

impl<'t> Function<'t> {
    fn new(name: &'t str, operator: &'t str, arguments: Vec<Part<'t>>) -> Self {
        Self {
            name,
            operator,
            arguments,
        }
    }
}

fn is_not_closing(c: char) -> bool {
    c != '}'
}

/// Returns whether the text starts with `$$`, `\/` or `\\`, as far as `escapes` has the first character.
fn is_escape(text: &str, escapes: &str) -> bool {
    let has =
        |sign: char, escaped: &[&str]| escapes.contains(sign) && escaped.iter().any(|e| text.starts_with(e));
    has('$', &["$$"]) || has('\\', &["\\/", "\\\\"])
}
