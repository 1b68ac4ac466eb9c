//! Evaluates arguments for parameters of a type, and checks what came out.

use crate::ast::{NodeRef, Number, Operand};
use crate::{Error, Kind, List, Map, Str, Type, Value};

use super::{Cell, Exec};

impl<'a> Exec<'a> {
    /// Evaluates an operand for a parameter: Go's `evalArg`. Constants take the parameter's type where they can.
    pub(super) fn evaluate_argument(
        &mut self,
        dot: &Cell,
        parameter: Type,
        operand: &'a Operand,
    ) -> Result<Cell, Error> {
        self.at(NodeRef::Operand(operand));
        match operand {
            Operand::Nil(_) => match nil_of(parameter) {
                Some(nil) => Ok(nil.into()),
                None => Err(self.error(format!("cannot assign nil to {parameter}"))),
            },
            Operand::Bool(..) | Operand::Number(_) | Operand::Text(_) => {
                Ok(self.constant(operand, parameter)?.into())
            }
            _ => {
                let Cell { value, is_interface } = self.evaluate_untyped(dot, operand)?;
                let value = self.validate(value, parameter)?;
                Ok(Cell { value, is_interface })
            }
        }
    }

    /// Evaluates an operand where no type is asked for.
    pub(super) fn evaluate_untyped(&mut self, dot: &Cell, operand: &'a Operand) -> Result<Cell, Error> {
        self.at(NodeRef::Operand(operand));
        match operand {
            Operand::Dot(_) => Ok(dot.clone()),
            Operand::Field(field) => self.evaluate_field_node(dot, field, operand, &[], None),
            Operand::Variable(variable) => self.evaluate_variable(dot, variable, operand, &[], None),
            Operand::Pipe(pipe) => Ok(self.evaluate_pipe(dot, pipe)?.into()),
            Operand::Function(identifier) => {
                let node = NodeRef::Operand(operand);
                let value = self.evaluate_function(dot, identifier, operand, node, &[], None)?;
                Ok(value.into())
            }
            Operand::Chain(chain) => self.evaluate_chain(dot, chain, &[], None),
            Operand::Nil(_) => Ok(Cell::default()),
            constant => Ok(self.constant(constant, Type::ANY)?.into()),
        }
    }

    fn constant(&self, operand: &'a Operand, parameter: Type) -> Result<Value, Error> {
        let kind = parameter.kind();
        match (kind, operand) {
            (Kind::Interface, _) => return self.ideal_constant(operand),
            (Kind::Struct, _) if parameter == Type::REFLECT_VALUE => return self.ideal_constant(operand),
            (Kind::Bool, Operand::Bool(_, value)) => return Ok(Value::Bool(*value)),
            (Kind::String, Operand::Text(text)) => return Ok(Value::String(text.value.clone())),
            (_, Operand::Number(number)) => {
                if let Some(value) = number_of(number, kind) {
                    return Ok(value);
                }
            }
            _ => {}
        }
        let text = self.text_of(NodeRef::Operand(operand));
        let expected = match kind {
            Kind::Bool => "bool",
            Kind::String => "string",
            Kind::Float32 | Kind::Float64 => "float",
            Kind::Complex128 => "complex",
            kind if kind.is_signed() => "integer",
            kind if kind.is_unsigned() => "unsigned integer",
            _ => return Err(self.error(format!("can't handle {text} for arg of type {parameter}"))),
        };
        Err(self.error(format!("expected {expected}; found {text}")))
    }

    fn ideal_constant(&self, operand: &'a Operand) -> Result<Value, Error> {
        match operand {
            Operand::Bool(_, value) => Ok(Value::Bool(*value)),
            Operand::Text(text) => Ok(Value::String(text.value.clone())),
            Operand::Number(number) => self.ideal(number),
            _ => Ok(Value::Invalid),
        }
    }

    /// Checks that a value can be passed for a parameter, and passes it: Go's `validateType`.
    pub(super) fn validate(&self, value: Value, parameter: Type) -> Result<Value, Error> {
        if parameter == Type::REFLECT_VALUE {
            return Ok(value);
        }
        let Some(type_) = value.type_() else {
            return match nil_of(parameter) {
                Some(nil) => Ok(nil),
                None => Err(self.error(format!("invalid value; expected {parameter}"))),
            };
        };
        if type_.is_assignable_to(parameter) {
            return Ok(match value {
                Value::Map(map) if parameter != Type::ANY && type_ != parameter => {
                    Value::Map(map.with_type(parameter))
                }
                value => value,
            });
        }
        let is_pointer_to_it =
            type_.kind() == Kind::Pointer && type_.name().strip_prefix('*') == Some(parameter.name());
        if is_pointer_to_it {
            return Ok(value);
        }
        Err(self.error(format!("wrong type for value; expected {parameter}; got {type_}")))
    }
}

/// Gives a number the kind that a parameter asks for.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Go cuts to the width as well
fn number_of(number: &Number, kind: Kind) -> Option<Value> {
    let signed = |number: i64| match kind {
        Kind::Int8 => i64::from(number as i8),
        Kind::Int16 => i64::from(number as i16),
        Kind::Int32 => i64::from(number as i32),
        _ => number,
    };
    let unsigned = |number: u64| match kind {
        Kind::Uint8 => u64::from(number as u8),
        Kind::Uint16 => u64::from(number as u16),
        Kind::Uint32 => u64::from(number as u32),
        _ => number,
    };
    if kind.is_signed() {
        number.int.map(|number| Value::Int(signed(number), kind))
    } else if kind.is_unsigned() {
        number.uint.map(|number| Value::Uint(unsigned(number), kind))
    } else if matches!(kind, Kind::Float32 | Kind::Float64) {
        number.float.map(Value::Float)
    } else if kind == Kind::Complex128 {
        number
            .complex
            .map(|(real, imaginary)| Value::Complex(real, imaginary))
    } else {
        None
    }
}

/// Returns the nil of a type, where it has one. That of `reflect.Value` is no value.
pub(crate) fn nil_of(type_: Type) -> Option<Value> {
    match type_.kind() {
        Kind::Map => Some(Value::Map(Map::nil(type_))),
        Kind::Slice if type_ == Type::BYTES => Some(Value::Bytes(Str::default())),
        Kind::Slice => Some(Value::List(List::nil(type_))),
        kind if kind.has_nil() => Some(Value::Nil),
        _ if type_ == Type::REFLECT_VALUE => Some(Value::Invalid),
        _ => None,
    }
}

/// Returns the zero of a type.
pub(crate) fn zero_of(type_: Type) -> Value {
    match type_.kind() {
        Kind::Bool => Value::Bool(false),
        Kind::String => Value::String(Str::default()),
        Kind::Float32 | Kind::Float64 => Value::Float(0.0),
        Kind::Complex128 => Value::Complex(0.0, 0.0),
        kind if kind.is_signed() => Value::Int(0, kind),
        kind if kind.is_unsigned() => Value::Uint(0, kind),
        _ => nil_of(type_).unwrap_or(Value::Nil),
    }
}
