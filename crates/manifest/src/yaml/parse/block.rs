//! Collections that are made by indentation.

use super::{Event, Parser, Placed, Position, Result, State};
use crate::yaml::scan::token::TokenKind;

impl<'a> Parser<'a> {
    pub(super) fn block_sequence_entry(&mut self, first: bool) -> Result<Placed<'a>> {
        const NEXT: State = State::BlockSequenceEntry { first: false };
        if first {
            self.enter()?;
        }
        let (token, line) = self.peek()?;
        match token {
            TokenKind::BlockEntry => {
                self.take();
                match self.peek()?.0 {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => Ok(self.empty_then(NEXT, line)),
                    _ => self.node_then(NEXT, Position::Block),
                }
            }
            TokenKind::BlockEnd => Ok(self.leave(Event::SequenceEnd)),
            _ => Err(self.failure_in_collection(line, "did not find expected '-' indicator")),
        }
    }

    pub(super) fn indentless_sequence_entry(&mut self) -> Result<Placed<'a>> {
        const NEXT: State = State::IndentlessSequenceEntry;
        let (token, line) = self.peek()?;
        if !matches!(token, TokenKind::BlockEntry) {
            self.pop_state();
            return Ok((Event::SequenceEnd, line));
        }
        self.take();
        match self.peek()?.0 {
            TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                Ok(self.empty_then(NEXT, line))
            }
            _ => self.node_then(NEXT, Position::Block),
        }
    }

    pub(super) fn block_mapping_key(&mut self, first: bool) -> Result<Placed<'a>> {
        if first {
            self.enter()?;
        }
        let (token, line) = self.peek()?;
        match token {
            TokenKind::Key => {
                self.take();
                self.key_or_value(State::BlockMappingValue, line)
            }
            TokenKind::BlockEnd => Ok(self.leave(Event::MappingEnd)),
            _ => Err(self.failure_in_collection(line, "did not find expected key")),
        }
    }

    pub(super) fn block_mapping_value(&mut self) -> Result<Placed<'a>> {
        const NEXT: State = State::BlockMappingKey { first: false };
        let (token, line) = self.peek()?;
        if !matches!(token, TokenKind::Value) {
            return Ok(self.empty_then(NEXT, line));
        }
        self.take();
        self.key_or_value(NEXT, line)
    }

    fn key_or_value(&mut self, next: State, line: u32) -> Result<Placed<'a>> {
        match self.peek()?.0 {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => Ok(self.empty_then(next, line)),
            _ => self.node_then(next, Position::BlockOrIndentlessSequence),
        }
    }
}
