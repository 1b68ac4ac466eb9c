//! Documents and their directives.

use super::{Event, Parser, Placed, Position, Result, State, empty};
use crate::yaml::scan::token::{TagDirective, TokenKind};

impl<'a> Parser<'a> {
    pub(super) fn document_start(&mut self, first: bool) -> Result<Placed<'a>> {
        if !first {
            while matches!(self.peek()?.0, TokenKind::DocumentEnd) {
                self.take();
            }
        }
        let (token, start) = self.peek()?;
        match token {
            TokenKind::StreamEnd => {
                self.state = State::End;
                return Ok((Event::StreamEnd, start));
            }
            TokenKind::VersionDirective { .. } | TokenKind::TagDirective(_) | TokenKind::DocumentStart => {}
            _ if first => {
                self.process_directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                return Ok((Event::DocumentStart, start));
            }
            _ => {}
        }
        self.process_directives()?;
        let (token, line) = self.peek()?;
        if !matches!(token, TokenKind::DocumentStart) {
            return Err(self.failure(0, line, "did not find expected <document start>"));
        }
        self.take();
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        Ok((Event::DocumentStart, start))
    }

    pub(super) fn document_content(&mut self) -> Result<Placed<'a>> {
        let (token, line) = self.peek()?;
        match token {
            TokenKind::VersionDirective { .. }
            | TokenKind::TagDirective(_)
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => {
                self.pop_state();
                Ok(empty(line))
            }
            _ => self.node(Position::Block),
        }
    }

    pub(super) fn document_end(&mut self) -> Result<Placed<'a>> {
        let (token, line) = self.peek()?;
        if matches!(token, TokenKind::DocumentEnd) {
            self.take();
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok((Event::DocumentEnd, line))
    }

    fn process_directives(&mut self) -> Result<()> {
        let mut has_version = false;
        loop {
            let (token, line) = self.peek()?;
            match token {
                TokenKind::VersionDirective { major, minor } => {
                    let is_known = (*major, *minor) == (1, 1);
                    if has_version {
                        return Err(self.failure(0, line, "found duplicate %YAML directive"));
                    }
                    if !is_known {
                        return Err(self.failure(0, line, "found incompatible YAML document"));
                    }
                    has_version = true;
                }
                TokenKind::TagDirective(directive) => {
                    let directive = TagDirective::clone(directive);
                    if self.prefix(directive.handle).is_some() {
                        return Err(self.failure(0, line, "found duplicate %TAG directive"));
                    }
                    self.tag_directives.push(directive);
                }
                _ => return Ok(()),
            }
            self.take();
        }
    }

    /// Returns what a directive puts in the place of a tag's handle.
    fn prefix(&self, handle: &str) -> Option<&str> {
        self.tag_directives
            .iter()
            .find(|directive| directive.handle == handle)
            .map(|directive| &*directive.prefix)
    }

    /// Returns the whole tag; None when its handle stands for nothing.
    pub(super) fn whole_tag(&self, handle: &str, suffix: &str) -> Option<Box<str>> {
        let prefix = match (self.prefix(handle), handle) {
            (Some(prefix), _) => prefix,
            (None, "" | "!") => handle,
            (None, "!!") => "tag:yaml.org,2002:",
            (None, _) => return None,
        };
        Some(format!("{prefix}{suffix}").into())
    }
}
