//! Parts of slices: `first`, `last`, `rest`, `initial`, `slice`.

use go_template::{Context, Error, Functions, List, Str, Type, Value};

use super::items::items;
use crate::arguments::{add, add_variadic, any};
use crate::cast::to_int64;

const ONE: &[Type] = &[Type::ANY];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("first", ONE, first),
            ("mustFirst", ONE, first),
            ("last", ONE, last),
            ("mustLast", ONE, last),
            ("rest", ONE, rest),
            ("mustRest", ONE, rest),
            ("initial", ONE, initial),
            ("mustInitial", ONE, initial),
        ],
    );
    add_variadic(
        functions,
        Type::ANY,
        &[("slice", ONE, slice), ("mustSlice", ONE, slice)],
    );
}

fn first(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find first on type {kind}"))?;
    Ok(items.first().cloned().unwrap_or(Value::Nil))
}

fn last(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find last on type {kind}"))?;
    Ok(items.last().cloned().unwrap_or(Value::Nil))
}

fn rest(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find rest on type {kind}"))?;
    Ok(part(items.split_first().map(|(_, rest)| rest)))
}

fn initial(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find initial on type {kind}"))?;
    Ok(part(items.split_last().map(|(_, initial)| initial)))
}

/// Makes a slice, a nil one where there was nothing to take a part of.
fn part(items: Option<&[Value]>) -> Value {
    items
        .map_or(List::nil(Type::LIST_ANY), |items| List::from(items.to_vec()))
        .into()
}

/// Cuts elements out; the slice keeps its type. Of an empty one comes nil.
fn slice(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| {
        format!("list should be type of slice or array but {kind}")
    })?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = arguments.get(1).map_or(0, to_int64);
    let end = arguments.get(2).map_or(items.len(), |end| {
        usize::try_from(to_int64(end)).unwrap_or(usize::MAX)
    });
    // Go allows as much as the capacity of the slice, of which nothing is known here.
    let range = usize::try_from(start).unwrap_or(usize::MAX)..end;
    let Some(part) = items.get(range.clone()) else {
        return Err(Error::new("reflect.Value.Slice: slice index out of bounds"));
    };
    Ok(match &list {
        // All of it is the same slice, so that it is sorted with it.
        Value::List(whole) if part.len() == whole.len() => whole.clone().into(),
        Value::Bytes(bytes) => Value::Bytes(Str::from(&bytes[range])),
        Value::List(list) => List::new(list.type_(), part.to_vec()).into(),
        _ => Value::Nil,
    })
}
