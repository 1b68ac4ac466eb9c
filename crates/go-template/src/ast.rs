//! Tree of a parsed template: the nodes of `text/template/parse` as plain data.
//!
//! The parser makes a [`Tree`] for the file and one for each `define` and `block` in it; execution walks them. Trees never
//! change, hold no values and are [`Send`] and [`Sync`]: a chart is parsed once and rendered many times, on any thread.
//!
//! What error messages need is kept small. A node knows its [`Position`]; [`Tree::location`] turns that into the line and
//! column that Go prints, and [`Tree::node_text`] prints the node as Go's `Node.String()` does. Text between actions and
//! the spelling of constants are [`Span`]s of the source, which every tree of a file shares; see [`Tree::source_of`].
//! Constants that become values hold a [`Str`], so that giving one out copies nothing.
//!
//! No function here recurses with the depth of a template, nor does dropping one.

mod print;
mod teardown;

use std::fmt;

use crate::value::Str;

/// A byte offset in the source of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u32);

/// A piece of the source of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it starts.
    pub start: Position,
    /// The offset behind its last byte.
    pub end: Position,
}

/// One template: a file, a `define` or a `block`.
pub struct Tree {
    pub(crate) name: Str,
    pub(crate) parse_name: Str,
    pub(crate) source: Str,
    pub(crate) root: List,
    pub(crate) is_empty: bool,
    pub(crate) depth: u32,
}

impl Tree {
    /// Returns the name by which `template` and `include` find it.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// Returns the name of the file that it stands in, which errors print.
    pub fn parse_name(&self) -> &Str {
        &self.parse_name
    }

    /// Returns what to execute.
    pub fn root(&self) -> &List {
        &self.root
    }

    /// Returns whether it holds only space, comments and definitions: such a tree never replaces another (Go's
    /// `IsEmptyTree`).
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns how deep lists and parenthesised pipelines nest, at least 1. Execution that recurses once for each level
    /// knows from this, before it starts, how much stack a tree needs.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the bytes of a span of this tree.
    pub fn source_of(&self, span: Span) -> &[u8] {
        &self.source[span.start.0 as usize..span.end.0 as usize]
    }

    /// Returns line (from 1) and column (bytes, from 0) as Go's `ErrorContext` counts them.
    pub fn location(&self, position: Position) -> (usize, usize) {
        let before = &self.source[..position.0 as usize];
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        (lines + 1, before.len() - line_start)
    }

    /// Prints a node of this tree as Go's `Node.String()` does, such as `.Values.a` or `{{if .x}}a{{end}}`.
    pub fn node_text(&self, node: NodeRef<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        print::write(self, node, &mut text);
        text
    }
}

/// The source that the tree stands for, as Go's `Tree.Root.String()` prints it.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(
            &self.node_text(NodeRef::List(&self.root)),
        ))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("name", &self.name)
            .field("root", &self.to_string())
            .finish()
    }
}

/// Nodes in the order of the source.
pub struct List {
    /// Where the first node starts.
    pub position: Position,
    /// The nodes.
    pub nodes: Box<[Node]>,
}

/// Text, an action or a control structure.
pub enum Node {
    /// Text between actions, after trimming.
    Text(Span),
    /// `{{ pipeline }}`.
    Action(Pipe),
    /// `{{if}}`. What follows `{{else if}}` is an `else_list` that holds one `If`.
    If(Box<Branch>),
    /// `{{range}}`.
    Range(Box<Branch>),
    /// `{{with}}`. What follows `{{else with}}` is an `else_list` that holds one `With`.
    With(Box<Branch>),
    /// `{{template}}`, and what `{{block}}` leaves in its place.
    Template(Box<Invocation>),
    /// `{{break}}`, always within a range.
    Break(Position),
    /// `{{continue}}`, always within a range.
    Continue(Position),
}

/// Common parts of `if`, `range` and `with`. Its position is the pipeline's.
pub struct Branch {
    /// The condition. Only that of a range may declare two variables.
    pub pipe: Pipe,
    /// List to execute if the value is not empty.
    pub list: List,
    /// List to execute if it is empty.
    pub else_list: Option<List>,
}

/// A call of another template.
pub struct Invocation {
    /// Where the name starts.
    pub position: Position,
    /// The name of the template.
    pub name: Str,
    /// Pipeline whose value becomes dot; nil where it is absent.
    pub pipe: Option<Pipe>,
}

/// Commands, of which each gets the value of the one before it as its last argument.
pub struct Pipe {
    /// Where its first token starts.
    pub position: Position,
    /// True if the variables are assigned (`=`), not declared (`:=`).
    pub is_assign: bool,
    /// The variables that get the value: none, one, or two in a range (index first). None has fields that Go would look
    /// at: execution uses the name only.
    pub variables: Box<[Variable]>,
    /// The commands, at least one.
    pub commands: Box<[Command]>,
}

/// An operand to evaluate, or a function or method with its arguments.
pub struct Command {
    /// Where its first operand starts.
    pub position: Position,
    /// The operands, at least one.
    pub operands: Box<[Operand]>,
}

/// A word of a command.
pub enum Operand {
    /// A function.
    Function(Identifier),
    /// `.`
    Dot(Position),
    /// `nil`
    Nil(Position),
    /// `$x`, `$x.a.b`
    Variable(Variable),
    /// `.a.b`
    Field(Field),
    /// `(pipeline).a.b`, `function.a.b`
    Chain(Box<Chain>),
    /// `true`, `false`
    Bool(Position, bool),
    /// A number or a character.
    Number(Box<Number>),
    /// A quoted or raw string.
    Text(Text),
    /// `(pipeline)`
    Pipe(Box<Pipe>),
}

/// The name of a function.
pub struct Identifier {
    /// Where it starts.
    pub position: Position,
    /// The name, known when the template was parsed.
    pub name: Box<str>,
}

/// A variable, perhaps with fields.
pub struct Variable {
    /// Where it starts; where fields follow, the start of the first field (as in Go).
    pub position: Position,
    /// The name with its dollar sign.
    pub name: Box<str>,
    /// A number for the name, the same wherever the tree uses that name. `$` is [`Variable::ROOT`].
    pub symbol: u32,
    /// The fields, without dots.
    pub fields: Box<[Box<str>]>,
}

impl Variable {
    /// The symbol of `$`.
    pub const ROOT: u32 = 0;
}

/// Fields of dot.
pub struct Field {
    /// Where it starts; where there are several names, the start of the second (as in Go).
    pub position: Position,
    /// The names without dots, at least one.
    pub names: Box<[Box<str>]>,
}

/// Fields of a function's or pipeline's value.
pub struct Chain {
    /// Where the first field starts.
    pub position: Position,
    /// A function, a pipeline, or nothing else.
    pub operand: Operand,
    /// The fields without dots, at least one.
    pub fields: Box<[Box<str>]>,
}

/// A string constant.
pub struct Text {
    /// How it was written, with its quotes.
    pub quoted: Span,
    /// Its value.
    pub value: Str,
}

/// A number under all types that can hold it, which is how Go gets the behaviour of its untyped constants.
pub struct Number {
    /// How it was written.
    pub span: Span,
    /// Its value as a signed integer.
    pub int: Option<i64>,
    /// Its value as an unsigned integer.
    pub uint: Option<u64>,
    /// Its value as a float.
    pub float: Option<f64>,
    /// Its real and imaginary part, where it is written as a complex number.
    pub complex: Option<(f64, f64)>,
    /// Its type where no type is asked for.
    pub ideal: Ideal,
}

/// The value of a number where nothing tells its type (Go's `idealConstant`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ideal {
    /// `int`: all integers and characters.
    Int(i64),
    /// `float64`: what is written with a point or an exponent.
    Float(f64),
    /// `complex128`: what ends in `i`.
    Complex(f64, f64),
    /// An integer above `int`'s range: `NUMBER overflows int`.
    Overflow,
}

/// Any node, as errors point to it.
#[derive(Clone, Copy)]
pub enum NodeRef<'t> {
    /// A list.
    List(&'t List),
    /// A node of a list.
    Node(&'t Node),
    /// A pipeline.
    Pipe(&'t Pipe),
    /// A command.
    Command(&'t Command),
    /// An operand.
    Operand(&'t Operand),
    /// A variable.
    Variable(&'t Variable),
    /// Fields of dot.
    Field(&'t Field),
    /// Fields of a value.
    Chain(&'t Chain),
    /// A template call.
    Invocation(&'t Invocation),
}

impl NodeRef<'_> {
    /// Returns where Go says that the node is.
    pub fn position(self) -> Position {
        match self {
            NodeRef::List(list) => list.position,
            NodeRef::Node(node) => node.position(),
            NodeRef::Pipe(pipe) => pipe.position,
            NodeRef::Command(command) => command.position,
            NodeRef::Operand(operand) => operand.position(),
            NodeRef::Variable(variable) => variable.position,
            NodeRef::Field(field) => field.position,
            NodeRef::Chain(chain) => chain.position,
            NodeRef::Invocation(invocation) => invocation.position,
        }
    }
}

impl Node {
    /// Returns where Go says that the node is.
    pub fn position(&self) -> Position {
        match self {
            Node::Text(span) => span.start,
            Node::Action(pipe) => pipe.position,
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => branch.pipe.position,
            Node::Template(invocation) => invocation.position,
            Node::Break(position) | Node::Continue(position) => *position,
        }
    }
}

impl Operand {
    /// Returns where Go says that the node is.
    pub fn position(&self) -> Position {
        match self {
            Operand::Function(identifier) => identifier.position,
            Operand::Dot(position) | Operand::Nil(position) | Operand::Bool(position, _) => *position,
            Operand::Variable(variable) => variable.position,
            Operand::Field(field) => field.position,
            Operand::Chain(chain) => chain.position,
            Operand::Number(number) => number.span.start,
            Operand::Text(text) => text.quoted.start,
            Operand::Pipe(pipe) => pipe.position,
        }
    }
}
