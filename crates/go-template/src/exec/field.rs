//! Finds fields: methods, fields of structs, entries of maps.

use crate::ast::{NodeRef, Operand};
use crate::{Error, Map, MissingKey, Object, Type, Value};

use super::call::Call;
use super::{Cell, Exec, argument, quoted};

impl<'a> Exec<'a> {
    /// Evaluates `.X.Y.Z`, of which the last may be a method with arguments. `dot` is for those; `receiver` has the fields.
    pub(super) fn evaluate_fields(
        &mut self,
        dot: &Cell,
        receiver: &Cell,
        node: NodeRef<'a>,
        names: &'a [Box<str>],
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let Some((name, before)) = names.split_last() else {
            return Ok(receiver.clone());
        };
        let mut walked = None;
        for name in before {
            let receiver = walked.as_ref().unwrap_or(receiver);
            walked = Some(self.evaluate_field(dot, receiver, node, name, &[], None)?);
        }
        let receiver = walked.as_ref().unwrap_or(receiver);
        self.evaluate_field(dot, receiver, node, name, arguments, last)
    }

    fn evaluate_field(
        &mut self,
        dot: &Cell,
        receiver: &Cell,
        node: NodeRef<'a>,
        name: &'a str,
        arguments: &'a [Operand],
        last: Option<Value>,
    ) -> Result<Cell, Error> {
        let Some(type_) = receiver.value.type_() else {
            return self.field_of_nothing(name);
        };
        if matches!(receiver.value, Value::Nil) {
            return Err(self.nil_pointer(receiver, name));
        }
        if let Some(method) = type_.method(name) {
            let call = Call {
                function: &method,
                receiver: Some(&receiver.value),
                builtin: false,
                name,
                node,
            };
            return Ok(Cell::from(self.call(dot, &call, arguments, last)?));
        }
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &receiver.value {
            Value::Map(map) => return self.entry(map, name, has_arguments),
            Value::Object(object) => {
                if let Some(value) = self.struct_field(&**object, receiver, name, has_arguments)? {
                    return Ok(Cell::from(value));
                }
            }
            _ => {}
        }
        Err(self.error(format!(
            "can't evaluate field {name} in type {}",
            receiver.type_name()
        )))
    }

    fn field_of_nothing(&self, name: &str) -> Result<Cell, Error> {
        if self.context.work.missing_key == MissingKey::Error {
            let name = quoted(name.as_bytes());
            return Err(self.error(format!("nil data; no entry for key {name}")));
        }
        Ok(Cell::default())
    }

    fn nil_pointer(&self, receiver: &Cell, name: &str) -> Error {
        self.error(format!("nil pointer evaluating {}.{name}", receiver.type_name()))
    }

    fn struct_field(
        &self,
        object: &dyn Object,
        receiver: &Cell,
        name: &str,
        has_arguments: bool,
    ) -> Result<Option<Value>, Error> {
        let field = object.field(name);
        if field.is_some() && object.is_nil() {
            return Err(self.nil_pointer(receiver, name));
        }
        if field.is_some() && has_arguments {
            return Err(self.error(format!("{name} has arguments but cannot be invoked as function")));
        }
        Ok(field)
    }

    fn entry(&self, map: &Map, name: &str, has_arguments: bool) -> Result<Cell, Error> {
        if has_arguments {
            return Err(self.error(format!("{name} is not a method but has arguments")));
        }
        let element = map.type_().element();
        if let Some(value) = map.get(name) {
            return Ok(Cell::element(value, element));
        }
        match self.context.work.missing_key {
            MissingKey::Invalid => Ok(Cell::default()),
            MissingKey::Zero => {
                let zero = argument::zero_of(element.unwrap_or(Type::ANY));
                Ok(Cell::element(zero, element))
            }
            MissingKey::Error => {
                let name = quoted(name.as_bytes());
                Err(self.error(format!("map has no entry for key {name}")))
            }
        }
    }
}
