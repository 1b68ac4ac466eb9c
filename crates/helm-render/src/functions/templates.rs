//! `include` and `tpl`: templates whose output is a value.

use go_template::{Context, Error, ErrorKind, Function, Functions, Str, Type, Value};
use go_text::quote;

use super::State;

/// How often a template may be included within itself: Helm's `recursionMaxNums`.
const MAX_NESTED: u32 = 1000;

/// Text that Go prints for a missing value, and that Helm removes from every output.
const NO_VALUE: &[u8] = b"<no value>";

pub(super) fn register(functions: &mut Functions) {
    const NAME_OR_TEXT_AND_DATA: &[Type] = &[Type::STRING, Type::ANY];
    functions.add("include", Function::new(NAME_OR_TEXT_AND_DATA, include));
    functions.add("tpl", Function::new(NAME_OR_TEXT_AND_DATA, tpl));
}

fn include(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let name = text(&arguments[0]);
    let nested = context.state::<State>().included.entry(name.clone()).or_default();
    if *nested > MAX_NESTED {
        return Err(Error::wrap(
            ErrorKind::Function,
            format!("rendering template has a nested reference name: {name}: "),
            Error::new("unable to execute template"),
        ));
    }
    *nested += 1;
    let result = context.execute(&name, &arguments[1]);
    if let Some(nested) = context.state::<State>().included.get_mut(&name) {
        *nested -= 1;
    }
    result.map(|output| Value::String(output.into()))
}

fn tpl(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let template = text(&arguments[0]);
    let output = context.execute_text(&template, &arguments[1]).map_err(|error| {
        let what = match error.kind() {
            ErrorKind::Parse => "cannot parse template",
            ErrorKind::Limit => return error,
            _ => "error during tpl function execution for",
        };
        Error::wrap(
            ErrorKind::Function,
            format!("{what} {}: ", quoted(&template)),
            error,
        )
    })?;
    Ok(Value::String(without_missing(output).into()))
}

/// Takes out what Go prints for values that are not there.
pub(crate) fn without_missing(output: Vec<u8>) -> Vec<u8> {
    let Some(first) = find(&output, 0) else {
        return output;
    };
    let mut kept = Vec::with_capacity(output.len());
    let mut from = 0;
    let mut found = Some(first);
    while let Some(at) = found {
        kept.extend_from_slice(&output[from..at]);
        from = at + NO_VALUE.len();
        found = find(&output, from);
    }
    kept.extend_from_slice(&output[from..]);
    kept
}

fn find(output: &[u8], from: usize) -> Option<usize> {
    let mut start = from;
    loop {
        let at = start + output[start..].iter().position(|byte| *byte == b'<')?;
        if output[at..].starts_with(NO_VALUE) {
            return Some(at);
        }
        start = at + 1;
    }
}

fn text(value: &Value) -> Str {
    value.as_string().cloned().unwrap_or_default()
}

fn quoted(text: &[u8]) -> String {
    let mut out = Vec::new();
    quote::quote(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_leave_nothing() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_missing(text.into()), expected.as_bytes());
        };
        check("a", "a");
        check("<no value>", "");
        check("a<<no value><no value>b<no value", "a<b<no value");
    }
}
