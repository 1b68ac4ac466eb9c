//! `deepCopy`: new maps and slices all the way down, as mitchellh/copystructure makes them.

use std::vec::IntoIter;

use go_template::{Context, Error, ErrorKind, List, Map, Str, Value};

use crate::arguments::any;
use crate::semver;

/// How deep a value may be; a map that holds itself has no end.
const MAX_DEPTH: usize = 10_000;

pub(super) fn deep_copy(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    match any(arguments, 0) {
        Value::Nil => Err(Error::new("reflect: call of reflect.Value.Type on zero Value")),
        value => copy(context, value),
    }
}

/// Approximate memory of an empty map and of one entry, including unused capacity.
const MAP_BYTES: usize = 256;
const ENTRY_BYTES: usize = 2 * size_of::<(Str, Value)>();

/// A map or slice that is being copied. They stand on a list, so that deep values need no stack.
enum Open {
    Map {
        copied: Map,
        key: Str,
        rest: IntoIter<(Str, Value)>,
    },
    List {
        copied: Vec<Value>,
        rest: List,
        at: usize,
    },
}

impl Open {
    /// Gives the next value to copy; none where all is copied.
    fn next(&mut self) -> Option<Value> {
        match self {
            Self::Map { key, rest, .. } => rest.next().map(|(next, value)| {
                *key = next;
                value
            }),
            Self::List { rest, at, .. } => {
                *at += 1;
                rest.get(*at - 1).cloned()
            }
        }
    }

    fn add(&mut self, value: Value) {
        match self {
            Self::Map { copied, key, .. } => {
                let _ = copied.insert(key.clone(), value);
            }
            Self::List { copied, .. } => copied.push(value),
        }
    }

    fn close(self) -> Value {
        match self {
            Self::Map { copied, .. } => copied.into(),
            Self::List { rest, copied, .. } => List::new(rest.type_(), copied).into(),
        }
    }
}

fn copy(context: &mut Context<'_>, mut value: Value) -> Result<Value, Error> {
    let mut path: Vec<Open> = Vec::new();
    loop {
        if let Some(open) = open(context, &value)? {
            path.push(open);
            if path.len() > MAX_DEPTH {
                return Err(Error::from_parts(
                    ErrorKind::Limit,
                    format!("deepCopy: the value is more than {MAX_DEPTH} levels deep"),
                ));
            }
        } else {
            let value = semver::copied(&value).unwrap_or(value);
            match path.last_mut() {
                Some(holder) => holder.add(value),
                None => return Ok(value),
            }
        }
        // What is complete goes into what holds it, up to where there is more to copy.
        value = loop {
            let Some(mut last) = path.pop() else {
                return Ok(Value::Nil);
            };
            if let Some(next) = last.next() {
                path.push(last);
                break next;
            }
            let complete = last.close();
            match path.last_mut() {
                Some(holder) => holder.add(complete),
                None => return Ok(complete),
            }
        };
    }
}

/// Begins a copy of a map or slice; of anything else, and of nil ones, the value itself is the copy.
fn open(context: &mut Context<'_>, value: &Value) -> Result<Option<Open>, Error> {
    Ok(match value {
        Value::Map(map) if !map.is_nil() => {
            context.charge(MAP_BYTES + map.len() * ENTRY_BYTES)?;
            Some(Open::Map {
                copied: Map::with_entries(map.type_(), Default::default()),
                key: Str::default(),
                rest: map.entries().into_iter(),
            })
        }
        Value::List(list) if !list.is_nil() => {
            context.charge(size_of::<List>() + list.len() * size_of::<Value>())?;
            Some(Open::List {
                copied: Vec::with_capacity(list.len()),
                rest: list.clone(),
                at: 0,
            })
        }
        _ => None,
    })
}
