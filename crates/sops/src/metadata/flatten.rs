//! Metadata in formats without nesting: `age__list_0__map_recipient` is the recipient of the first age key.

use std::collections::BTreeMap;

use crate::tree::{Branch, Item, Key, Value};

const MAP: &[u8] = b"__map_";
const LIST: &[u8] = b"__list_";

/// Metadata are nested four deep; what reads them recurses.
const MAX_STEPS: usize = 16;

/// A step of a flattened name.
enum Step {
    Key(Vec<u8>),
    Index(usize),
}

#[derive(Default)]
struct Node {
    value: Option<Value>,
    keys: BTreeMap<Vec<u8>, Node>,
    indices: BTreeMap<usize, Node>,
}

/// Writes nested metadata without nesting, sorted by name.
pub(crate) fn flatten(branch: Branch) -> Branch {
    let mut flat = Vec::new();
    for item in branch {
        if let Key::Text(key) = item.key {
            spread(key, item.value, &mut flat);
        }
    }
    flat.sort_by(|one, other| one.0.cmp(&other.0));
    flat.into_iter()
        .map(|(name, value)| Item::new(name, value))
        .collect()
}

fn spread(name: Vec<u8>, value: Value, flat: &mut Vec<(Vec<u8>, Value)>) {
    let below = |separator: &[u8], step: &[u8]| [&name[..], separator, step].concat();
    match value {
        Value::Map(branch) => {
            for item in branch {
                if let Key::Text(key) = item.key {
                    spread(below(MAP, &key), item.value, flat);
                }
            }
        }
        Value::List(list) => {
            for (number, element) in list.into_iter().enumerate() {
                spread(below(LIST, number.to_string().as_bytes()), element, flat);
            }
        }
        leaf => flat.push((name, leaf)),
    }
}

/// Restores the nesting. Comments are passed over.
pub(crate) fn unflatten(branch: Branch) -> Result<Branch, String> {
    let mut root = Node::default();
    for item in branch {
        match item.key {
            Key::Text(key) => place(&mut root, &key, item.value)?,
            Key::Comment(_) => {}
            Key::Other(kind) => return Err(format!("Found non-string key of type {kind} when unflattening")),
        }
    }
    match value(root)? {
        Value::Map(branch) => Ok(branch),
        _ => Err("Error while unflattening: the metadata are no mapping".to_owned()),
    }
}

fn place(root: &mut Node, name: &[u8], value: Value) -> Result<(), String> {
    let mut node = root;
    let steps = steps(name);
    if steps.len() > MAX_STEPS {
        return Err(format!(
            "Error while unflattening: a name has more than {MAX_STEPS} parts"
        ));
    }
    for step in steps {
        node = match step {
            Step::Key(key) => node.keys.entry(key).or_default(),
            Step::Index(index) => node.indices.entry(index).or_default(),
        };
    }
    if node.value.replace(value).is_some() {
        let name = String::from_utf8_lossy(name);
        return Err(format!("Error while unflattening {name:?}: Duplicate value"));
    }
    Ok(())
}

fn steps(name: &[u8]) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut is_index, mut start, mut at) = (false, 0, 0);
    let mut finish = |is_index: bool, text: &[u8]| {
        steps.push(if is_index {
            let index = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            Step::Index(index.unwrap_or(0))
        } else {
            Step::Key(text.to_owned())
        });
    };
    while at < name.len() {
        let separator = [(MAP, false), (LIST, true)]
            .into_iter()
            .find(|(separator, _)| name[at..].starts_with(separator));
        match separator {
            Some((separator, next_is_index)) => {
                finish(is_index, &name[start..at]);
                at += separator.len();
                (is_index, start) = (next_is_index, at);
            }
            None => at += 1,
        }
    }
    finish(is_index, &name[start..]);
    steps
}

fn value(node: Node) -> Result<Value, String> {
    let kinds = [
        node.value.is_some(),
        !node.keys.is_empty(),
        !node.indices.is_empty(),
    ];
    if kinds.iter().filter(|kind| **kind).count() > 1 {
        return Err("Error while unflattening: Type mismatch".to_owned());
    }
    if let Some(value) = node.value {
        return Ok(value);
    }
    if node.indices.is_empty() {
        let items = node
            .keys
            .into_iter()
            .map(|(key, node)| Ok(Item::new(key, value(node)?)));
        return items.collect::<Result<_, String>>().map(Value::Map);
    }
    let is_complete = node.indices.keys().copied().eq(0..node.indices.len());
    if !is_complete {
        return Err("Error while unflattening: Incomplete list".to_owned());
    }
    let values = node.indices.into_values().map(value);
    values.collect::<Result<_, String>>().map(Value::List)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: &Value) -> String {
        match value {
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Value::List(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(",")),
            Value::Map(map) => {
                let items = map.iter().map(|item| match &item.key {
                    Key::Text(key) => format!("{}:{}", String::from_utf8_lossy(key), show(&item.value)),
                    _ => "?".to_owned(),
                });
                format!("{{{}}}", items.collect::<Vec<_>>().join(","))
            }
            _ => "?".to_owned(),
        }
    }

    fn unflattened(names: &[&str]) -> Result<String, String> {
        let items = names
            .iter()
            .map(|name| Item::new(*name, Value::Text(b"x".to_vec())));
        unflatten(items.collect()).map(|branch| show(&Value::Map(branch)))
    }

    #[test]
    fn nesting_comes_back() {
        assert_eq!(
            unflattened(&[
                "mac",
                "age__list_1__map_enc",
                "age__list_0__map_enc",
                "age__list_0__map_r"
            ])
            .unwrap(),
            "{age:[{enc:x,r:x},{enc:x}],mac:x}"
        );
        assert_eq!(
            unflattened(&["a__list_0__list_0", "b__map_"]).unwrap(),
            "{a:[[x]],b:{:x}}"
        );
    }

    #[test]
    fn what_is_flattened_comes_back() {
        let nested = |names: &[&str]| {
            let items = names
                .iter()
                .map(|name| Item::new(*name, Value::Text(b"x".to_vec())));
            unflatten(items.collect()).unwrap()
        };
        let names = [
            "age__list_0__map_enc",
            "age__list_0__map_r",
            "age__list_1__map_enc",
            "mac",
        ];
        let flat = flatten(nested(&names));
        let found: Vec<_> = flat
            .iter()
            .map(|item| match &item.key {
                Key::Text(key) => String::from_utf8_lossy(key).into_owned(),
                _ => String::new(),
            })
            .collect();
        assert_eq!(found, names);
        assert_eq!(
            show(&Value::Map(unflatten(flat).unwrap())),
            "{age:[{enc:x,r:x},{enc:x}],mac:x}"
        );
    }

    #[test]
    fn names_that_contradict_each_other_are_refused() {
        assert!(unflattened(&["a", "a"]).unwrap_err().contains("Duplicate value"));
        assert!(
            unflattened(&["a", "a__map_b"])
                .unwrap_err()
                .contains("Type mismatch")
        );
        assert!(
            unflattened(&["a__list_1"])
                .unwrap_err()
                .contains("Incomplete list")
        );
    }
}
