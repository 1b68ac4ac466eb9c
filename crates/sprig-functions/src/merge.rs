//! Maps merged into one another, as mergo 1.0.1 does it for maps of whatever values.
//!
//! The destination is changed in place, and so are the maps within it; what it takes over from a source it shares with it.

use go_template::{Context, Error, ErrorKind, Kind, Map, Object, Type, Value};

use crate::reflection::kind_of;

/// Whose value stays where both maps have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// `merge`: the destination's, unless it is empty.
    Destination,
    /// `mergeOverwrite`: the source's, even an empty one.
    Source,
}

/// The one error that mergo reports here; whatever else goes wrong is a panic.
pub(crate) const DIFFERENT_TYPES: &str = "src and dst must be of same type";

/// How deep maps may be; two that hold themselves have no end.
const MAX_DEPTH: usize = 1000;

/// Merges a source into the destination, which becomes a new map where it is nil.
pub(crate) fn merge(
    context: &mut Context<'_>,
    destination: &mut Map,
    source: &Map,
    keep: Keep,
) -> Result<(), Error> {
    if destination.is_nil() && !source.is_nil() {
        *destination = Map::new();
    }
    merge_maps(context, destination, source, keep, 0)
}

fn merge_maps(
    context: &mut Context<'_>,
    destination: &Map,
    source: &Map,
    keep: Keep,
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::of(
            ErrorKind::Limit,
            format!("merge: the maps are more than {MAX_DEPTH} levels deep"),
        ));
    }
    context.descend()?;
    for (key, value) in source.entries() {
        let present = destination.get(&key);
        if value.is_untyped_nil() || is_nil_in_typed_map(source, &value) {
            if keep == Keep::Source {
                put(context, destination, &key, value)?;
            }
            continue;
        }
        match kind_of(&value) {
            "map" | "struct" | "ptr" => merge_values(context, present.as_ref(), &value, keep, depth + 1)?,
            "slice" => merge_slice(context, destination, &key, present.as_ref(), &value, keep)?,
            _ => {}
        }
        // What was merged in place just now counts: it may not be empty any more.
        if let Some(present) = present.as_ref().filter(|present| !is_empty(present)) {
            let (from, into) = (kind_of(&value), kind_of(present));
            if from == "slice" || (from == "map" && into == "map") {
                continue;
            }
        }
        // Only a pointer held by a map of pointers is not taken over; there is no such map here.
        if keep == Keep::Source || present.as_ref().is_none_or(is_empty) {
            put(context, destination, &key, value)?;
        }
    }
    Ok(())
}

/// In a map of maps or slices a nil one is skipped as well; within an `interface {}` it is a value.
fn is_nil_in_typed_map(map: &Map, value: &Value) -> bool {
    value.is_nil() && map.type_().element().is_some_and(|element| element != Type::ANY)
}

/// Merges what a map holds under a key into what the destination holds there. Only maps can be changed in place; a pointer
/// in their place is refused.
fn merge_values(
    context: &mut Context<'_>,
    present: Option<&Value>,
    value: &Value,
    keep: Keep,
    depth: usize,
) -> Result<(), Error> {
    match (present, value) {
        (Some(Value::Map(present)), Value::Map(value)) => {
            // Go makes no map in the place of a nil one that it cannot reach.
            if present.is_nil() && !value.is_nil() {
                return Ok(());
            }
            merge_maps(context, present, value, keep, depth)
        }
        (Some(Value::Object(present)), value) => merge_into_object(&**present, value, keep),
        _ => Ok(()),
    }
}

fn merge_into_object(present: &dyn Object, value: &Value, keep: Keep) -> Result<(), Error> {
    match (present.type_().kind(), kind_of(value)) {
        (Kind::Pointer, "map" | "struct") if keep == Keep::Destination => Err(Error::new(DIFFERENT_TYPES)),
        (Kind::Struct, kind @ ("map" | "ptr")) if !present.fields().is_empty() => Err(Error::new(format!(
            "reflect: call of reflect.Value.Field on {kind} Value"
        ))),
        _ => Ok(()),
    }
}

/// A slice is taken over whole, or not at all. Go writes what was there back, so that the map's element type must fit.
fn merge_slice(
    context: &mut Context<'_>,
    destination: &Map,
    key: &go_template::Str,
    present: Option<&Value>,
    value: &Value,
    keep: Keep,
) -> Result<(), Error> {
    if keep == Keep::Source || destination.is_empty() || present.is_none_or(Value::is_untyped_nil) {
        return put(context, destination, key, value.clone());
    }
    Ok(())
}

fn put(
    context: &mut Context<'_>,
    destination: &Map,
    key: &go_template::Str,
    value: Value,
) -> Result<(), Error> {
    let element = destination.type_().element().unwrap_or(Type::ANY);
    let found = value.type_().unwrap_or(Type::ANY);
    if element != Type::ANY && !found.is_assignable_to(element) {
        return Err(Error::new(format!(
            "reflect.Value.SetMapIndex: value of type interface {{}} is not assignable to type {element}"
        )));
    }
    context.mutated(destination);
    let _ = destination.insert(key.clone(), value);
    Ok(())
}

/// What mergo takes for empty: as sprig's `empty`, but that no complex number is.
fn is_empty(value: &Value) -> bool {
    !matches!(value, Value::Complex(..)) && crate::defaults::is_empty(value)
}
