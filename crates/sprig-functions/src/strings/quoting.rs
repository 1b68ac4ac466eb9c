//! Values as quoted and joined text: `quote`, `squote`, `cat`.

use go_template::{Context, Error, Functions, Type, Value};
use go_text::quote;

use crate::arguments::{add_variadic, made};
use crate::printed::{printed, text_of};

pub(super) fn register(functions: &mut Functions) {
    add_variadic(
        functions,
        Type::ANY,
        &[
            ("quote", &[], quote),
            ("squote", &[], single_quote),
            ("cat", &[], concatenate),
        ],
    );
}

/// Quotes each value as `%q` does; nils are left out.
fn quote(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut out = Vec::new();
    for value in arguments.iter().filter(|value| !value.is_untyped_nil()) {
        separate(&mut out);
        let text = text_of(value)?;
        context.charge(text.len())?;
        out.reserve(text.len() + 2);
        quote::quote(&text, &mut out);
    }
    made(out)
}

/// Puts each value as `%v` prints it between single quotes; nothing is escaped.
fn single_quote(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut out = Vec::new();
    for value in arguments.iter().filter(|value| !value.is_untyped_nil()) {
        separate(&mut out);
        let text = printed(value)?;
        context.charge(text.len())?;
        out.push(b'\'');
        out.extend_from_slice(&text);
        out.push(b'\'');
    }
    made(out)
}

fn concatenate(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut out = Vec::new();
    let mut is_first = true;
    for value in arguments.iter().filter(|value| !value.is_untyped_nil()) {
        if !std::mem::take(&mut is_first) {
            out.push(b' ');
        }
        let text = printed(value)?;
        context.charge(text.len())?;
        out.extend_from_slice(&text);
    }
    made(out)
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b' ');
    }
}
