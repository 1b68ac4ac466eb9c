//! Which elements of two lists are the same element: by a field that names them, as far as they have one.

use serde_json::Value;

/// An element in both states of a list.
pub(super) struct Pair<'v> {
    /// `name=app`, or the index.
    pub(super) name: String,
    pub(super) old: Option<&'v Value>,
    pub(super) new: Option<&'v Value>,
}

pub(super) enum Pairing<'v> {
    /// The elements are not to be told apart: the lists differ as wholes.
    Whole,
    Elements(Vec<Pair<'v>>),
}

/// Fields that name elements, in the order in which they are tried: what Kubernetes' kinds have as merge keys, and people
/// as names.
const KEYS: [&[&str]; 10] = [
    &["name"],
    &["mountPath"],
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["key"],
    &["type"],
    &["devicePath"],
    &["ip"],
    &["topologyKey", "whenUnsatisfiable"],
    &["uid"],
];

/// Longer lists are not paired by index: one new element at the front would move all others.
const INDEXED: usize = 64;

pub(super) fn pair<'v>(old: &'v [Value], new: &'v [Value]) -> Pairing<'v> {
    let all_maps = old.iter().chain(new).all(Value::is_object);
    if !all_maps {
        return Pairing::Whole;
    }
    if let Some(pairs) = KEYS.iter().find_map(|keys| by_key(keys, old, new)) {
        return Pairing::Elements(pairs);
    }
    if old.len() != new.len() || old.len() > INDEXED {
        return Pairing::Whole;
    }
    let by_index = old.iter().zip(new).enumerate().map(|(index, (old, new))| Pair {
        name: index.to_string(),
        old: Some(old),
        new: Some(new),
    });
    Pairing::Elements(by_index.collect())
}

/// Pairs by key fields; None if an element lacks one, or two elements have the same.
fn by_key<'v>(keys: &[&str], old: &'v [Value], new: &'v [Value]) -> Option<Vec<Pair<'v>>> {
    let (old, new) = (named(keys, old)?, named(keys, new)?);
    let of = |name: &str, list: &[(String, &'v Value)]| {
        let found = list
            .binary_search_by(|(other, _)| other.as_str().cmp(name))
            .ok()?;
        Some(list[found].1)
    };
    let mut names: Vec<_> = old.iter().chain(&new).map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    let pairs = names.into_iter().map(|name| Pair {
        old: of(&name, &old),
        new: of(&name, &new),
        name,
    });
    Some(pairs.collect())
}

/// Lists the elements by their names, sorted.
fn named<'v>(keys: &[&str], list: &'v [Value]) -> Option<Vec<(String, &'v Value)>> {
    let name = |element: &Value| {
        let parts = keys.iter().map(|key| match element.get(*key)? {
            Value::String(text) => Some(format!("{key}={text}")),
            Value::Number(number) => Some(format!("{key}={number}")),
            _ => None,
        });
        parts.collect::<Option<Vec<_>>>().map(|parts| parts.join(","))
    };
    let mut named: Vec<_> = list
        .iter()
        .map(|element| Some((name(element)?, element)))
        .collect::<Option<_>>()?;
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let is_double = named.windows(2).any(|two| two[0].0 == two[1].0);
    (!is_double).then_some(named)
}
