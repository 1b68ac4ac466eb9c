//! From text to tokens.
//!
//! The algorithm is libyaml's, as go-yaml runs it: a queue of tokens, because what looks like a scalar becomes a key
//! when a `:` follows, and indentation that opens and closes block collections. What is accepted, how far the scanner
//! looks ahead, and what an error says and where, is decided here. The parser ([`super::parse`]) asks for one token
//! after the other. Every token takes characters from the text, so that time and memory stay in proportion to it.

mod block;
mod cursor;
mod directive;
mod line_fold;
mod plain;
mod quoted;
mod simple_key;
mod tag;
pub(super) mod token;

use std::collections::VecDeque;

use super::dialect::Dialect;
use super::error::Problem;
use super::node::Style;
use cursor::Cursor;
pub(super) use cursor::Notes;
use simple_key::SimpleKey;
use token::{Token, TokenKind};

pub(super) type Result<T> = std::result::Result<T, Problem>;

/// How far go-yaml v3 looks for the next of several comments.
const COMMENT_WINDOW: usize = 512;

/// `--- ` and `... `, with the blank that must follow.
const LONGEST_INDICATOR: usize = 4;

/// Reads tokens from a text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    dialect: Dialect,
    cursor: Cursor<'a>,
    /// Problem of the bytes behind the text.
    failure_behind: Option<Problem>,
    tokens: VecDeque<Token<'a>>,
    tokens_parsed: usize,
    /// True if the next token is known to be no key.
    is_head_ready: bool,
    /// Whether the last token of the queue is a block entry, also after it was taken.
    last_is_block_entry: bool,
    flow_level: usize,
    /// Column of the block collection that is open; -1 for none.
    indent: i64,
    indents: Vec<i64>,
    simple_key_allowed: bool,
    simple_keys: Vec<SimpleKey>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, failure_behind: Option<Problem>, dialect: Dialect) -> Self {
        Self {
            dialect,
            cursor: Cursor::new(text),
            failure_behind,
            tokens: VecDeque::new(),
            tokens_parsed: 0,
            is_head_ready: false,
            last_is_block_entry: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: Vec::new(),
        }
    }

    /// Notes comments and places of scalars from here on.
    pub(super) fn keep_notes(&mut self) {
        self.cursor.notes = Some(Box::default());
    }

    /// Takes what was noted.
    pub(super) fn take_notes(&mut self) -> Notes {
        self.cursor.notes.take().map(|notes| *notes).unwrap_or_default()
    }

    /// Borrows the next token.
    pub(super) fn peek(&mut self) -> Result<&Token<'a>> {
        // go-yaml v3 wants two more tokens in the queue, for its comments; so it finds errors earlier than v2.
        let lookahead = match self.dialect {
            Dialect::Sigs => 0,
            Dialect::Kyaml => 2,
        };
        while !self.is_head_ready {
            if self.tokens.len() > lookahead && !self.head_may_be_key()? {
                self.is_head_ready = true;
            } else {
                self.fetch()?;
            }
        }
        Ok(&self.tokens[0])
    }

    /// Takes the next token, which [`Self::peek`] must have shown.
    pub(super) fn take(&mut self) -> Option<Token<'a>> {
        self.tokens_parsed += 1;
        self.is_head_ready = false;
        self.tokens.pop_front()
    }

    /// Makes the error of a problem that stands here, in something that started in line `start`.
    fn failure(&self, start: u32, text: impl Into<String>) -> Problem {
        Problem::of_scanner(self.dialect, start, self.cursor.line, text)
    }

    fn insert_token(&mut self, before: Option<usize>, kind: TokenKind<'a>, line: u32) {
        let token = Token { kind, line };
        match before.and_then(|number| number.checked_sub(self.tokens_parsed)) {
            Some(position) => self.tokens.insert(position.min(self.tokens.len()), token),
            None => {
                self.last_is_block_entry = matches!(token.kind, TokenKind::BlockEntry);
                self.tokens.push_back(token);
            }
        }
    }

    fn push(&mut self, token: Token<'a>) {
        self.last_is_block_entry = false;
        self.tokens.push_back(token);
    }

    /// Puts at least one token into the queue.
    fn fetch(&mut self) -> Result<()> {
        /// How many characters go-yaml's scanner wants to have before it goes on behind one that it took.
        const UNREAD: usize = 2;
        let result = self.fetch_token();
        self.check_failure_behind(UNREAD)?;
        result
    }

    /// Says what is wrong with the bytes behind the text when less than `wanted` of the text is left.
    fn check_failure_behind(&self, wanted: usize) -> Result<()> {
        match &self.failure_behind {
            Some(failure) if self.cursor.text.len() - self.cursor.at < wanted => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn fetch_token(&mut self) -> Result<()> {
        let block_end_line = match self.dialect {
            Dialect::Sigs => None,
            Dialect::Kyaml => Some(self.cursor.line),
        };
        self.skip_to_token();
        let line = block_end_line.unwrap_or(self.cursor.line);
        self.unroll_indent(Some(self.cursor.column), line);
        self.check_failure_behind(LONGEST_INDICATOR)?;
        if self.cursor.is_at_end() {
            return self.fetch_stream_end();
        }
        self.fetch_by_indicator()?;
        if self.dialect == Dialect::Kyaml && !self.last_is_block_entry {
            self.skip_line_comment();
        }
        Ok(())
    }

    fn fetch_by_indicator(&mut self) -> Result<()> {
        if self.cursor.column == 0 && self.cursor.peek(0) == b'%' {
            return self.fetch_directive();
        }
        if self.cursor.is_at_document_indicator() {
            return self.fetch_document_indicator();
        }
        let in_flow = self.flow_level > 0;
        let before_blank = || self.cursor.is_blank_or_end(1);
        match self.cursor.peek(0) {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if before_blank() => self.fetch_block_entry(),
            b'?' if in_flow || before_blank() => self.fetch_key(),
            b':' if in_flow || before_blank() => self.fetch_value(),
            b'*' | b'&' => self.fetch_word(Self::scan_anchor),
            b'!' => self.fetch_word(Self::scan_tag),
            b'|' if !in_flow => self.fetch_block_scalar(Style::Literal),
            b'>' if !in_flow => self.fetch_block_scalar(Style::Folded),
            quote @ (b'\'' | b'"') => self.fetch_word(|scanner| scanner.scan_quoted(quote)),
            b'\t' | b'|' | b'>' | b'%' | b'@' | b'`' => {
                Err(self.failure(self.cursor.line, "found character that cannot start any token"))
            }
            _ => self.fetch_word(Self::scan_plain),
        }
    }

    /// Skips blanks, comments and line breaks.
    fn skip_to_token(&mut self) {
        // A second byte order mark; go-yaml takes one for text when it stands further behind.
        if self.cursor.at == 0 && self.cursor.text.starts_with('\u{feff}') {
            self.cursor.skip_characters('\u{feff}'.len_utf8());
        }
        loop {
            // Tabs may not indent what could be a key.
            let tabs = self.flow_level > 0 || !self.simple_key_allowed;
            while self.cursor.peek(0) == b' ' || (tabs && self.cursor.peek(0) == b'\t') {
                self.cursor.skip(1);
            }
            if self.cursor.peek(0) == b'#' {
                self.skip_comments();
            }
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.take_break();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    /// Skips a comment; go-yaml v3 then looks for further ones, and skips whatever blanks stand before them.
    fn skip_comments(&mut self) {
        self.cursor.skip_comment();
        if self.dialect == Dialect::Sigs {
            return;
        }
        while let Some(length) = self.blanks_before_comment(1, true) {
            let target = self.cursor.at + length;
            while self.cursor.at < target {
                if self.cursor.take_break().is_empty() {
                    self.cursor.skip(1);
                }
            }
            self.cursor.skip_comment();
        }
    }

    /// Skips a comment in the line of the last token; go-yaml v3 takes tabs before it where v2 does not.
    fn skip_line_comment(&mut self) {
        if self.cursor.newlines > 0 {
            return;
        }
        if let Some(length) = self.blanks_before_comment(0, false) {
            self.cursor.skip(length);
            self.cursor.skip_comment();
        }
    }

    /// Tells how many blanks, and breaks if wanted, stand before a comment, if nothing else does.
    fn blanks_before_comment(&self, from: usize, over_breaks: bool) -> Option<usize> {
        let window = self
            .cursor
            .rest()
            .get(..COMMENT_WINDOW)
            .unwrap_or(self.cursor.rest());
        let is_skipped = |byte: u8| match byte {
            b' ' | b'\t' => true,
            b'\n' | b'\r' => over_breaks,
            _ => false,
        };
        let skipped = window
            .iter()
            .skip(from)
            .take_while(|byte| is_skipped(**byte))
            .count();
        (window.get(from + skipped) == Some(&b'#')).then_some(from + skipped)
    }

    fn fetch_stream_end(&mut self) -> Result<()> {
        if self.cursor.column != 0 {
            self.cursor.column = 0;
            self.cursor.line = self.cursor.line.saturating_add(1);
        }
        self.end_document()?;
        let line = self.cursor.line;
        self.insert_token(None, TokenKind::StreamEnd, line);
        Ok(())
    }

    /// Ends everything that is open.
    fn end_document(&mut self) -> Result<()> {
        self.unroll_indent(None, self.cursor.line);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<()> {
        self.end_document()?;
        let token = self.scan_directive()?;
        self.push(token);
        Ok(())
    }

    fn fetch_document_indicator(&mut self) -> Result<()> {
        self.end_document()?;
        let kind = if self.cursor.peek(0) == b'-' {
            TokenKind::DocumentStart
        } else {
            TokenKind::DocumentEnd
        };
        self.fetch_indicator(kind, 3);
        Ok(())
    }

    fn fetch_indicator(&mut self, kind: TokenKind<'a>, length: usize) {
        self.insert_token(None, kind, self.cursor.line);
        self.cursor.skip(length);
    }

    fn fetch_flow_start(&mut self, kind: TokenKind<'a>) -> Result<()> {
        self.save_simple_key()?;
        self.enter_flow()?;
        self.simple_key_allowed = true;
        self.fetch_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind<'a>) -> Result<()> {
        self.remove_simple_key()?;
        self.leave_flow();
        self.simple_key_allowed = false;
        self.fetch_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.fetch_indicator(TokenKind::FlowEntry, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<()> {
        self.start_block(
            TokenKind::BlockSequenceStart,
            "block sequence entries are not allowed in this context",
        )?;
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.fetch_indicator(TokenKind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<()> {
        self.start_block(
            TokenKind::BlockMappingStart,
            "mapping keys are not allowed in this context",
        )?;
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.fetch_indicator(TokenKind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<()> {
        if let Some(key) = self.take_simple_key()? {
            self.insert_token(Some(key.token), TokenKind::Key, key.line);
            self.roll_indent(
                key.column,
                Some(key.token),
                TokenKind::BlockMappingStart,
                key.line,
            )?;
            self.simple_key_allowed = false;
        } else {
            self.start_block(
                TokenKind::BlockMappingStart,
                "mapping values are not allowed in this context",
            )?;
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.fetch_indicator(TokenKind::Value, 1);
        Ok(())
    }

    /// Starts a block collection here if none is open at this column, where one may start.
    fn start_block(&mut self, kind: TokenKind<'static>, otherwise: &str) -> Result<()> {
        if self.flow_level > 0 {
            return Ok(());
        }
        if !self.simple_key_allowed {
            return Err(self.failure(self.cursor.line, otherwise));
        }
        self.roll_indent(self.cursor.column, None, kind, self.cursor.line)
    }

    /// Fetches what may be a key, or a part of one.
    fn fetch_word(&mut self, scan: impl FnOnce(&mut Self) -> Result<Token<'a>>) -> Result<()> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let token = scan(self)?;
        self.push(token);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, style: Style) -> Result<()> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let token = self.scan_block(style)?;
        self.push(token);
        Ok(())
    }
}
