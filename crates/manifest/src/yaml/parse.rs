//! From tokens to events: the grammar of YAML, as libyaml's parser runs it.
//!
//! A stack of states takes the place of recursion. Events go to [`super::compose`], which builds the tree.

mod block;
mod document;
mod flow;
mod node;
mod state;

use std::borrow::Cow;

use super::dialect::Dialect;
use super::error::Problem;
use super::node::Style;
use super::scan::token::{TagDirective, Token, TokenKind};
use super::scan::{Notes, Result, Scanner};
use state::State;

/// Event that the parser hands to the composer.
#[derive(Debug)]
pub(super) enum Event<'a> {
    DocumentStart,
    DocumentEnd,
    StreamEnd,
    Alias(&'a str),
    Scalar(Properties<'a>, Cow<'a, str>, Style),
    SequenceStart { properties: Properties<'a>, flow: bool },
    SequenceEnd,
    MappingStart { properties: Properties<'a>, flow: bool },
    MappingEnd,
}

/// Properties before a node.
#[derive(Debug, Default)]
pub(super) struct Properties<'a> {
    pub(super) anchor: Option<&'a str>,
    /// The whole tag; `!` for the tag that asks for no resolution.
    pub(super) tag: Option<Box<str>>,
}

/// An event, and the line in which it starts, counted from 0.
type Placed<'a> = (Event<'a>, u32);

/// Reads events from a text.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    dialect: Dialect,
    scanner: Scanner<'a>,
    state: State,
    states: Vec<State>,
    /// Lines in which the open collections start.
    starts: Vec<u32>,
    tag_directives: Vec<TagDirective<'a>>,
}

impl<'a> Parser<'a> {
    /// Notes comments and places of scalars from here on.
    pub(super) fn keep_notes(&mut self) {
        self.scanner.keep_notes();
    }

    /// Takes what was noted.
    pub(super) fn take_notes(&mut self) -> Notes {
        self.scanner.take_notes()
    }

    pub(super) fn new(text: &'a str, failure_behind: Option<Problem>, dialect: Dialect) -> Self {
        Self {
            dialect,
            scanner: Scanner::new(text, failure_behind, dialect),
            state: State::FirstDocumentStart,
            states: Vec::new(),
            starts: Vec::new(),
            tag_directives: Vec::new(),
        }
    }

    /// Returns the next event; [`Event::StreamEnd`] again and again at the end.
    pub(super) fn next(&mut self) -> Result<Placed<'a>> {
        match self.state {
            State::FirstDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Position::Block),
            State::BlockSequenceEntry { first } => self.block_sequence_entry(first),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingKey { first } => self.block_mapping_key(first),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceEntry { first } => self.flow_sequence_entry(first),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => self.flow_sequence_entry_mapping_end(),
            State::FlowMappingKey { first } => self.flow_mapping_key(first),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok((Event::StreamEnd, 0)),
        }
    }

    /// Shows what the next token is, and its line.
    fn peek(&mut self) -> Result<(&TokenKind<'a>, u32)> {
        let token = self.scanner.peek()?;
        Ok((&token.kind, token.line))
    }

    /// Takes the token that was shown.
    fn take(&mut self) -> Option<Token<'a>> {
        self.scanner.take()
    }

    fn failure(&self, start: u32, line: u32, text: &str) -> Problem {
        Problem::of_parser(self.dialect, start, line, text)
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Remembers where a collection starts, whose first token was shown, and takes that token.
    fn enter(&mut self) -> Result<()> {
        let (_, line) = self.peek()?;
        self.starts.push(line);
        self.take();
        Ok(())
    }

    /// Ends a collection at the token that was shown, and takes that token.
    fn leave(&mut self, event: Event<'a>) -> Placed<'a> {
        self.starts.pop();
        self.pop_state();
        let line = self.take().map_or(0, |token| token.line);
        (event, line)
    }

    fn failure_in_collection(&self, line: u32, text: &str) -> Problem {
        self.failure(self.starts.last().copied().unwrap_or(0), line, text)
    }

    /// Goes on to a node, and afterwards to `next`.
    fn node_then(&mut self, next: State, position: Position) -> Result<Placed<'a>> {
        self.states.push(next);
        self.node(position)
    }

    /// Stands for a node that is not there.
    fn empty_then(&mut self, next: State, line: u32) -> Placed<'a> {
        self.state = next;
        empty(line)
    }
}

fn empty<'a>(line: u32) -> Placed<'a> {
    let event = Event::Scalar(Properties::default(), Cow::Borrowed(""), Style::Plain);
    (event, line)
}

/// Where a node stands, which decides on the collections that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Block,
    /// Where a sequence may stand that is not indented: below a key.
    BlockOrIndentlessSequence,
    Flow,
}
