//! Evaluates pipelines and commands.

use crate::ast::{Chain, Command, Field, Ideal, NodeRef, Number, Operand, Pipe, Variable};
use crate::{Error, Value};

use super::{Cell, Exec};

impl<'a> Exec<'a> {
    /// Evaluates a pipeline, and declares or assigns its variables; the caller takes declared ones away in time.
    ///
    /// The value is never a nil interface: Go looks into interfaces here, and finds nothing in such a one.
    pub(super) fn evaluate_pipe(&mut self, dot: &Cell, pipe: &'a Pipe) -> Result<Value, Error> {
        self.at(NodeRef::Pipe(pipe));
        self.step()?;
        let mut last = None;
        for command in &pipe.commands {
            let value = match self.evaluate_command(dot, command, last)?.value {
                Value::Nil => Value::Invalid,
                value => value,
            };
            last = Some(value);
        }
        let value = last.unwrap_or_default();
        for variable in &pipe.variables {
            let cell = Cell::from(value.clone());
            if pipe.is_assign {
                *self.variable(variable)? = cell;
            } else {
                self.push(variable.symbol, cell);
            }
        }
        Ok(value)
    }

    fn evaluate_command(
        &mut self,
        dot: &Cell,
        command: &'a Command,
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let Some((first, arguments)) = command.operands.split_first() else {
            return Ok(Cell::default());
        };
        match first {
            Operand::Field(field) => return self.evaluate_field_node(dot, field, first, arguments, last),
            Operand::Chain(chain) => return self.evaluate_chain(dot, chain, arguments, last),
            Operand::Variable(variable) => {
                return self.evaluate_variable(dot, variable, first, arguments, last);
            }
            Operand::Function(identifier) => {
                let node = NodeRef::Command(command);
                let value = self.evaluate_function(dot, identifier, first, node, arguments, last)?;
                return Ok(Cell::from(value));
            }
            Operand::Pipe(pipe) => {
                self.refuse_arguments(first, arguments, last.as_ref())?;
                return Ok(Cell::from(self.evaluate_pipe(dot, pipe)?));
            }
            _ => {}
        }
        self.at(NodeRef::Operand(first));
        self.refuse_arguments(first, arguments, last.as_ref())?;
        match first {
            Operand::Bool(_, value) => Ok(Value::Bool(*value).into()),
            Operand::Dot(_) => Ok(dot.clone()),
            Operand::Number(number) => Ok(self.ideal(number)?.into()),
            Operand::Text(text) => Ok(Value::String(text.value.clone()).into()),
            _ => Err(self.error("nil is not a command")),
        }
    }

    fn refuse_arguments(
        &self,
        first: &'a Operand,
        arguments: &[Operand],
        last: Option<&Value>,
    ) -> Result<(), Error> {
        if arguments.is_empty() && last.is_none() {
            return Ok(());
        }
        let text = self.text_of(NodeRef::Operand(first));
        Err(self.error(format!("can't give argument to non-function {text}")))
    }

    /// Gives a number the type that its spelling tells.
    pub(super) fn ideal(&self, number: &'a Number) -> Result<Value, Error> {
        match number.ideal {
            Ideal::Int(number) => Ok(Value::int(number)),
            Ideal::Float(number) => Ok(Value::Float(number)),
            Ideal::Complex(real, imaginary) => Ok(Value::Complex(real, imaginary)),
            Ideal::Overflow => {
                let text = go_text::valid_text(self.tree.source_of(number.span)).into_owned();
                Err(self.error(format!("{text} overflows int")))
            }
        }
    }

    pub(super) fn evaluate_field_node(
        &mut self,
        dot: &Cell,
        field: &'a Field,
        operand: &'a Operand,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let node = NodeRef::Operand(operand);
        self.at(node);
        self.evaluate_fields(dot, dot, node, &field.names, arguments, last)
    }

    pub(super) fn evaluate_chain(
        &mut self,
        dot: &Cell,
        chain: &'a Chain,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let node = NodeRef::Chain(chain);
        self.at(node);
        let receiver = self.evaluate_untyped(dot, &chain.operand)?;
        self.evaluate_fields(dot, &receiver, node, &chain.fields, arguments, last)
    }

    pub(super) fn evaluate_variable(
        &mut self,
        dot: &Cell,
        variable: &'a Variable,
        operand: &'a Operand,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let node = NodeRef::Operand(operand);
        self.at(node);
        let cell = self.variable(variable)?.clone();
        if variable.fields.is_empty() {
            self.refuse_arguments(operand, arguments, last.as_ref())?;
            return Ok(cell);
        }
        self.evaluate_fields(dot, &cell, node, &variable.fields, arguments, last)
    }
}
