//! Strategic merge patches: a difference of three states, in the form in which the API server takes it.
//!
//! What is declared wins over what is there; what was declared and is no more goes; what others added stays. Directives
//! (`$patch`, `$setElementOrder`, `$retainKeys`, `$deleteFromPrimitiveList`) are Kubernetes'. Where Helm's patch would be
//! refused or lose something (elements without their key, or two of the same), the list is replaced.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::schema::{Field, Schema};

/// Makes the patch; empty if there is nothing to change.
pub(super) fn three_way(
    declared: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    schema: Option<Schema>,
) -> Map<String, Value> {
    mapping(declared, wanted, live, schema, false)
}

fn mapping(
    declared: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    schema: Option<Schema>,
    retains_keys: bool,
) -> Map<String, Value> {
    let mut patch = Map::new();
    let nothing = Map::new();
    for (key, wanted) in wanted {
        let field = schema.map(|schema| schema.field(key)).unwrap_or_default();
        let declared = declared.get(key);
        match (wanted, live.get(key)) {
            (Value::Null, None | Some(Value::Null)) => {}
            (Value::Null, Some(_)) if key == "creationTimestamp" => {}
            (Value::Object(wanted), Some(Value::Object(live))) if !field.replaces => {
                let declared = declared.and_then(Value::as_object).unwrap_or(&nothing);
                let deeper = mapping(declared, wanted, live, field.schema(), field.retains_keys);
                if !deeper.is_empty() {
                    patch.insert(key.clone(), Value::Object(deeper));
                }
            }
            (Value::Array(wanted), Some(Value::Array(live))) if field.merges => {
                let declared = declared
                    .and_then(Value::as_array)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                list(
                    key,
                    field,
                    &Lists {
                        declared,
                        wanted,
                        live,
                    },
                    &mut patch,
                );
            }
            (wanted, Some(live)) if wanted == live => {}
            (wanted, _) => drop(patch.insert(key.clone(), wanted.clone())),
        }
    }
    for key in declared.keys().filter(|key| !wanted.contains_key(*key)) {
        if live.get(key).is_some_and(|live| !live.is_null()) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    let has_more = |map: &Map<String, Value>| {
        map.iter()
            .any(|(key, value)| !value.is_null() && !wanted.contains_key(key))
    };
    if retains_keys && (!patch.is_empty() || has_more(live)) {
        let mut keys: Vec<&String> = wanted
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, _)| key)
            .collect();
        keys.sort();
        patch.insert("$retainKeys".to_owned(), json!(keys));
    }
    patch
}

/// A list in its three states.
struct Lists<'a> {
    declared: &'a [Value],
    wanted: &'a [Value],
    live: &'a [Value],
}

fn list(name: &str, field: Field, lists: &Lists<'_>, patch: &mut Map<String, Value>) {
    let is_of_scalars = |list: &[Value]| list.iter().all(|item| !item.is_object() && !item.is_array());
    if let Some(merged) = field.key.and_then(|key| elements(key, field, lists)) {
        return merged.put(name, patch);
    }
    match field.key {
        None if [lists.declared, lists.wanted, lists.live]
            .into_iter()
            .all(is_of_scalars) =>
        {
            scalars(name, lists, patch);
        }
        _ if lists.wanted == lists.live => {}
        _ if lists.wanted.iter().all(Value::is_object) => {
            let mut replaced = vec![json!({"$patch": "replace"})];
            replaced.extend(lists.wanted.iter().cloned());
            patch.insert(name.to_owned(), Value::Array(replaced));
        }
        _ => drop(patch.insert(name.to_owned(), Value::Array(lists.wanted.to_vec()))),
    }
}

/// Lists of scalars are sets: finalizers, for one.
fn scalars(name: &str, lists: &Lists<'_>, patch: &mut Map<String, Value>) {
    let added: Vec<Value> = lists
        .wanted
        .iter()
        .filter(|item| !lists.live.contains(item))
        .cloned()
        .collect();
    let removed: Vec<Value> = lists
        .declared
        .iter()
        .filter(|item| !lists.wanted.contains(item) && lists.live.contains(item))
        .cloned()
        .collect();
    if added.is_empty() && removed.is_empty() {
        return;
    }
    patch.insert(format!("$setElementOrder/{name}"), json!(lists.wanted));
    if !removed.is_empty() {
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), json!(removed));
    }
    if !added.is_empty() {
        patch.insert(name.to_owned(), json!(added));
    }
}

/// Where the elements of a list are, by their keys as JSON.
type Places = HashMap<String, usize>;

/// Finds the elements of a list; None where one has no key, or two have the same.
fn places(list: &[Value], key: &str) -> Option<Places> {
    let mut places = HashMap::new();
    for (at, item) in list.iter().enumerate() {
        let own = item.get(key).filter(|own| !own.is_null())?;
        if places.insert(own.to_string(), at).is_some() {
            return None;
        }
    }
    Some(places)
}

/// Merges lists of mappings, each with its key; None where they cannot be.
fn elements(key: &str, field: Field, lists: &Lists<'_>) -> Option<Merged> {
    let [declared, wanted, live] = [lists.declared, lists.wanted, lists.live].map(|list| places(list, key));
    let (declared, wanted, live) = (declared?, wanted?, live?);
    let nothing = Map::new();
    let (mut changes, mut seen) = (Vec::new(), Vec::new());
    for item in lists.wanted.iter().filter_map(Value::as_object) {
        let own = item.get(key)?;
        let of = |list: &'_ [Value], places: &Places| -> Option<usize> {
            places
                .get(&own.to_string())
                .copied()
                .filter(|at| *at < list.len())
        };
        let Some(at) = of(lists.live, &live) else {
            changes.push(Value::Object(item.clone()));
            continue;
        };
        seen.push(at);
        let before = of(lists.declared, &declared).and_then(|at| lists.declared[at].as_object());
        let now = lists.live[at].as_object().unwrap_or(&nothing);
        let mut deeper = mapping(
            before.unwrap_or(&nothing),
            item,
            now,
            field.schema(),
            field.retains_keys,
        );
        if !deeper.is_empty() {
            deeper.insert(key.to_owned(), own.clone());
            changes.push(Value::Object(deeper));
        }
    }
    for own in lists.declared.iter().filter_map(|item| item.get(key)) {
        let text = own.to_string();
        if !wanted.contains_key(&text) && live.contains_key(&text) {
            changes.push(json!({key: own, "$patch": "delete"}));
        }
    }
    let order = lists
        .wanted
        .iter()
        .filter_map(|item| Some(json!({key: item.get(key)?})));
    Some(Merged {
        is_same: changes.is_empty() && seen.is_sorted(),
        order: order.collect(),
        changes,
    })
}

/// How a list is to be merged.
struct Merged {
    is_same: bool,
    order: Vec<Value>,
    changes: Vec<Value>,
}

impl Merged {
    fn put(self, name: &str, patch: &mut Map<String, Value>) {
        if self.is_same {
            return;
        }
        patch.insert(format!("$setElementOrder/{name}"), Value::Array(self.order));
        if !self.changes.is_empty() {
            patch.insert(name.to_owned(), Value::Array(self.changes));
        }
    }
}
