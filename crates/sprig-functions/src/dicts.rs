//! Maps: made, asked, changed in place, and taken apart.
//!
//! Go's maps have no order; where sprig lists keys or values in whatever order comes, these come sorted by key.

mod copy;
mod dig;

use go_template::{Context, Error, Functions, List, Map, Type, Value};

use crate::arguments::{add, add_variadic, any, map, string, text};
use crate::merge::{self, Keep};
use crate::printed::text_of;

const MAP: &[Type] = &[Type::MAP_ANY];
const MAP_AND_KEY: &[Type] = &[Type::MAP_ANY, Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add_variadic(
        functions,
        Type::ANY,
        &[("dict", &[], dict), ("dig", &[], dig::dig)],
    );
    add(
        functions,
        &[
            ("get", MAP_AND_KEY, |_, arguments| {
                Ok(map(arguments, 0)
                    .get(text(arguments, 1))
                    .unwrap_or_else(|| "".into()))
            }),
            ("hasKey", MAP_AND_KEY, |_, arguments| {
                Ok(map(arguments, 0).contains_key(text(arguments, 1)).into())
            }),
            ("set", &[Type::MAP_ANY, Type::STRING, Type::ANY], set),
            ("unset", MAP_AND_KEY, |_, arguments| {
                let map = map(arguments, 0);
                map.remove(text(arguments, 1));
                Ok(map.with_type(Type::MAP_ANY).into())
            }),
            ("values", MAP, |_, arguments| {
                let values: Vec<Value> = map(arguments, 0)
                    .entries()
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect();
                Ok(List::from(values).into())
            }),
            ("deepCopy", &[Type::ANY], copy::deep_copy),
            ("mustDeepCopy", &[Type::ANY], copy::deep_copy),
        ],
    );
    add_variadic(
        functions,
        Type::STRING,
        &[("pick", MAP, pick), ("omit", MAP, omit)],
    );
    add_variadic(
        functions,
        Type::MAP_ANY,
        &[
            ("keys", &[], keys),
            ("pluck", &[Type::STRING], pluck),
            ("merge", MAP, |context, arguments| {
                merge_quietly(context, arguments, Keep::Destination)
            }),
            ("mergeOverwrite", MAP, |context, arguments| {
                merge_quietly(context, arguments, Keep::Source)
            }),
            ("mustMerge", MAP, |context, arguments| {
                merge_all(context, arguments, Keep::Destination)
            }),
            ("mustMergeOverwrite", MAP, |context, arguments| {
                merge_all(context, arguments, Keep::Source)
            }),
        ],
    );
}

fn dict(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let map = Map::new();
    for pair in arguments.chunks(2) {
        let value = pair.get(1).map_or_else(|| "".into(), |_| any(pair, 1));
        let _ = map.insert(text_of(&pair[0])?, value);
    }
    Ok(map.into())
}

fn set(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let map = map(arguments, 0);
    context.mutated(&map);
    if !map.insert(string(arguments, 1), any(arguments, 2)) {
        return Err(Error::new(NIL_MAP));
    }
    Ok(map.with_type(Type::MAP_ANY).into())
}

/// Go's panic on writing to a nil map.
pub(crate) const NIL_MAP: &str = "assignment to entry in nil map";

fn keys(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let keys = (0..arguments.len()).flat_map(|index| map(arguments, index).keys());
    Ok(List::of_strings(keys).into())
}

fn pluck(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let key = text(arguments, 0);
    let found = (1..arguments.len()).filter_map(|index| map(arguments, index).get(key));
    Ok(List::from(found.collect::<Vec<_>>()).into())
}

fn pick(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (from, picked) = (map(arguments, 0), Map::new());
    for index in 1..arguments.len() {
        if let Some(value) = from.get(text(arguments, index)) {
            let _ = picked.insert(string(arguments, index), value);
        }
    }
    Ok(picked.into())
}

fn omit(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (from, kept) = (map(arguments, 0), Map::new());
    for (key, value) in from.entries() {
        if !(1..arguments.len()).any(|index| text(arguments, index) == &*key) {
            let _ = kept.insert(key, value);
        }
    }
    Ok(kept.into())
}

fn merge_all(context: &mut Context<'_>, arguments: &[Value], keep: Keep) -> Result<Value, Error> {
    let mut destination = map(arguments, 0).with_type(Type::MAP_ANY);
    for index in 1..arguments.len() {
        merge::merge(context, &mut destination, &map(arguments, index), keep)?;
    }
    Ok(destination.into())
}

/// sprig gives an empty text where mergo reports an error; a panic stays one.
fn merge_quietly(context: &mut Context<'_>, arguments: &[Value], keep: Keep) -> Result<Value, Error> {
    match merge_all(context, arguments, keep) {
        Err(error) if error.message() == merge::DIFFERENT_TYPES => Ok("".into()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use go_template::{Map, Type, Value};

    use crate::testing::check;

    #[test]
    fn set_is_seen_by_all_who_hold_the_map() {
        let data: Value = Map::from_iter([("nil", Map::nil(Type::MAP_ANY))]).into();
        check(
            r#"{{ $d := dict }}{{ $e := list $d }}{{ $_ := set $d "a" 1 }}{{ $e }}"#,
            &data,
            "[map[a:1]]",
        );
        check(
            r#"{{ $d := dict "a" 1 "b" 2 }}{{ unset $d "a" }}{{ $d }}"#,
            &data,
            "map[b:2]map[b:2]",
        );
        check(
            r#"{{ set .nil "a" 1 }}"#,
            &data,
            "error calling set: assignment to entry in nil map",
        );
    }

    #[test]
    fn an_odd_dict_ends_with_an_empty_text() {
        check(
            r#"{{ dict 1 true "a" | toJson }}"#,
            &Value::Nil,
            r#"{"1":true,"a":""}"#,
        );
    }
}
