//! Builds trees from the source of a template, as `text/template/parse` does.
//!
//! In goes the source of a file and the question which functions there are; out come a tree for the file and one for each
//! `define` and `block`, or the error that Go would report. What a name or a field stands for is not asked here.
//!
//! Nothing recurses: open control structures, definitions and parentheses are kept in lists, so that a template of a
//! million nested actions is refused or parsed, but does not overflow the stack.

mod constant;
mod control;
mod definition;
mod pipeline;
mod scope;
mod tokens;

use std::collections::HashMap;

use definition::Definition;

use crate::ast::{List, Node, Position, Span, Tree};
use crate::lexer::{Delimiters, Item, Kind, Lexer, LoopKeywords};
use crate::value::Str;
use crate::{Error, ErrorKind};

/// Parses a file.
///
/// `is_function` answers for all functions, Go's own (`len`, `printf`, …) included. The trees come in the order in which
/// their names were first defined, each name once: a tree that is empty gives way to another of its name, and two that are
/// not are an error. So a file that holds nothing but a definition of its own name yields only that one.
pub fn parse(name: &Str, source: &Str, is_function: &dyn Fn(&str) -> bool) -> Result<Vec<Tree>, Error> {
    parse_between(Delimiters::default(), name, source, is_function)
}

/// Parses a file whose actions stand between these delimiters; see [`parse`].
pub fn parse_between(
    delimiters: Delimiters,
    name: &Str,
    source: &Str,
    is_function: &dyn Fn(&str) -> bool,
) -> Result<Vec<Tree>, Error> {
    if u32::try_from(source.len()).is_err() {
        let message = format!("template: {name}: failed to parse more than 4 GiB");
        return Err(Error::from_parts(ErrorKind::Limit, message));
    }
    let keywords = LoopKeywords {
        has_break: !is_function("break"),
        has_continue: !is_function("continue"),
    };
    let mut parser = Parser {
        name,
        source,
        is_function,
        lexer: Lexer::new(source, delimiters, keywords),
        current: Definition::new(name.clone()),
        outer: Vec::new(),
        trees: Vec::new(),
        tree_of_name: HashMap::new(),
    };
    parser.parse_file()?;
    Ok(parser.trees)
}

/// A file on its way to trees.
struct Parser<'s> {
    name: &'s Str,
    source: &'s Str,
    is_function: &'s dyn Fn(&str) -> bool,
    lexer: Lexer<'s>,
    /// The tree that items belong to now.
    current: Definition,
    /// The trees around it, the file's first.
    outer: Vec<Definition>,
    trees: Vec<Tree>,
    tree_of_name: HashMap<Str, usize>,
}

impl Parser<'_> {
    fn parse_file(&mut self) -> Result<(), Error> {
        let position = Position(self.peek().start);
        self.open_root(position);
        loop {
            let is_file = self.is_between_actions_of_file();
            if is_file && self.take_definition()? {
                continue;
            }
            match self.peek_non_space().kind {
                Kind::EndOfSource if is_file => break,
                Kind::EndOfSource => return Err(self.error("unexpected EOF")),
                _ => self.parse_node()?,
            }
        }
        let (root, _) = self.close_innermost();
        self.add_tree(root)
    }

    /// Starts a definition if one is next, which only a file may hold, not a list within it.
    fn take_definition(&mut self) -> Result<bool, Error> {
        if self.peek().kind != Kind::LeftDelimiter {
            return Ok(false);
        }
        let delimiter = self.next();
        if self.next_non_space().kind == Kind::Define {
            self.open_definition()?;
            return Ok(true);
        }
        self.push_back_two(delimiter);
        Ok(false)
    }

    /// Parses a text or an action.
    fn parse_node(&mut self) -> Result<(), Error> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => {
                self.append(Node::Text(span(token)));
                Ok(())
            }
            Kind::LeftDelimiter => {
                self.current.action_line = token.line;
                self.parse_action()
            }
            _ => Err(self.unexpected(token, "input")),
        }
    }

    fn parse_action(&mut self) -> Result<(), Error> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Block => return self.open_block(),
            Kind::Else => return self.parse_else(),
            Kind::End => return self.parse_end(),
            Kind::If | Kind::Range | Kind::With => return self.open_control(token.kind, false),
            Kind::Break => {
                let node = Node::Break(self.parse_break(token, "{{break}}")?);
                self.append(node);
            }
            Kind::Continue => {
                let node = Node::Continue(self.parse_break(token, "{{continue}}")?);
                self.append(node);
            }
            Kind::Template => self.parse_invocation()?,
            _ => {
                self.push_back();
                let pipe = self.parse_pipeline("command")?;
                self.append(Node::Action(pipe));
            }
        }
        self.current.action_line = 0;
        Ok(())
    }

    /// Appends a node to the innermost list.
    fn append(&mut self, node: Node) {
        self.current.innermost().push(node);
    }

    /// Adds a finished tree, if there is none of its name but an empty one.
    fn add_tree(&mut self, root: List) -> Result<(), Error> {
        let tree = Tree {
            name: self.current.name.clone(),
            parse_name: self.name.clone(),
            source: self.source.clone(),
            is_empty: is_empty(&root, self.source),
            depth: self.current.depth,
            root,
        };
        match self.tree_of_name.get(&tree.name) {
            None => {
                self.tree_of_name.insert(tree.name.clone(), self.trees.len());
                self.trees.push(tree);
            }
            Some(known) if self.trees[*known].is_empty => self.trees[*known] = tree,
            Some(_) if tree.is_empty => {}
            Some(_) => {
                let name = quoted(&tree.name);
                return Err(self.error(&format!("template: multiple definition of template {name}")));
            }
        }
        Ok(())
    }
}

/// Go's `IsEmptyTree`: nothing but space.
fn is_empty(root: &List, source: &Str) -> bool {
    root.nodes.iter().all(|node| match node {
        Node::Text(span) => is_space(&source[span.start.0 as usize..span.end.0 as usize]),
        _ => false,
    })
}

fn is_space(text: &[u8]) -> bool {
    go_text::rune::decode_all(text).all(char::is_whitespace)
}

fn span(token: Item) -> Span {
    Span {
        start: Position(token.start),
        end: Position(token.end),
    }
}

fn quoted(text: &[u8]) -> String {
    let mut out = Vec::new();
    go_text::quote::quote(text, &mut out);
    go_text::valid_text(&out).into_owned()
}

#[cfg(test)]
mod tests;
