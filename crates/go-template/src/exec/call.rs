//! Calls functions and methods.

use crate::ast::{Identifier, NodeRef, Operand};
use crate::{Error, ErrorKind, Function, Type, Value, builtins};

use super::{Cell, Exec, is_true, quoted};

/// A call and its position.
pub(super) struct Call<'c, 'a> {
    pub(super) function: &'c Function,
    pub(super) receiver: Option<&'c Value>,
    /// True if the function is one of Go's own, of which some are special.
    pub(super) builtin: bool,
    pub(super) name: &'a str,
    /// Node that an error of the function itself points to.
    pub(super) node: NodeRef<'a>,
}

impl<'a> Exec<'a> {
    pub(super) fn evaluate_function(
        &mut self,
        dot: &Cell,
        identifier: &'a Identifier,
        operand: &'a Operand,
        node: NodeRef<'a>,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Value, Error> {
        self.at(NodeRef::Operand(operand));
        let name = &*identifier.name;
        let (function, builtin) = match self.context.functions.get(name) {
            Some(function) => (function, false),
            None => match builtins::find(name) {
                Some(function) => (function, true),
                None => {
                    let name = quoted(name.as_bytes());
                    return Err(self.error(format!("{name} is not a defined function")));
                }
            },
        };
        let call = Call {
            function,
            receiver: None,
            builtin,
            name,
            node,
        };
        self.call(dot, &call, arguments, last)
    }

    /// Evaluates the arguments and calls the function: Go's `evalCall`.
    pub(super) fn call(
        &mut self,
        dot: &Cell,
        call: &Call<'_, 'a>,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Value, Error> {
        self.check_count(call, arguments.len(), last.is_some())?;
        if call.builtin && matches!(call.name, "and" | "or") {
            return self.and_or(dot, call.name == "or", arguments, last);
        }
        let mut values = Vec::with_capacity(arguments.len() + 2);
        values.extend(call.receiver.cloned());
        for (index, argument) in arguments.iter().enumerate() {
            let parameter = parameter(call.function, index);
            let argument = self.evaluate_argument(dot, parameter, argument)?;
            // Of all functions `slice` alone does not look into interfaces, and so refuses them as indexes.
            let is_hidden = argument.is_interface && index > 0 && call.builtin && call.name == "slice";
            values.push(if is_hidden { Value::Nil } else { argument.value });
        }
        if let Some(last) = last {
            let parameter = parameter(call.function, arguments.len());
            values.push(self.validate(last, parameter)?);
        }
        self.context.work.check_end()?;
        let before = self.context.work.made();
        let result = if call.builtin && call.name == "call" {
            let callee = match arguments.first() {
                Some(callee) => self.text_of(NodeRef::Operand(callee)),
                None => builtins::reflect_text(&values[0]),
            };
            builtins::call(&mut self.context, &callee, &values)
        } else {
            call.function.call(&mut self.context, &values)
        };
        let result = result.and_then(|value| {
            self.context.work.charge_made(&value, before)?;
            Ok(value)
        });
        result.map_err(|cause| {
            self.at(call.node);
            let words = self.place(&format!("error calling {}: ", call.name));
            Error::wrap(ErrorKind::Exec, words, cause)
        })
    }

    fn check_count(&self, call: &Call<'_, 'a>, arguments: usize, has_last: bool) -> Result<(), Error> {
        let fixed = call.function.parameters().len();
        let given = arguments + usize::from(has_last);
        let name = call.name;
        if call.function.rest().is_some() {
            if given < fixed {
                return Err(self.error(format!(
                    "wrong number of args for {name}: want at least {fixed} got {arguments}"
                )));
            }
        } else if given != fixed {
            return Err(self.error(format!(
                "wrong number of args for {name}: want {fixed} got {given}"
            )));
        }
        Ok(())
    }

    /// Evaluates arguments until one decides.
    fn and_or(
        &mut self,
        dot: &Cell,
        is_or: bool,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Value, Error> {
        let mut value = Value::Invalid;
        for argument in arguments {
            value = self.evaluate_argument(dot, Type::REFLECT_VALUE, argument)?.value;
            if is_true(&value) == is_or {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }
}

/// Returns the type of an argument by its place, which is within the count that the function takes.
fn parameter(function: &Function, index: usize) -> Type {
    function
        .parameters()
        .get(index)
        .copied()
        .or(function.rest())
        .unwrap_or(Type::ANY)
}
