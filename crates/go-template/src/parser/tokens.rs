//! Looks ahead by up to three items, and words errors about what was found.
//!
//! Go names the line of the item that was read last, which is often not the one that is wrong. So the buffer is kept as Go
//! keeps it, and each tree has its own.

use super::Parser;
use crate::lexer::{Item, Kind};
use crate::{Error, ErrorKind};
use go_text::quote::quote;
use go_text::rune::decode;

/// Items that were read and pushed back. The first of `items` is the one that was read last.
pub(super) struct Lookahead {
    items: [Item; 3],
    count: usize,
}

impl Lookahead {
    pub(super) fn new() -> Self {
        Self {
            items: [Item::NONE; 3],
            count: 0,
        }
    }
}

impl Parser<'_> {
    pub(super) fn next(&mut self) -> Item {
        let lookahead = &mut self.current.lookahead;
        if lookahead.count > 0 {
            lookahead.count -= 1;
        } else {
            lookahead.items[0] = self.lexer.next_item();
        }
        lookahead.items[lookahead.count]
    }

    pub(super) fn peek(&mut self) -> Item {
        let item = self.next();
        self.push_back();
        item
    }

    pub(super) fn next_non_space(&mut self) -> Item {
        loop {
            let item = self.next();
            if item.kind != Kind::Space {
                return item;
            }
        }
    }

    pub(super) fn peek_non_space(&mut self) -> Item {
        let item = self.next_non_space();
        self.push_back();
        item
    }

    /// Pushes back the item that was returned last.
    pub(super) fn push_back(&mut self) {
        self.current.lookahead.count += 1;
    }

    /// Pushes back `before` and the item that was read last.
    pub(super) fn push_back_two(&mut self, before: Item) {
        self.current.lookahead.items[1] = before;
        self.current.lookahead.count = 2;
    }

    /// Pushes back `first`, `second` and the item that was read last.
    pub(super) fn push_back_three(&mut self, first: Item, second: Item) {
        self.current.lookahead.items[1] = second;
        self.current.lookahead.items[2] = first;
        self.current.lookahead.count = 3;
    }

    /// Takes the next item, which must be of a kind.
    pub(super) fn expect(&mut self, kind: Kind, context: &str) -> Result<Item, Error> {
        let item = self.next_non_space();
        if item.kind == kind {
            Ok(item)
        } else {
            Err(self.unexpected(item, context))
        }
    }

    /// Words an error in the line of the item that was read last.
    pub(super) fn error(&self, message: &str) -> Error {
        let line = self.current.lookahead.items[0].line;
        Error::from_parts(
            ErrorKind::Parse,
            format!("template: {}:{line}: {message}", self.name),
        )
    }

    /// Words an error about an item that does not belong where it is, or that the lexer could not read.
    pub(super) fn unexpected(&self, item: Item, context: &str) -> Error {
        if item.kind != Kind::Error {
            return self.error(&format!("unexpected {} in {context}", self.describe(item)));
        }
        let error = self.lexer.error();
        let action_line = self.current.action_line;
        if action_line == 0 || action_line == item.line {
            return self.error(error);
        }
        let action = if error.ends_with(" action") {
            ""
        } else {
            " in action"
        };
        self.error(&format!("{error}{action} started at {}:{action_line}", self.name))
    }

    /// Returns the source of an item.
    pub(super) fn text(&self, item: Item) -> &[u8] {
        &self.source[item.start as usize..item.end as usize]
    }

    /// Prints an item for an error: quoted, after ten characters cut short.
    fn describe(&self, item: Item) -> String {
        let text = self.text(item);
        if item.kind == Kind::EndOfSource {
            return "EOF".to_owned();
        }
        if item.kind.is_keyword() {
            return format!("<{}>", go_text::valid_text(text));
        }
        let mut out = Vec::new();
        if text.len() > 10 {
            quote(first_characters(text, 10), &mut out);
            out.extend_from_slice(b"...");
        } else {
            quote(text, &mut out);
        }
        go_text::valid_text(&out).into_owned()
    }
}

fn first_characters(text: &[u8], count: usize) -> &[u8] {
    let mut length = 0;
    for _ in 0..count {
        length += decode(&text[length..]).1;
    }
    &text[..length]
}
