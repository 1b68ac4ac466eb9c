//! One node with its tag and anchor.

use std::borrow::Cow;

use super::{Event, Parser, Placed, Position, Properties, Result, State};
use crate::yaml::node::Style;
use crate::yaml::scan::token::{TagToken, TokenKind};

impl<'a> Parser<'a> {
    pub(super) fn node(&mut self, position: Position) -> Result<Placed<'a>> {
        let (token, start) = self.peek()?;
        if let TokenKind::Alias(name) = *token {
            self.take();
            self.pop_state();
            return Ok((Event::Alias(name), start));
        }
        let properties = match token {
            TokenKind::Anchor(_) | TokenKind::Tag(_) => self.properties(start)?,
            _ => Properties::default(),
        };
        let (token, line) = self.peek()?;
        let in_block = position != Position::Flow;
        let (event, state) = match token {
            TokenKind::Scalar(..) => return Ok(self.scalar(properties, start)),
            TokenKind::BlockEntry if position == Position::BlockOrIndentlessSequence => {
                (sequence(properties, false), State::IndentlessSequenceEntry)
            }
            TokenKind::FlowSequenceStart => (
                sequence(properties, true),
                State::FlowSequenceEntry { first: true },
            ),
            TokenKind::FlowMappingStart => (mapping(properties, true), State::FlowMappingKey { first: true }),
            TokenKind::BlockSequenceStart if in_block => (
                sequence(properties, false),
                State::BlockSequenceEntry { first: true },
            ),
            TokenKind::BlockMappingStart if in_block => {
                (mapping(properties, false), State::BlockMappingKey { first: true })
            }
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                self.pop_state();
                let event = Event::Scalar(properties, Cow::Borrowed(""), Style::Plain);
                return Ok((event, start));
            }
            _ => return Err(self.failure(start, line, "did not find expected node content")),
        };
        self.state = state;
        Ok((event, start))
    }

    fn scalar(&mut self, properties: Properties<'a>, start: u32) -> Placed<'a> {
        self.pop_state();
        let (value, style) = match self.take().map(|token| token.kind) {
            Some(TokenKind::Scalar(value, style)) => (value, style),
            _ => (Cow::Borrowed(""), Style::Plain),
        };
        (Event::Scalar(properties, value, style), start)
    }

    /// Takes a tag and an anchor, in either order.
    fn properties(&mut self, start: u32) -> Result<Properties<'a>> {
        let mut properties = Properties::default();
        let mut tag: Option<(Box<TagToken<'a>>, u32)> = None;
        loop {
            let wanted = match self.peek()?.0 {
                TokenKind::Anchor(_) => properties.anchor.is_none(),
                TokenKind::Tag(_) => tag.is_none(),
                _ => false,
            };
            if !wanted {
                break;
            }
            match self.take().map(|token| (token.kind, token.line)) {
                Some((TokenKind::Anchor(name), _)) => properties.anchor = Some(name),
                Some((TokenKind::Tag(token), line)) => tag = Some((token, line)),
                _ => break,
            }
        }
        if let Some((token, line)) = tag {
            let whole = self.whole_tag(token.handle, &token.suffix);
            let whole = whole.ok_or_else(|| self.failure(start, line, "found undefined tag handle"))?;
            properties.tag = Some(whole);
        }
        Ok(properties)
    }
}

fn sequence(properties: Properties<'_>, flow: bool) -> Event<'_> {
    Event::SequenceStart { properties, flow }
}

fn mapping(properties: Properties<'_>, flow: bool) -> Event<'_> {
    Event::MappingStart { properties, flow }
}
