//! Prints nodes as Go's `Node.String()` does, which is what `executing "x" at <…>` shows.

use super::{Branch, Command, Invocation, List, Node, NodeRef, Operand, Pipe, Tree, Variable};
use go_text::quote::quote;

/// Appends the text of a node. What is still to print is kept in a list, not on the stack.
pub(super) fn write(tree: &Tree, node: NodeRef<'_>, out: &mut Vec<u8>) {
    let mut printer = Printer {
        tree,
        out,
        pending: vec![Step::Node(node)],
    };
    while let Some(step) = printer.pending.pop() {
        match step {
            Step::Literal(literal) => printer.out.extend_from_slice(literal.as_bytes()),
            Step::Fields(fields) => printer.fields(fields),
            Step::Node(node) => printer.node(node),
        }
    }
}

enum Step<'t> {
    Literal(&'static str),
    Fields(&'t [Box<str>]),
    Node(NodeRef<'t>),
}

struct Printer<'t, 'o> {
    tree: &'t Tree,
    out: &'o mut Vec<u8>,
    /// The last one is printed next.
    pending: Vec<Step<'t>>,
}

impl<'t> Printer<'t, '_> {
    fn node(&mut self, node: NodeRef<'t>) {
        match node {
            NodeRef::List(list) => self.list(list),
            NodeRef::Node(node) => self.list_node(node),
            NodeRef::Pipe(pipe) => self.pipe(pipe),
            NodeRef::Command(command) => self.command(command),
            NodeRef::Operand(operand) => self.operand(operand),
            NodeRef::Variable(variable) => self.variable(variable),
            NodeRef::Field(field) => self.fields(&field.names),
            NodeRef::Chain(chain) => {
                self.pending.push(Step::Fields(&chain.fields));
                self.argument(&chain.operand);
            }
            NodeRef::Invocation(invocation) => self.invocation(invocation),
        }
    }

    fn list(&mut self, list: &'t List) {
        self.pending.extend(
            list.nodes
                .iter()
                .rev()
                .map(|node| Step::Node(NodeRef::Node(node))),
        );
    }

    fn list_node(&mut self, node: &'t Node) {
        match node {
            Node::Text(span) => self.out.extend_from_slice(self.tree.source_of(*span)),
            Node::Action(pipe) => {
                self.literal("{{");
                self.pending.push(Step::Literal("}}"));
                self.pipe(pipe);
            }
            Node::If(branch) => self.branch("{{if ", branch),
            Node::Range(branch) => self.branch("{{range ", branch),
            Node::With(branch) => self.branch("{{with ", branch),
            Node::Template(invocation) => self.invocation(invocation),
            Node::Break(_) => self.literal("{{break}}"),
            Node::Continue(_) => self.literal("{{continue}}"),
        }
    }

    fn branch(&mut self, start: &'static str, branch: &'t Branch) {
        self.literal(start);
        self.pending.push(Step::Literal("{{end}}"));
        if let Some(list) = &branch.else_list {
            self.pending
                .extend([Step::Node(NodeRef::List(list)), Step::Literal("{{else}}")]);
        }
        self.pending
            .extend([Step::Node(NodeRef::List(&branch.list)), Step::Literal("}}")]);
        self.pipe(&branch.pipe);
    }

    fn invocation(&mut self, invocation: &'t Invocation) {
        self.literal("{{template ");
        quote(&invocation.name, self.out);
        self.pending.push(Step::Literal("}}"));
        if let Some(pipe) = &invocation.pipe {
            self.literal(" ");
            self.pipe(pipe);
        }
    }

    fn pipe(&mut self, pipe: &'t Pipe) {
        for (index, variable) in pipe.variables.iter().enumerate() {
            self.literal(if index > 0 { ", " } else { "" });
            self.variable(variable);
        }
        if !pipe.variables.is_empty() {
            self.literal(if pipe.is_assign { " = " } else { " := " });
        }
        for (index, command) in pipe.commands.iter().enumerate().rev() {
            self.pending.push(Step::Node(NodeRef::Command(command)));
            if index > 0 {
                self.pending.push(Step::Literal(" | "));
            }
        }
    }

    fn command(&mut self, command: &'t Command) {
        for (index, operand) in command.operands.iter().enumerate().rev() {
            self.argument(operand);
            if index > 0 {
                self.pending.push(Step::Literal(" "));
            }
        }
    }

    /// Puts off an operand; a pipeline in parentheses, which are not part of the node itself.
    fn argument(&mut self, operand: &'t Operand) {
        let node = Step::Node(NodeRef::Operand(operand));
        match operand {
            Operand::Pipe(_) => self
                .pending
                .extend([Step::Literal(")"), node, Step::Literal("(")]),
            _ => self.pending.push(node),
        }
    }

    fn operand(&mut self, operand: &'t Operand) {
        match operand {
            Operand::Function(identifier) => self.out.extend_from_slice(identifier.name.as_bytes()),
            Operand::Dot(_) => self.literal("."),
            Operand::Nil(_) => self.literal("nil"),
            Operand::Variable(variable) => self.variable(variable),
            Operand::Field(field) => self.fields(&field.names),
            Operand::Chain(chain) => self.node(NodeRef::Chain(chain)),
            Operand::Bool(_, value) => self.literal(if *value { "true" } else { "false" }),
            Operand::Number(number) => self.out.extend_from_slice(self.tree.source_of(number.span)),
            Operand::Text(text) => self.out.extend_from_slice(self.tree.source_of(text.quoted)),
            Operand::Pipe(pipe) => self.pipe(pipe),
        }
    }

    fn variable(&mut self, variable: &'t Variable) {
        self.out.extend_from_slice(variable.name.as_bytes());
        self.fields(&variable.fields);
    }

    fn fields(&mut self, fields: &[Box<str>]) {
        for field in fields {
            self.out.push(b'.');
            self.out.extend_from_slice(field.as_bytes());
        }
    }

    fn literal(&mut self, literal: &'static str) {
        self.out.extend_from_slice(literal.as_bytes());
    }
}
