//! Collections in brackets and braces.

use super::{Event, Parser, Placed, Position, Properties, Result, State};
use crate::yaml::scan::token::TokenKind;

impl<'a> Parser<'a> {
    pub(super) fn flow_sequence_entry(&mut self, first: bool) -> Result<Placed<'a>> {
        const NEXT: State = State::FlowSequenceEntry { first: false };
        if first {
            self.enter()?;
        }
        let is_end = |token: &TokenKind<'_>| matches!(token, TokenKind::FlowSequenceEnd);
        if !first && !is_end(self.peek()?.0) {
            self.take_comma("did not find expected ',' or ']'")?;
        }
        let (token, line) = self.peek()?;
        match token {
            TokenKind::FlowSequenceEnd => Ok(self.leave(Event::SequenceEnd)),
            TokenKind::Key => {
                self.take();
                self.state = State::FlowSequenceEntryMappingKey;
                let properties = Properties::default();
                Ok((
                    Event::MappingStart {
                        properties,
                        flow: true,
                    },
                    line,
                ))
            }
            _ => self.node_then(NEXT, Position::Flow),
        }
    }

    fn take_comma(&mut self, otherwise: &str) -> Result<()> {
        let (token, line) = self.peek()?;
        if !matches!(token, TokenKind::FlowEntry) {
            return Err(self.failure_in_collection(line, otherwise));
        }
        self.take();
        Ok(())
    }

    pub(super) fn flow_sequence_entry_mapping_key(&mut self) -> Result<Placed<'a>> {
        const NEXT: State = State::FlowSequenceEntryMappingValue;
        let (token, line) = self.peek()?;
        match token {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // As libyaml does: the token behind the missing key is lost.
                self.take();
                Ok(self.empty_then(NEXT, line))
            }
            _ => self.node_then(NEXT, Position::Flow),
        }
    }

    pub(super) fn flow_sequence_entry_mapping_value(&mut self) -> Result<Placed<'a>> {
        const NEXT: State = State::FlowSequenceEntryMappingEnd;
        let (token, line) = self.peek()?;
        if matches!(token, TokenKind::Value) {
            self.take();
            if !matches!(self.peek()?.0, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                return self.node_then(NEXT, Position::Flow);
            }
        }
        Ok(self.empty_then(NEXT, line))
    }

    pub(super) fn flow_sequence_entry_mapping_end(&mut self) -> Result<Placed<'a>> {
        let (_, line) = self.peek()?;
        self.state = State::FlowSequenceEntry { first: false };
        Ok((Event::MappingEnd, line))
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Result<Placed<'a>> {
        if first {
            self.enter()?;
        }
        let is_end = |token: &TokenKind<'_>| matches!(token, TokenKind::FlowMappingEnd);
        if !first && !is_end(self.peek()?.0) {
            self.take_comma("did not find expected ',' or '}'")?;
        }
        match self.peek()?.0 {
            TokenKind::FlowMappingEnd => Ok(self.leave(Event::MappingEnd)),
            TokenKind::Key => {
                self.take();
                let (token, line) = self.peek()?;
                match token {
                    TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => {
                        Ok(self.empty_then(State::FlowMappingValue, line))
                    }
                    _ => self.node_then(State::FlowMappingValue, Position::Flow),
                }
            }
            _ => self.node_then(State::FlowMappingEmptyValue, Position::Flow),
        }
    }

    pub(super) fn flow_mapping_value(&mut self, empty: bool) -> Result<Placed<'a>> {
        const NEXT: State = State::FlowMappingKey { first: false };
        let (token, line) = self.peek()?;
        if empty || !matches!(token, TokenKind::Value) {
            return Ok(self.empty_then(NEXT, line));
        }
        self.take();
        let (token, line) = self.peek()?;
        match token {
            TokenKind::FlowEntry | TokenKind::FlowMappingEnd => Ok(self.empty_then(NEXT, line)),
            _ => self.node_then(NEXT, Position::Flow),
        }
    }
}
