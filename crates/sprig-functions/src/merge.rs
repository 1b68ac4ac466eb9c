//! Maps merged into one another, as mergo 1.0.1 does it for maps of whatever values.
//!
//! The destination is changed in place, and so are the maps within it; what it takes over from a source it shares with it.

use go_template::{Context, Error, ErrorKind, Kind, Map, Str, Type, Value};

use crate::reflection::kind_of;

/// Map whose value stays where both have one.
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
const MAX_DEPTH: usize = 10_000;

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
    // Maps within stand on a list, so that deep ones need no stack.
    let mut pending = vec![(destination.clone(), source.clone(), 0)];
    while let Some((destination, source, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::from_parts(
                ErrorKind::Limit,
                format!("merge: the maps are more than {MAX_DEPTH} levels deep"),
            ));
        }
        context.charge(source.len() * size_of::<(Str, Value)>())?;
        let waiting = pending.len();
        merge_level(context, &destination, &source, keep, |destination, source| {
            pending.push((destination, source, depth + 1));
        })?;
        // The first of them is next.
        pending[waiting..].reverse();
    }
    Ok(())
}

/// Merges the entries of one map, and gives pairs of maps within them to be merged.
fn merge_level(
    context: &mut Context<'_>,
    destination: &Map,
    source: &Map,
    keep: Keep,
    mut deeper: impl FnMut(Map, Map),
) -> Result<(), Error> {
    // Reflection sees the elements of a map as of its element type, whatever they hold.
    let type_ = source.type_().element().unwrap_or(Type::ANY);
    for (key, value) in source.entries() {
        let present = destination.get(&key);
        if value.is_untyped_nil() || is_nil_in_typed_map(source, &value) {
            if keep == Keep::Source {
                put(context, destination, &key, value, type_)?;
            }
            continue;
        }
        if let (Some(Value::Map(present)), Value::Map(value)) = (&present, &value)
            && !stays_empty(present, value, keep)
        {
            deeper(present.clone(), value.clone());
            continue;
        }
        match &value {
            Value::List(_) | Value::Bytes(_) => {
                merge_slice(context, destination, &key, present.as_ref(), &value, keep)?;
                if present.as_ref().is_some_and(|present| !is_empty(present)) {
                    continue;
                }
            }
            value => check_object(present.as_ref(), value, keep)?,
        }
        // Only a pointer held by a map of pointers is not taken over; there is no such map here.
        if keep == Keep::Source || present.as_ref().is_none_or(is_empty) {
            put(context, destination, &key, value, type_)?;
        }
    }
    Ok(())
}

/// Returns whether a map within the destination is empty even after the other one was merged into it: then it is replaced.
/// Go makes no map in the place of a nil one that it cannot reach.
fn stays_empty(present: &Map, value: &Map, keep: Keep) -> bool {
    let adds = |value: &Value| keep == Keep::Source || !value.is_untyped_nil();
    present.is_nil() || (present.is_empty() && !value.entries().iter().any(|(_, value)| adds(value)))
}

/// In a map of maps or slices a nil one is skipped as well; within an `interface {}` it is a value.
fn is_nil_in_typed_map(map: &Map, value: &Value) -> bool {
    value.is_nil() && map.type_().element().is_some_and(|element| element != Type::ANY)
}

/// Refuses what Go does where the destination holds a pointer or struct. Such are replaced, or stay; mergo could change the
/// fields of structs, but no function gives any with fields that it could set.
fn check_object(present: Option<&Value>, value: &Value, keep: Keep) -> Result<(), Error> {
    let (Some(Value::Object(present)), "map" | "struct" | "ptr") = (present, kind_of(value)) else {
        return Ok(());
    };
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
    key: &Str,
    present: Option<&Value>,
    value: &Value,
    keep: Keep,
) -> Result<(), Error> {
    let element = destination.type_().element().map_or(Kind::Interface, Type::kind);
    if present.is_some() && !element.has_nil() {
        let kind = element.name();
        return Err(Error::new(format!(
            "reflect: call of reflect.Value.IsNil on {kind} Value"
        )));
    }
    if keep == Keep::Source || destination.is_empty() || present.is_none_or(Value::is_untyped_nil) {
        let type_ = value.type_().unwrap_or(Type::ANY);
        return put(context, destination, key, value.clone(), type_);
    }
    Ok(())
}

fn put(
    context: &mut Context<'_>,
    destination: &Map,
    key: &Str,
    value: Value,
    type_: Type,
) -> Result<(), Error> {
    let element = destination.type_().element().unwrap_or(Type::ANY);
    if !type_.is_assignable_to(element) {
        return Err(Error::new(format!(
            "reflect.Value.SetMapIndex: value of type {type_} is not assignable to type {element}"
        )));
    }
    context.mutated(destination);
    let _ = destination.insert(key.clone(), value);
    Ok(())
}

/// True for values that mergo considers empty: as sprig's `empty`, except complex numbers.
fn is_empty(value: &Value) -> bool {
    !matches!(value, Value::Complex(..)) && crate::defaults::is_empty(value)
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    use crate::testing::check;

    fn check_both(destination: &str, source: &str, merged: &str, overwritten: &str) {
        for (function, expected) in [("merge", merged), ("mergeOverwrite", overwritten)] {
            let template =
                format!("{{{{ {function} (fromJson `{destination}`) (fromJson `{source}`) | toJson }}}}");
            check(&template, &Value::Nil, expected);
        }
    }

    #[test]
    fn merge_fills_what_is_empty_and_overwrite_takes_even_empty_values() {
        check_both(
            r#"{"a":1}"#,
            r#"{"a":2,"b":3}"#,
            r#"{"a":1,"b":3}"#,
            r#"{"a":2,"b":3}"#,
        );
        check_both(
            r#"{"a":false}"#,
            r#"{"a":true}"#,
            r#"{"a":true}"#,
            r#"{"a":true}"#,
        );
        check_both(r#"{"a":1}"#, r#"{"a":""}"#, r#"{"a":1}"#, r#"{"a":""}"#);
        check_both(r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":1}"#, r#"{"a":null}"#);
        check_both(r#"{"a":[1]}"#, r#"{"a":[]}"#, r#"{"a":[1]}"#, r#"{"a":[]}"#);
    }

    #[test]
    fn maps_are_merged_into_one_another() {
        check_both(
            r#"{"m":{"a":1,"n":{"b":2}}}"#,
            r#"{"m":{"a":3,"n":{"c":4}}}"#,
            r#"{"m":{"a":1,"n":{"b":2,"c":4}}}"#,
            r#"{"m":{"a":3,"n":{"b":2,"c":4}}}"#,
        );
        check_both(
            r#"{"m":{"a":1}}"#,
            r#"{"m":{}}"#,
            r#"{"m":{"a":1}}"#,
            r#"{"m":{"a":1}}"#,
        );
        check_both(r#"{"m":1}"#, r#"{"m":{"a":1}}"#, r#"{"m":1}"#, r#"{"m":{"a":1}}"#);
    }

    #[test]
    fn what_is_taken_over_is_shared_with_the_source() {
        check(
            r#"{{ $s := dict "m" (dict) }}{{ $d := merge (dict) $s }}{{ $_ := set $d.m "a" 1 }}{{ $s }}"#,
            &Value::Nil,
            "map[m:map[a:1]]",
        );
    }

    #[test]
    fn a_map_of_strings_takes_no_other_values() {
        check(
            r#"{{ merge (dict "m" (split "," "1")) (dict "m" (dict "a" 1)) }}"#,
            &Value::Nil,
            "error calling merge: reflect.Value.SetMapIndex: value of type interface {} is not assignable to type string",
        );
    }
}
