//! From a pattern's text to a tree.

use go_text::rune::decode;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Text(Vec<u8>),
    /// `*`: anything without separators.
    Any,
    /// `**`: anything.
    Super,
    /// `?`: one character that is no separator.
    Single,
    /// Nothing at all: what is left of an alternative.
    Nothing,
    List {
        characters: Vec<char>,
        not: bool,
    },
    Range {
        low: char,
        high: char,
        not: bool,
    },
    /// `{…,…}`.
    AnyOf(Vec<Node>),
    /// One after the other.
    Pattern(Vec<Node>),
}

/// Simplifying a pattern takes the cube of its parts, and alternatives within each other take the stack.
const MAX_PARTS: usize = 500;
const MAX_NESTED: usize = 50;

/// Parses; `None` for what the Go library refuses, and for patterns beyond all use.
pub(super) fn parse(pattern: &[u8]) -> Option<Node> {
    let mut parser = Parser { rest: pattern };
    let mut parts = 0;
    let mut open: Vec<Vec<Node>> = Vec::new();
    let mut current = Vec::new();
    loop {
        parts += 1;
        if parts > MAX_PARTS || open.len() > MAX_NESTED {
            return None;
        }
        let Some(character) = parser.peek()? else { break };
        let in_terms = !open.is_empty();
        match character {
            '{' => {
                parser.skip();
                open.push(vec![Node::Pattern(std::mem::take(&mut current))]);
            }
            ',' if in_terms => {
                parser.skip();
                let done = Node::Pattern(std::mem::take(&mut current));
                open.last_mut()?.push(done);
            }
            '}' if in_terms => {
                parser.skip();
                let terms = open.pop()?;
                current = closed(terms, current);
            }
            '[' => {
                parser.skip();
                current.push(parser.range()?);
            }
            '?' => {
                parser.skip();
                current.push(Node::Single);
            }
            '*' => {
                parser.skip();
                let twice = parser.peek()? == Some('*');
                if twice {
                    parser.skip();
                }
                current.push(if twice { Node::Super } else { Node::Any });
            }
            _ => {
                let breakers: &[char] = if in_terms {
                    &['?', '*', '[', '{', '}', ',']
                } else {
                    &['?', '*', '[', '{']
                };
                let text = parser.text(breakers)?;
                if !text.is_empty() {
                    current.push(Node::Text(text.into_iter().collect::<String>().into_bytes()));
                }
            }
        }
    }
    // Braces that are still open at the end are closed there.
    while let Some(terms) = open.pop() {
        current = closed(terms, current);
    }
    Some(Node::Pattern(current))
}

/// Ends alternatives: the first of `terms` is what stands before them, `last` the last alternative.
fn closed(mut terms: Vec<Node>, last: Vec<Node>) -> Vec<Node> {
    terms.push(Node::Pattern(last));
    let mut alternatives = terms.split_off(1);
    let mut before = match terms.pop() {
        Some(Node::Pattern(before)) => before,
        _ => Vec::new(),
    };
    before.push(Node::AnyOf(std::mem::take(&mut alternatives)));
    before
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    /// The next character; a null character is taken for the end. `None` for one that cannot be read.
    #[expect(clippy::option_option, reason = "the end of a pattern is no error")]
    fn peek(&self) -> Option<Option<char>> {
        match decode(self.rest) {
            (_, 0) | ('\0', _) => Some(None),
            ('\u{fffd}', _) => None,
            (character, _) => Some(Some(character)),
        }
    }

    fn skip(&mut self) {
        let (_, width) = decode(self.rest);
        self.rest = &self.rest[width..];
    }

    fn next(&mut self) -> Option<Option<char>> {
        let character = self.peek()?;
        if character.is_some() {
            self.skip();
        }
        Some(character)
    }

    /// Text up to one of `breakers`; a backslash takes their meaning away.
    fn text(&mut self, breakers: &[char]) -> Option<Vec<char>> {
        let mut text = Vec::new();
        while let Some(character) = self.peek()? {
            if breakers.contains(&character) {
                break;
            }
            self.skip();
            if character != '\\' {
                text.push(character);
                continue;
            }
            match self.next()? {
                Some(escaped) => text.push(escaped),
                None => break,
            }
        }
        Some(text)
    }

    /// `[…]`, whose first bracket is read already.
    fn range(&mut self) -> Option<Node> {
        let mut character = self.peek()??;
        let not = character == '!';
        if not {
            self.skip();
            character = self.peek()??;
        }
        let rest = self.rest;
        self.skip();
        if self.peek()? == Some('-') {
            self.skip();
            let low = character;
            let high = self.next()??;
            if high < low || self.next()? != Some(']') {
                return None;
            }
            return Some(Node::Range { low, high, not });
        }
        self.rest = rest;
        let characters = self.text(&[']'])?;
        if self.next()? != Some(']') || characters.is_empty() {
            return None;
        }
        Some(Node::List { characters, not })
    }
}
