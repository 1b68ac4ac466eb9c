//! Executes templates: Go's `text/template/exec.go` over the trees of the parser.
//!
//! In go a tree, a value for dot, and the render's state; out go bytes or the first error. This file walks nodes; below it
//! are pipelines ([`pipeline`]), fields ([`field`]), calls ([`call`]), arguments ([`argument`]), loops ([`range`]) and
//! printing ([`print`]). Errors point to the node that Go was at, which [`Exec::at`] records exactly where Go does.

mod argument;
mod call;
mod field;
mod pipeline;
mod print;
mod range;
#[cfg(test)]
mod tests;
mod truth;

pub(crate) use argument::{nil_of, zero_of};
pub(crate) use truth::is_true;

use crate::ast::{Branch, Invocation, List, Node, NodeRef, Tree};
use crate::context::Context;
use crate::{Error, ErrorKind, Str, Type, Value};
use go_text::quote;

/// Go's bound of templates that call templates.
const MAX_DEPTH: u32 = 100_000;

/// Executes a tree, and returns what it printed.
pub(crate) fn run(context: Context<'_>, tree: &Tree, data: &Value) -> Result<Vec<u8>, Error> {
    let data = match data {
        Value::Nil => Value::Invalid,
        data => data.clone(),
    };
    let dot = Cell::from(data);
    let mut exec = Exec {
        context,
        tree,
        node: NodeRef::List(tree.root()),
        out: Vec::new(),
        variables: vec![Variable {
            symbol: crate::ast::Variable::ROOT,
            cell: dot.clone(),
        }],
        frame: 0,
        depth: 0,
    };
    exec.walk_list(&dot, tree.root())?;
    Ok(exec.out)
}

/// Go's error for a template that was named but never parsed.
pub(crate) fn incomplete(name: &Str) -> Error {
    let message = format!(
        "template: {name}: {} is an incomplete or empty template",
        quoted(name)
    );
    Error::from_parts(ErrorKind::Exec, message)
}

/// Quotes a name for an error.
pub(crate) fn quoted(name: &[u8]) -> String {
    let mut out = Vec::new();
    quote::quote(name, &mut out);
    go_text::valid_text(&out).into_owned()
}

/// A value in a place that may be of type `interface {}`: what a loop over `[]interface {}` gives, or a field of a map. Only
/// errors tell the difference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    pub(crate) is_interface: bool,
}

impl Cell {
    /// Puts an element of a map or slice into its place.
    fn element(value: Value, element: Option<Type>) -> Self {
        Self {
            is_interface: element == Some(Type::ANY),
            value,
        }
    }

    /// Returns the type that Go sees, as it prints it.
    fn type_name(&self) -> &'static str {
        match self.value.type_() {
            Some(type_) if !self.is_interface => type_.name(),
            _ => Type::ANY.name(),
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self {
            value,
            is_interface: false,
        }
    }
}

struct Variable {
    symbol: u32,
    cell: Cell,
}

/// How walking goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// One execution: of a template and of those that it calls by `template`.
pub(crate) struct Exec<'a> {
    context: Context<'a>,
    /// The template that is executed.
    tree: &'a Tree,
    /// Where Go thinks that it is, for errors.
    node: NodeRef<'a>,
    out: Vec<u8>,
    /// The variables of all templates that are being executed; those of this one start at `frame`.
    variables: Vec<Variable>,
    frame: usize,
    depth: u32,
}

impl<'a> Exec<'a> {
    fn walk_list(&mut self, dot: &Cell, list: &'a List) -> Result<Flow, Error> {
        for node in &list.nodes {
            match self.walk(dot, node)? {
                Flow::Next => {}
                leave => return Ok(leave),
            }
        }
        Ok(Flow::Next)
    }

    fn walk(&mut self, dot: &Cell, node: &'a Node) -> Result<Flow, Error> {
        self.at(NodeRef::Node(node));
        self.step()?;
        match node {
            Node::Text(span) => {
                let text = self.tree.source_of(*span);
                self.write(text)?;
            }
            Node::Action(pipe) => {
                let value = self.evaluate_pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.print(node, &value)?;
                }
            }
            Node::If(branch) => return self.walk_branch(dot, branch, false),
            Node::With(branch) => return self.walk_branch(dot, branch, true),
            Node::Range(branch) => return self.walk_range(dot, node, branch),
            Node::Template(invocation) => self.walk_template(dot, invocation)?,
            Node::Break(_) => return Ok(Flow::Break),
            Node::Continue(_) => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn walk_branch(&mut self, dot: &Cell, branch: &'a Branch, sets_dot: bool) -> Result<Flow, Error> {
        let mark = self.variables.len();
        let value = self.evaluate_pipe(dot, &branch.pipe)?;
        let flow = if is_true(&value) {
            if sets_dot {
                self.walk_list(&Cell::from(value), &branch.list)
            } else {
                self.walk_list(dot, &branch.list)
            }
        } else if let Some(list) = &branch.else_list {
            self.walk_list(dot, list)
        } else {
            Ok(Flow::Next)
        };
        self.variables.truncate(mark);
        flow
    }

    fn walk_template(&mut self, dot: &Cell, invocation: &'a Invocation) -> Result<(), Error> {
        self.at(NodeRef::Invocation(invocation));
        let Some(tree) = self.context.layers.find(&invocation.name) else {
            return Err(self.error(format!("template {} not defined", quoted(&invocation.name))));
        };
        if self.depth == MAX_DEPTH {
            return Err(self.too_deep());
        }
        let dot = match &invocation.pipe {
            Some(pipe) => Cell::from(self.evaluate_pipe(dot, pipe)?),
            None => Cell::default(),
        };
        self.walk_called(&dot, tree)
    }

    /// Walks another template, which sees no variables of this one.
    fn walk_called(&mut self, dot: &Cell, tree: &'a Tree) -> Result<(), Error> {
        let (caller, node, frame) = (self.tree, self.node, self.frame);
        self.tree = tree;
        self.frame = self.variables.len();
        self.depth += 1;
        self.push(crate::ast::Variable::ROOT, dot.clone());
        self.at(NodeRef::List(tree.root()));
        self.walk_list(dot, tree.root())?;
        self.variables.truncate(self.frame);
        self.depth -= 1;
        (self.tree, self.node, self.frame) = (caller, node, frame);
        Ok(())
    }

    /// Records where the execution is, as Go does for errors.
    #[inline]
    fn at(&mut self, node: NodeRef<'a>) {
        self.node = node;
    }

    #[inline]
    fn step(&mut self) -> Result<(), Error> {
        if self.context.work.floor.is_reached() {
            return Err(self.too_deep());
        }
        self.context.work.step()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.context.work.charge(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn push(&mut self, symbol: u32, cell: Cell) {
        self.variables.push(Variable { symbol, cell });
    }

    fn variable(&mut self, variable: &crate::ast::Variable) -> Result<&mut Cell, Error> {
        let frame = self.frame;
        let found = self.variables[frame..]
            .iter()
            .rposition(|known| known.symbol == variable.symbol);
        match found {
            Some(index) => Ok(&mut self.variables[frame + index].cell),
            None => Err(self.error(format!("undefined variable: {}", variable.name))),
        }
    }

    /// Makes an error at the current node, as Go's `errorf` does.
    #[cold]
    fn error(&self, message: impl AsRef<str>) -> Error {
        self.error_of(ErrorKind::Exec, message.as_ref())
    }

    #[cold]
    fn too_deep(&self) -> Error {
        let message = format!("exceeded maximum template depth ({MAX_DEPTH})");
        self.error_of(ErrorKind::Limit, &message)
    }

    fn error_of(&self, kind: ErrorKind, message: &str) -> Error {
        Error::from_parts(kind, self.place(message))
    }

    /// Puts the current place before a message.
    fn place(&self, message: &str) -> String {
        let (line, column) = self.tree.location(self.node.position());
        format!(
            "template: {}:{line}:{column}: executing {} at <{}>: {message}",
            self.tree.parse_name(),
            quoted(self.tree.name()),
            self.text_of(self.node),
        )
    }

    /// Returns a node as errors show it.
    fn text_of(&self, node: NodeRef<'a>) -> String {
        go_text::valid_text(&self.tree.node_text(node)).into_owned()
    }
}
