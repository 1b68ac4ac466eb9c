//! Slices made of elements and other slices: `list`, `append`, `concat`, `chunk` and their kin.

use go_template::{Context, Error, Functions, List, Type, Value};

use super::items::{NIL_POINTER, items};
use crate::arguments::{add, add_variadic, any, charge, int};
use crate::cast::truncate;

const ONE: &[Type] = &[Type::ANY];
const TWO: &[Type] = &[Type::ANY, Type::ANY];
const SIZE_AND_LIST: &[Type] = &[Type::INT, Type::ANY];

pub(super) fn register(functions: &mut Functions) {
    add_variadic(
        functions,
        Type::ANY,
        &[
            ("list", &[], list),
            ("tuple", &[], list),
            ("concat", &[], concatenate),
        ],
    );
    add(
        functions,
        &[
            ("append", TWO, append),
            ("mustAppend", TWO, append),
            ("push", TWO, append),
            ("mustPush", TWO, append),
            ("prepend", TWO, prepend),
            ("mustPrepend", TWO, prepend),
            ("reverse", ONE, reverse),
            ("mustReverse", ONE, reverse),
            ("chunk", SIZE_AND_LIST, chunk),
            ("mustChunk", SIZE_AND_LIST, chunk),
        ],
    );
}

fn list(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    // The slice of no variadic arguments is nil neither: the engine makes it.
    Ok(List::from(
        (0..arguments.len())
            .map(|index| any(arguments, index))
            .collect::<Vec<_>>(),
    )
    .into())
}

fn concatenate(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let mut all = Vec::new();
    for argument in arguments {
        if argument.is_untyped_nil() {
            return Err(Error::new(NIL_POINTER));
        }
        let items = items(argument, |kind| format!("Cannot concat type {kind} as list"))?;
        charge(context, items.len(), size_of::<Value>())?;
        all.extend_from_slice(&items);
    }
    // Go appends to a nil slice, which stays nil without elements.
    if all.is_empty() {
        return Ok(List::nil(Type::LIST_ANY).into());
    }
    Ok(List::from(all).into())
}

fn append(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot push on type {kind}"))?;
    charge(context, items.len() + 1, size_of::<Value>())?;
    let mut longer = Vec::with_capacity(items.len() + 1);
    longer.extend_from_slice(&items);
    longer.push(any(arguments, 1));
    Ok(List::from(longer).into())
}

fn prepend(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot prepend on type {kind}"))?;
    charge(context, items.len() + 1, size_of::<Value>())?;
    let mut longer = Vec::with_capacity(items.len() + 1);
    longer.push(any(arguments, 1));
    longer.extend_from_slice(&items);
    Ok(List::from(longer).into())
}

fn reverse(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find reverse on type {kind}"))?;
    Ok(List::from(items.iter().rev().cloned().collect::<Vec<_>>()).into())
}

/// Cuts a slice into slices of a size, of which the last may be shorter. Sizes below one go where Go's arithmetic of floats
/// leads them.
fn chunk(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (size, list) = (int(arguments, 0), any(arguments, 1));
    let items = items(&list, |kind| format!("Cannot chunk type {kind}"))?;
    let count = chunk_count(items.len(), size);
    let out_of_range = || Error::new("runtime error: makeslice: len out of range");
    let count = usize::try_from(count).map_err(|_| out_of_range())?;
    let Ok(step) = usize::try_from(size) else {
        return match (count, items.len()) {
            (0, _) => Ok(List::new(Type::LIST_LIST_ANY, Vec::new()).into()),
            // The rest of the division is the length then.
            (1, length @ 1..) if length % negated(size) != 0 => {
                let only = List::from(items.to_vec());
                Ok(List::new(Type::LIST_LIST_ANY, vec![only.into()]).into())
            }
            _ => Err(out_of_range()),
        };
    };
    let chunks = items.chunks(step.max(1)).take(count);
    let chunks = chunks
        .map(|chunk| Value::List(List::from(chunk.to_vec())))
        .collect();
    Ok(List::new(Type::LIST_LIST_ANY, chunks).into())
}

#[allow(clippy::cast_precision_loss)] // as sprig computes it
fn chunk_count(length: usize, size: i64) -> i64 {
    truncate(((length as f64 - 1.0) / size as f64).floor() + 1.0)
}

fn negated(size: i64) -> usize {
    usize::try_from(size.unsigned_abs()).unwrap_or(usize::MAX)
}
