//! `required` and `fail`: how a chart's author refuses values.

use go_template::{Context, Error, Function, Functions, Type, Value};

use super::State;
use crate::engine::message;

pub(super) fn register(functions: &mut Functions) {
    functions.add("required", Function::new(&[Type::STRING, Type::ANY], required));
    functions.add("fail", Function::new(&[Type::STRING], fail));
}

fn required(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let is_missing = match &arguments[1] {
        Value::Invalid | Value::Nil => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if !is_missing {
        return Ok(arguments[1].clone());
    }
    refuse(context, &arguments[0])
}

fn fail(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    refuse(context, &arguments[0])
}

fn refuse(context: &mut Context<'_>, words: &Value) -> Result<Value, Error> {
    let words = words.as_string().map(|words| words.to_text().into_owned());
    let words = words.unwrap_or_default();
    let state = context.state::<State>();
    if state.lint {
        state.warnings.push(words);
        return Ok("".into());
    }
    Err(message::from_author(&words))
}
