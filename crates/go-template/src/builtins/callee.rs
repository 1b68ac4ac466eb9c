//! `call`: functions that are values.

use crate::exec::nil_of;
use crate::{Context, Error, ErrorKind, Kind, Type, Value};

/// Calls the first argument with the others; `name` is how it was written.
pub(crate) fn call(context: &mut Context<'_>, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (callee, given) = arguments.split_first().expect("the parameter is required");
    let function = match callee {
        Value::Invalid | Value::Nil => return Err(Error::new("call of nil")),
        Value::Func(function) => function,
        other => {
            let type_ = other.type_name();
            return Err(Error::new(format!("non-function {name} of type {type_}")));
        }
    };
    let fixed = function.parameters().len();
    let count = given.len();
    if function.rest().is_some() {
        if count < fixed {
            return Err(Error::new(format!(
                "wrong number of args for {name}: got {count} want at least {fixed}"
            )));
        }
    } else if count != fixed {
        return Err(Error::new(format!(
            "wrong number of args for {name}: got {count} want {fixed}"
        )));
    }
    let mut prepared = Vec::with_capacity(count);
    for (index, value) in given.iter().enumerate() {
        let parameter = function.parameters().get(index).copied().or(function.rest());
        let parameter = parameter.unwrap_or(Type::ANY);
        let value = prepare(value, parameter)
            .map_err(|cause| Error::wrap(ErrorKind::Function, format!("arg {index}: "), cause))?;
        prepared.push(value);
    }
    function.call(context, &prepared)
}

/// Converts an argument to its parameter's type: Go's `prepareArg`, which unlike that of plain calls converts integers.
pub(super) fn prepare(value: &Value, parameter: Type) -> Result<Value, Error> {
    if parameter == Type::REFLECT_VALUE {
        return Ok(value.clone());
    }
    let Some(type_) = value.type_().filter(|_| !value.is_untyped_nil()) else {
        return nil_of(parameter)
            .ok_or_else(|| Error::new(format!("value is nil; should be of type {parameter}")));
    };
    if type_.is_assignable_to(parameter) {
        return Ok(value.clone());
    }
    convert(value, parameter.kind())
        .ok_or_else(|| Error::new(format!("value has type {type_}; should be {parameter}")))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Go's conversions cut as well
#[allow(clippy::cast_possible_wrap)]
fn convert(value: &Value, kind: Kind) -> Option<Value> {
    let bits = match value {
        Value::Int(number, _) => *number as u64,
        Value::Uint(number, _) => *number,
        _ => return None,
    };
    Some(match kind {
        Kind::Int | Kind::Int64 => Value::Int(bits as i64, kind),
        Kind::Int8 => Value::Int(i64::from(bits as i8), kind),
        Kind::Int16 => Value::Int(i64::from(bits as i16), kind),
        Kind::Int32 => Value::Int(i64::from(bits as i32), kind),
        Kind::Uint | Kind::Uint64 => Value::Uint(bits, kind),
        Kind::Uint8 => Value::Uint(u64::from(bits as u8), kind),
        Kind::Uint16 => Value::Uint(u64::from(bits as u16), kind),
        Kind::Uint32 => Value::Uint(u64::from(bits as u32), kind),
        _ => return None,
    })
}

/// Returns what `reflect.Value.String` gives: a string itself, the type of anything else.
pub(crate) fn reflect_text(value: &Value) -> String {
    match value {
        Value::Invalid => "<invalid Value>".to_owned(),
        Value::String(text) => text.to_string(),
        value => format!("<{} Value>", value.type_().map_or("", Type::name)),
    }
}
