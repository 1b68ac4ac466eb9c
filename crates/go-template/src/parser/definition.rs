//! Keeps what belongs to a tree while it is parsed, and starts and ends the trees within a file.

use super::Parser;
use super::control::Control;
use super::scope::Scope;
use super::tokens::Lookahead;
use crate::Error;
use crate::ast::{Invocation, List, Node, Position};
use crate::lexer::{Item, Kind};
use crate::value::Str;
use go_text::quote::unquote;

const DEFINE: &str = "define clause";
const BLOCK: &str = "block clause";

/// A tree that is not finished.
pub(super) struct Definition {
    pub(super) name: Str,
    pub(super) lookahead: Lookahead,
    /// Where the action started that is being parsed; 0 between actions.
    pub(super) action_line: u32,
    /// How many ranges are open.
    pub(super) range_depth: u32,
    pub(super) scope: Scope,
    /// The open lists, the root first.
    pub(super) open: Vec<OpenList>,
    /// How deep lists and pipelines have nested so far.
    pub(super) depth: u32,
}

/// A list whose end was not yet seen, and what becomes of it.
pub(super) struct OpenList {
    position: Position,
    nodes: Vec<Node>,
    pub(super) owner: Owner,
}

impl OpenList {
    /// Returns the list and what becomes of it.
    pub(super) fn close(self) -> (List, Owner) {
        let list = List {
            position: self.position,
            nodes: self.nodes.into(),
        };
        (list, self.owner)
    }
}

/// Owner of a list.
pub(super) enum Owner {
    File,
    Define,
    /// Invocation that stays in the tree around the block.
    Block(Invocation),
    Control(Control),
}

impl Definition {
    pub(super) fn new(name: Str) -> Self {
        Self {
            name,
            lookahead: Lookahead::new(),
            action_line: 0,
            range_depth: 0,
            scope: Scope::new(),
            open: Vec::new(),
            depth: 0,
        }
    }

    pub(super) fn innermost(&mut self) -> &mut Vec<Node> {
        let open = self.open.last_mut();
        &mut open.expect("the root is open while a tree is parsed").nodes
    }

    pub(super) fn open(&mut self, position: Position, owner: Owner) {
        self.open.push(OpenList {
            position,
            nodes: Vec::new(),
            owner,
        });
        self.note_depth(0);
    }

    /// Remembers how deep the tree is with so many pipelines open.
    pub(super) fn note_depth(&mut self, pipelines: usize) {
        self.depth = self.depth.max((self.open.len() + pipelines) as u32);
    }
}

impl Parser<'_> {
    pub(super) fn open_root(&mut self, position: Position) {
        self.current.open(position, Owner::File);
    }

    /// Ends the innermost list.
    pub(super) fn close_innermost(&mut self) -> (List, Owner) {
        let open = self.current.open.pop();
        open.expect("the root is open while a tree is parsed").close()
    }

    /// Returns whether the next item belongs to no list but the file's own.
    pub(super) fn is_between_actions_of_file(&self) -> bool {
        self.outer.is_empty() && self.current.open.len() == 1
    }

    /// Starts a `define`, whose keyword was read.
    pub(super) fn open_definition(&mut self) -> Result<(), Error> {
        // Go makes the new tree before it reads the name, so errors about that are the new tree's.
        self.enter(Definition::new(Str::default()));
        let token = self.next_non_space();
        self.current.name = self.template_name(token, DEFINE)?;
        self.expect(Kind::RightDelimiter, DEFINE)?;
        let position = Position(self.peek_non_space().start);
        self.current.open(position, Owner::Define);
        Ok(())
    }

    /// Starts a `block`, whose keyword was read.
    pub(super) fn open_block(&mut self) -> Result<(), Error> {
        let token = self.next_non_space();
        let name = self.template_name(token, BLOCK)?;
        let pipe = self.parse_pipeline(BLOCK)?;
        let invocation = Invocation {
            position: Position(token.start),
            name: name.clone(),
            pipe: Some(pipe),
        };
        self.enter(Definition::new(name));
        let position = Position(self.peek_non_space().start);
        self.current.open(position, Owner::Block(invocation));
        Ok(())
    }

    /// Ends a `define`.
    pub(super) fn close_definition(&mut self, root: List) -> Result<(), Error> {
        self.add_tree(root)?;
        self.leave();
        Ok(())
    }

    /// Ends a `block`, which calls what it defines.
    pub(super) fn close_block(&mut self, root: List, invocation: Invocation) -> Result<(), Error> {
        self.add_tree(root)?;
        self.leave();
        self.append(Node::Template(Box::new(invocation)));
        self.current.action_line = 0;
        Ok(())
    }

    /// Parses a `template`, whose keyword was read.
    pub(super) fn parse_invocation(&mut self) -> Result<(), Error> {
        const TEMPLATE: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, TEMPLATE)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelimiter {
            self.push_back();
            pipe = Some(self.parse_pipeline(TEMPLATE)?);
        }
        let position = Position(token.start);
        self.append(Node::Template(Box::new(Invocation { position, name, pipe })));
        Ok(())
    }

    /// Words the error that `{{else}}` ends a tree. That of a block is the outer tree's.
    pub(super) fn misplaced_else(&mut self, owner: &Owner) -> Error {
        match owner {
            Owner::Define => self.error(&format!("unexpected {{{{else}}}} in {DEFINE}")),
            Owner::Block(_) => {
                self.leave();
                self.error(&format!("unexpected {{{{else}}}} in {BLOCK}"))
            }
            Owner::File | Owner::Control(_) => self.error("unexpected {{else}}"),
        }
    }

    fn enter(&mut self, definition: Definition) {
        self.outer.push(std::mem::replace(&mut self.current, definition));
    }

    fn leave(&mut self) {
        self.current = self.outer.pop().expect("the file itself is not left");
    }

    fn template_name(&self, token: Item, context: &str) -> Result<Str, Error> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return Err(self.unexpected(token, context));
        }
        let name = unquote(self.text(token)).map_err(|error| self.error(&error.to_string()))?;
        Ok(Str::from(name.as_ref()))
    }
}
