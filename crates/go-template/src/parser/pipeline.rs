//! Parses pipelines: declarations, commands, operands, and what stands in parentheses.

use super::{Parser, span};
use crate::Error;
use crate::ast::{Chain, Command, Field, Identifier, Operand, Pipe, Position, Text, Variable};
use crate::lexer::{Item, Kind};
use crate::value::Str;
use go_text::quote::unquote;

/// Go's limit for parentheses within parentheses.
const MAX_STACK_DEPTH: usize = 10_000;

/// A pipeline whose end was not yet seen.
struct OpenPipe {
    position: Position,
    is_assign: bool,
    variables: Vec<Variable>,
    commands: Vec<Command>,
    /// The command that operands go to.
    command: Option<OpenCommand>,
    /// Name of the pipeline in errors.
    context: &'static str,
    /// Item that ends it.
    end: Kind,
}

/// A command whose end was not yet seen.
struct OpenCommand {
    position: Position,
    operands: Vec<Operand>,
}

impl OpenPipe {
    fn close(self) -> Pipe {
        Pipe {
            position: self.position,
            is_assign: self.is_assign,
            variables: self.variables.into(),
            commands: self.commands.into(),
        }
    }
}

/// Term that the parser finds where an operand may be.
enum Term {
    /// A whole term.
    Operand(Operand),
    /// A left parenthesis.
    Parenthesis,
    /// Something else, which was pushed back.
    Nothing,
}

impl Parser<'_> {
    /// Parses a pipeline up to the right delimiter, which is taken.
    pub(super) fn parse_pipeline(&mut self, context: &'static str) -> Result<Pipe, Error> {
        let mut open = vec![self.open_pipeline(context, Kind::RightDelimiter)?];
        loop {
            let depth = open.len();
            let innermost = open
                .last_mut()
                .expect("the outermost pipeline returns when it ends");
            if innermost.command.is_none() && self.ends_pipeline(innermost)? {
                let pipe = open.pop().expect("it is the innermost").close();
                let Some(outer) = open.last_mut() else {
                    return Ok(pipe);
                };
                self.take_operand(outer, Some(Operand::Pipe(Box::new(pipe))))?;
                continue;
            }
            self.peek_non_space();
            match self.parse_term()? {
                Term::Parenthesis if depth > MAX_STACK_DEPTH => {
                    return Err(self.error("max expression depth exceeded"));
                }
                Term::Parenthesis => {
                    open.push(self.open_pipeline("parenthesized pipeline", Kind::RightParenthesis)?);
                    self.current.note_depth(depth);
                }
                Term::Operand(operand) => self.take_operand(innermost, Some(operand))?,
                Term::Nothing => self.take_operand(innermost, None)?,
            }
        }
    }

    /// Reads the declarations that a pipeline may start with.
    fn open_pipeline(&mut self, context: &'static str, end: Kind) -> Result<OpenPipe, Error> {
        let position = Position(self.peek_non_space().start);
        let mut open = OpenPipe {
            position,
            is_assign: false,
            variables: Vec::new(),
            commands: Vec::with_capacity(1),
            command: None,
            context,
            end,
        };
        while self.parse_declaration(&mut open)? {}
        Ok(open)
    }

    /// Reads a variable that the pipeline declares or assigns; returns whether another may follow.
    fn parse_declaration(&mut self, open: &mut OpenPipe) -> Result<bool, Error> {
        let variable = self.peek_non_space();
        if variable.kind != Kind::Variable {
            return Ok(false);
        }
        self.next();
        // In `$x foo` only `foo` tells that `$x` is an argument. The space is pushed back with it.
        let behind = self.peek();
        let next = self.peek_non_space();
        if matches!(next.kind, Kind::Assign | Kind::Declare) {
            open.is_assign = next.kind == Kind::Assign;
            self.next_non_space();
            self.declare(open, variable);
            return Ok(false);
        }
        if next.kind == Kind::Character && self.text(next) == b"," {
            self.next_non_space();
            self.declare(open, variable);
            return self.parse_second_variable(open);
        }
        if behind.kind == Kind::Space {
            self.push_back_three(variable, behind);
        } else {
            self.push_back_two(variable);
        }
        Ok(false)
    }

    /// Checks what follows the comma behind a variable.
    fn parse_second_variable(&mut self, open: &OpenPipe) -> Result<bool, Error> {
        let context = open.context;
        if context == "range" && open.variables.len() < 2 {
            return match self.peek_non_space().kind {
                Kind::Variable | Kind::RightDelimiter | Kind::RightParenthesis => Ok(true),
                _ => Err(self.error("range can only initialize variables")),
            };
        }
        Err(self.error(&format!("too many declarations in {context}")))
    }

    fn declare(&mut self, open: &mut OpenPipe, item: Item) {
        let name = self.word(item);
        let symbol = self.current.scope.declare(&name);
        open.variables.push(Variable {
            position: Position(item.start),
            name,
            symbol,
            fields: Box::default(),
        });
    }

    /// Takes the end of a pipeline, or starts its next command.
    fn ends_pipeline(&mut self, open: &mut OpenPipe) -> Result<bool, Error> {
        let token = self.next_non_space();
        if token.kind == open.end {
            self.check_pipeline(open)?;
            return Ok(true);
        }
        if !starts_operand(token.kind) {
            return Err(self.unexpected(token, open.context));
        }
        self.push_back();
        open.command = Some(OpenCommand {
            position: Position(token.start),
            operands: Vec::with_capacity(1),
        });
        Ok(false)
    }

    /// Only the first command may be a constant: no other can take the value before it.
    fn check_pipeline(&self, open: &OpenPipe) -> Result<(), Error> {
        if open.commands.is_empty() {
            return Err(self.error(&format!("missing value for {}", open.context)));
        }
        let stage = open
            .commands
            .iter()
            .skip(1)
            .position(|command| command.operands.first().is_some_and(is_constant));
        match stage {
            Some(stage) => {
                Err(self.error(&format!("non executable command in pipeline stage {}", stage + 2)))
            }
            None => Ok(()),
        }
    }

    /// Adds an operand, with the fields behind it, to the open command, and takes what separates it from the next.
    fn take_operand(&mut self, open: &mut OpenPipe, operand: Option<Operand>) -> Result<(), Error> {
        let mut command = open.command.take().expect("operands are read for a command");
        if let Some(operand) = operand {
            let operand = self.parse_fields(operand)?;
            command.operands.push(operand);
        }
        let token = self.next();
        match token.kind {
            Kind::Space => {
                open.command = Some(command);
                return Ok(());
            }
            Kind::RightDelimiter | Kind::RightParenthesis => self.push_back(),
            Kind::Pipe => {}
            _ => return Err(self.unexpected(token, "operand")),
        }
        if command.operands.is_empty() {
            return Err(self.error("empty command"));
        }
        open.commands.push(Command {
            position: command.position,
            operands: command.operands.into(),
        });
        Ok(())
    }

    /// Adds the fields that directly follow a term.
    fn parse_fields(&mut self, operand: Operand) -> Result<Operand, Error> {
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(operand);
        }
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            let item = self.next();
            fields.push(self.field_name(item));
        }
        // As in Go the whole then stands where its first added field does.
        let position = Position(first.start);
        match operand {
            Operand::Field(field) => {
                let names = field.names.into_iter().chain(fields).collect();
                Ok(Operand::Field(Field { position, names }))
            }
            Operand::Variable(variable) => Ok(Operand::Variable(Variable {
                position,
                fields: fields.into(),
                ..variable
            })),
            operand if is_constant(&operand) => {
                let text = self.constant_text(&operand);
                Err(self.error(&format!("unexpected . after term {}", super::quoted(text))))
            }
            operand => Ok(Operand::Chain(Box::new(Chain {
                position,
                operand,
                fields: fields.into(),
            }))),
        }
    }

    fn parse_term(&mut self) -> Result<Term, Error> {
        let token = self.next_non_space();
        let position = Position(token.start);
        let operand = match token.kind {
            Kind::Identifier => self.function(token)?,
            Kind::Dot => Operand::Dot(position),
            Kind::Nil => Operand::Nil(position),
            Kind::Variable => self.variable(token)?,
            Kind::Field => Operand::Field(Field {
                position,
                names: Box::new([self.field_name(token)]),
            }),
            Kind::Bool => Operand::Bool(position, self.text(token) == b"true"),
            Kind::CharacterConstant | Kind::Complex | Kind::Number => {
                Operand::Number(Box::new(self.number(token)?))
            }
            Kind::LeftParenthesis => return Ok(Term::Parenthesis),
            Kind::String | Kind::RawString => self.string(token)?,
            _ => {
                self.push_back();
                return Ok(Term::Nothing);
            }
        };
        Ok(Term::Operand(operand))
    }

    fn function(&self, token: Item) -> Result<Operand, Error> {
        let name = self.word(token);
        if !(self.is_function)(&name) {
            let name = super::quoted(name.as_bytes());
            return Err(self.error(&format!("function {name} not defined")));
        }
        let position = Position(token.start);
        Ok(Operand::Function(Identifier { position, name }))
    }

    fn variable(&self, token: Item) -> Result<Operand, Error> {
        let name = self.word(token);
        let Some(symbol) = self.current.scope.find(&name) else {
            let name = super::quoted(name.as_bytes());
            return Err(self.error(&format!("undefined variable {name}")));
        };
        Ok(Operand::Variable(Variable {
            position: Position(token.start),
            name,
            symbol,
            fields: Box::default(),
        }))
    }

    fn string(&self, token: Item) -> Result<Operand, Error> {
        let value = unquote(self.text(token)).map_err(|error| self.error(&error.to_string()))?;
        Ok(Operand::Text(Text {
            quoted: span(token),
            value: Str::from(value.as_ref()),
        }))
    }

    /// Returns how a constant is spelled.
    fn constant_text(&self, operand: &Operand) -> &[u8] {
        let span = match operand {
            Operand::Nil(_) => return b"nil",
            Operand::Bool(_, true) => return b"true",
            Operand::Bool(_, false) => return b"false",
            Operand::Number(number) => number.span,
            Operand::Text(text) => text.quoted,
            _ => return b".",
        };
        &self.source[span.start.0 as usize..span.end.0 as usize]
    }

    fn field_name(&self, item: Item) -> Box<str> {
        let mut name = self.word(item).into_string();
        name.remove(0); // the point
        name.into_boxed_str()
    }

    /// Returns the text of a word, of which the lexer has read every character.
    fn word(&self, item: Item) -> Box<str> {
        go_text::valid_text(self.text(item)).into()
    }
}

fn starts_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharacterConstant
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawString
            | Kind::String
            | Kind::Variable
            | Kind::LeftParenthesis
    )
}

/// Returns whether an operand can be neither called nor have fields.
fn is_constant(operand: &Operand) -> bool {
    matches!(
        operand,
        Operand::Bool(..) | Operand::Dot(_) | Operand::Nil(_) | Operand::Number(_) | Operand::Text(_)
    )
}
