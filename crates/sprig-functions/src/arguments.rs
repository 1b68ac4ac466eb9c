//! Arguments as the functions want them.
//!
//! Go's engine has checked them against the declared parameters, so that another kind cannot come; where one came all the
//! same, these give Go's zero value.

use go_template::{Context, Error, ErrorKind, Function, Map, Str, Type, Value};

/// A function to register: its name, its fixed parameters, and what it does.
pub(crate) type Entry = (&'static str, &'static [Type], go_template::PlainCall);

/// Makes a function without further arguments.
pub(crate) fn add(functions: &mut go_template::Functions, entries: &[Entry]) {
    for (name, parameters, call) in entries {
        functions.add(name, Function::new(parameters, *call));
    }
}

/// Makes functions that take any number of further arguments of one type.
pub(crate) fn add_variadic(functions: &mut go_template::Functions, rest: Type, entries: &[Entry]) {
    for (name, parameters, call) in entries {
        functions.add(name, Function::new(parameters, *call).with_rest(rest));
    }
}

/// Returns a `string`.
pub(crate) fn string(arguments: &[Value], index: usize) -> Str {
    match arguments.get(index) {
        Some(Value::String(text)) => text.clone(),
        _ => Str::default(),
    }
}

/// Returns the bytes of a `string`.
pub(crate) fn text(arguments: &[Value], index: usize) -> &[u8] {
    match arguments.get(index) {
        Some(Value::String(text)) => text,
        _ => b"",
    }
}

/// Returns an `int`.
pub(crate) fn int(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(number, _)) => *number,
        _ => 0,
    }
}

/// Returns a `map[string]interface {}`.
pub(crate) fn map(arguments: &[Value], index: usize) -> Map {
    match arguments.get(index) {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::nil(Type::MAP_ANY),
    }
}

/// Returns an `interface {}`; no value is nil.
pub(crate) fn any(arguments: &[Value], index: usize) -> Value {
    match arguments.get(index) {
        None | Some(Value::Invalid) => Value::Nil,
        Some(value) => value.clone(),
    }
}

/// Makes a `string` of bytes.
pub(crate) fn made(bytes: Vec<u8>) -> Result<Value, Error> {
    Ok(Value::String(Str::from(bytes)))
}

/// Counts what is about to be made, where even the number of its bytes may be too large.
pub(crate) fn charge(context: &mut Context<'_>, items: usize, size: usize) -> Result<(), Error> {
    /// Bytes that Go's allocator refuses; it would try to allocate less.
    const MOST_OF_GO: usize = 1 << 48;
    /// No text of a template needs more; it guards the addition of sizes as well.
    const MOST: usize = 1 << 31;
    match items.checked_mul(size) {
        Some(bytes) if bytes < MOST => context.charge(bytes),
        Some(bytes) if bytes <= MOST_OF_GO => Err(Error::from_parts(
            ErrorKind::Limit,
            format!("a function would make more than {MOST} bytes"),
        )),
        _ => Err(Error::new("runtime error: makeslice: len out of range")),
    }
}
