//! Simple keys (a mapping key is known only at its `:`), and the indentation that starts and ends block
//! collections.

use super::token::TokenKind;
use super::{Result, Scanner};

/// How deep flow collections may be nested, and block collections: go-yaml's bounds.
const MAX_LEVELS: usize = 10_000;

/// How many characters before its `:` a key without `?` may start.
const MAX_KEY_LENGTH: usize = 1024;

/// A place where a key may have started: one for each level of flow collections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimpleKey {
    pub(super) possible: bool,
    required: bool,
    /// True if the scanner no longer waits for its `:`, though it would take it.
    forgotten: bool,
    /// Which token it is, counted from the start of the text.
    pub(super) token: usize,
    at: usize,
    pub(super) line: u32,
    pub(super) column: usize,
}

impl Scanner<'_> {
    fn innermost(&mut self) -> &mut SimpleKey {
        if self.simple_keys.is_empty() {
            self.simple_keys.push(SimpleKey::default());
        }
        let last = self.simple_keys.len() - 1;
        &mut self.simple_keys[last]
    }

    pub(super) fn next_token_number(&self) -> usize {
        self.tokens_parsed + self.tokens.len()
    }

    /// Notes that a key may start here.
    pub(super) fn save_simple_key(&mut self) -> Result<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let column = self.cursor.column;
        let key = SimpleKey {
            possible: true,
            required: self.flow_level == 0 && usize::try_from(self.indent) == Ok(column),
            forgotten: false,
            token: self.next_token_number(),
            at: self.cursor.at,
            line: self.cursor.line,
            column,
        };
        self.remove_simple_key()?;
        *self.innermost() = key;
        Ok(())
    }

    /// Gives up the key of the current level.
    pub(super) fn remove_simple_key(&mut self) -> Result<()> {
        let key = *self.innermost();
        if key.possible && key.required {
            return Err(self.failure(key.line, "could not find expected ':'"));
        }
        self.innermost().possible = false;
        Ok(())
    }

    /// Returns the key of the current level if it may still be one, and gives it up.
    pub(super) fn take_simple_key(&mut self) -> Result<Option<SimpleKey>> {
        self.innermost();
        let last = self.simple_keys.len() - 1;
        if !self.is_still_possible(last)? {
            return Ok(None);
        }
        let key = self.innermost();
        key.possible = false;
        Ok(Some(*key))
    }

    /// Returns whether the token that is next in the queue may still become a key.
    pub(super) fn head_may_be_key(&mut self) -> Result<bool> {
        let head = self.tokens_parsed;
        // Keys of deeper levels are later tokens. A level opens with the number of the bracket that opens it.
        let mut level = self.simple_keys.partition_point(|key| key.token < head);
        while let Some(key) = self.simple_keys.get(level).filter(|key| key.token == head) {
            if key.possible && !key.forgotten {
                return self.is_still_possible(level);
            }
            level += 1;
        }
        Ok(false)
    }

    fn is_still_possible(&mut self, level: usize) -> Result<bool> {
        let key = self.simple_keys[level];
        if !key.possible {
            return Ok(false);
        }
        if key.line == self.cursor.line && !self.is_far_from(key.at) {
            return Ok(true);
        }
        if key.required {
            return Err(self.failure(key.line, "could not find expected ':'"));
        }
        self.simple_keys[level].possible = false;
        Ok(false)
    }

    fn is_far_from(&self, start: usize) -> bool {
        const WIDEST_CHARACTER: usize = 4;
        let passed = &self.cursor.text.as_bytes()[start..self.cursor.at];
        let is_start = |byte: &&u8| **byte & 0xc0 != 0x80;
        match passed.len() {
            ..=MAX_KEY_LENGTH => false,
            length if length > MAX_KEY_LENGTH * WIDEST_CHARACTER => true,
            _ => passed.iter().filter(is_start).count() > MAX_KEY_LENGTH,
        }
    }

    pub(super) fn enter_flow(&mut self) -> Result<()> {
        self.simple_keys.push(SimpleKey {
            token: self.next_token_number(),
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        self.check_levels(self.flow_level)
    }

    pub(super) fn leave_flow(&mut self) {
        if self.flow_level == 0 {
            return;
        }
        self.flow_level -= 1;
        let left = self.simple_keys.pop();
        // An empty collection shares its number with the level that it opened, and go-yaml deletes both by that number.
        if let (Some(left), Some(key)) = (left, self.simple_keys.last_mut()) {
            key.forgotten |= left.token == key.token;
        }
    }

    fn check_levels(&self, levels: usize) -> Result<()> {
        if levels <= MAX_LEVELS {
            return Ok(());
        }
        let text = format!("exceeded max depth of {MAX_LEVELS}");
        Err(self.failure(self.cursor.line, text))
    }

    /// Starts a block collection when `column` is deeper than the one that is open; `before` is a token in the queue.
    pub(super) fn roll_indent(
        &mut self,
        column: usize,
        before: Option<usize>,
        kind: TokenKind<'static>,
        line: u32,
    ) -> Result<()> {
        let column = i64::try_from(column).unwrap_or(i64::MAX);
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        self.check_levels(self.indents.len())?;
        self.insert_token(before, kind, line);
        Ok(())
    }

    /// Ends the block collections that are deeper than `column`.
    pub(super) fn unroll_indent(&mut self, column: Option<usize>, line: u32) {
        if self.flow_level > 0 {
            return;
        }
        let column = column.map_or(-1, |column| i64::try_from(column).unwrap_or(i64::MAX));
        while self.indent > column {
            self.insert_token(None, TokenKind::BlockEnd, line);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }
}
