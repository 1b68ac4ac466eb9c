//! Parses `if`, `range` and `with` from their start over their `else` to their end.

use super::Parser;
use super::definition::Owner;
use crate::Error;
use crate::ast::{Branch, List, Node, Pipe, Position};
use crate::lexer::{Item, Kind};

/// A control structure whose end was not yet seen.
pub(super) struct Control {
    kind: ControlKind,
    pipe: Pipe,
    /// The scope around it.
    scope: usize,
    /// The first list, where the open one is the second.
    list: Option<List>,
    /// True if it is an `{{else if}}` or `{{else with}}`, so that its end ends the one around it as well.
    is_chained: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ControlKind {
    If,
    Range,
    With,
}

impl ControlKind {
    fn from_keyword(keyword: Kind) -> Self {
        match keyword {
            Kind::Range => Self::Range,
            Kind::With => Self::With,
            _ => Self::If,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Range => "range",
            Self::With => "with",
        }
    }

    /// Returns whether `{{else KEYWORD}}` goes on with the structure. Ranges have no such form.
    fn chains(self, keyword: Kind) -> bool {
        matches!((self, keyword), (Self::If, Kind::If) | (Self::With, Kind::With))
    }
}

impl Parser<'_> {
    /// Starts a control structure, whose keyword was read.
    pub(super) fn open_control(&mut self, keyword: Kind, is_chained: bool) -> Result<(), Error> {
        let kind = ControlKind::from_keyword(keyword);
        let scope = self.current.scope.mark();
        let pipe = self.parse_pipeline(kind.name())?;
        if kind == ControlKind::Range {
            self.current.range_depth += 1;
        }
        let position = Position(self.peek_non_space().start);
        let control = Control {
            kind,
            pipe,
            scope,
            list: None,
            is_chained,
        };
        self.current.open(position, Owner::Control(control));
        Ok(())
    }

    /// Parses `{{else}}`, whose keyword was read.
    pub(super) fn parse_else(&mut self) -> Result<(), Error> {
        let keyword = self.peek_non_space();
        let is_chained = matches!(keyword.kind, Kind::If | Kind::With);
        if !is_chained {
            self.expect(Kind::RightDelimiter, "else")?;
        }
        self.current.action_line = 0;
        let (list, owner) = self.close_innermost();
        let mut control = match owner {
            Owner::Control(control) => control,
            owner => return Err(self.misplaced_else(&owner)),
        };
        if control.list.is_some() {
            return Err(self.error("expected end; found {{else}}"));
        }
        if control.kind == ControlKind::Range {
            self.current.range_depth -= 1;
        }
        control.list = Some(list);
        if control.kind.chains(self.peek().kind) {
            self.next();
            self.current
                .open(Position(keyword.start), Owner::Control(control));
            return self.open_control(keyword.kind, true);
        }
        let position = Position(self.peek_non_space().start);
        self.current.open(position, Owner::Control(control));
        Ok(())
    }

    /// Parses `{{end}}`, whose keyword was read.
    pub(super) fn parse_end(&mut self) -> Result<(), Error> {
        self.expect(Kind::RightDelimiter, "end")?;
        self.current.action_line = 0;
        loop {
            let (list, owner) = self.close_innermost();
            match owner {
                Owner::File => return Err(self.error("unexpected {{end}}")),
                Owner::Define => return self.close_definition(list),
                Owner::Block(invocation) => return self.close_block(list, invocation),
                Owner::Control(control) => {
                    let is_chained = control.is_chained;
                    self.close_control(control, list);
                    if !is_chained {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Parses `{{break}}` or `{{continue}}`, whose keyword was read.
    pub(super) fn parse_break(&mut self, keyword: Item, context: &str) -> Result<Position, Error> {
        self.expect(Kind::RightDelimiter, context)?;
        if self.current.range_depth == 0 {
            return Err(self.error(&format!("{context} outside {{{{range}}}}")));
        }
        Ok(Position(keyword.start))
    }

    fn close_control(&mut self, control: Control, last: List) {
        let (list, else_list) = match control.list {
            Some(list) => (list, Some(last)),
            None => (last, None),
        };
        if control.kind == ControlKind::Range && else_list.is_none() {
            self.current.range_depth -= 1;
        }
        self.current.scope.leave(control.scope);
        let branch = Box::new(Branch {
            pipe: control.pipe,
            list,
            else_list,
        });
        self.append(match control.kind {
            ControlKind::If => Node::If(branch),
            ControlKind::Range => Node::Range(branch),
            ControlKind::With => Node::With(branch),
        });
    }
}
