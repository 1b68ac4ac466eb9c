//! `deepCopy`: new maps and slices all the way down, as mitchellh/copystructure makes them.

use go_template::{Context, Error, ErrorKind, List, Map, Value};

use crate::arguments::any;

/// How deep a value may be; a map that holds itself has no end.
const MAX_DEPTH: usize = 1000;

pub(super) fn deep_copy(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    match any(arguments, 0) {
        Value::Nil => Err(Error::new("reflect: call of reflect.Value.Type on zero Value")),
        value => copy(context, &value, 0),
    }
}

fn copy(context: &mut Context<'_>, value: &Value, depth: usize) -> Result<Value, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::of(
            ErrorKind::Limit,
            format!("deepCopy: the value is more than {MAX_DEPTH} levels deep"),
        ));
    }
    context.descend()?;
    match value {
        Value::Map(map) if !map.is_nil() => {
            context.charge(map.len() * size_of::<(Value, Value)>())?;
            let copied = Map::of(map.type_(), Default::default());
            for (key, value) in map.entries() {
                let _ = copied.insert(key, copy(context, &value, depth + 1)?);
            }
            Ok(copied.into())
        }
        Value::List(list) if !list.is_nil() => {
            context.charge(list.len() * size_of::<Value>())?;
            let items = list.iter().map(|item| copy(context, item, depth + 1));
            Ok(List::new(list.type_(), items.collect::<Result<_, _>>()?).into())
        }
        value => Ok(value.clone()),
    }
}
