//! Go's own functions: `text/template/funcs.go`.
//!
//! `and`, `or` and `call` are only declared here: execution treats them apart, since the first two do not evaluate all
//! their arguments, and the third knows how its callee was written.

mod callee;
mod compare;
mod escape;
mod index;
#[cfg(test)]
mod tests;

pub(crate) use callee::{call, reflect_text};

use crate::{Context, Error, Function, Type, Value, format};

const VALUE: Type = Type::REFLECT_VALUE;

macro_rules! functions {
    ($($name:literal => $function:expr,)*) => {
        /// Finds one of Go's own functions.
        pub(crate) fn find(name: &str) -> Option<&'static Function> {
            match name {
                $($name => {
                    static FUNCTION: Function = $function;
                    Some(&FUNCTION)
                })*
                _ => None,
            }
        }
    };
}

functions! {
    "and" => Function::new(&[VALUE], special).with_rest(VALUE),
    "call" => Function::new(&[VALUE], special).with_rest(VALUE),
    "eq" => Function::new(&[VALUE], compare::eq).with_rest(VALUE),
    "ge" => Function::new(&[VALUE, VALUE], compare::ge),
    "gt" => Function::new(&[VALUE, VALUE], compare::gt),
    "html" => Function::new(&[], escape::html).with_rest(Type::ANY),
    "index" => Function::new(&[VALUE], index::index).with_rest(VALUE),
    "js" => Function::new(&[], escape::js).with_rest(Type::ANY),
    "le" => Function::new(&[VALUE, VALUE], compare::le),
    "len" => Function::new(&[VALUE], index::len),
    "lt" => Function::new(&[VALUE, VALUE], compare::lt),
    "ne" => Function::new(&[VALUE, VALUE], compare::ne),
    "not" => Function::new(&[VALUE], not),
    "or" => Function::new(&[VALUE], special).with_rest(VALUE),
    "print" => Function::new(&[], print).with_rest(Type::ANY),
    "printf" => Function::new(&[Type::STRING], printf).with_rest(Type::ANY),
    "println" => Function::new(&[], println).with_rest(Type::ANY),
    "slice" => Function::new(&[VALUE], index::slice).with_rest(VALUE),
    "urlquery" => Function::new(&[], escape::urlquery).with_rest(Type::ANY),
}

fn special(_: &mut Context<'_>, _: &[Value]) -> Result<Value, Error> {
    Err(Error::new("unreachable"))
}

fn not(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bool(!crate::exec::is_true(&arguments[0])))
}

fn print(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = format::sprint_within(context.work.room(), arguments)?;
    charged(context, text)
}

fn printf(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (template, operands) = arguments.split_first().expect("the parameter is required");
    let template = template.as_string().expect("the parameter is a string");
    let text = format::sprintf_within(context.work.room(), template, operands)?;
    charged(context, text)
}

fn println(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = format::sprintln_within(context.work.room(), arguments)?;
    charged(context, text)
}

fn charged(context: &mut Context<'_>, text: Vec<u8>) -> Result<Value, Error> {
    context.charge(text.len())?;
    Ok(Value::String(text.into()))
}
