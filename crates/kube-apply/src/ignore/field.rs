//! Fields of objects: JSON pointers, and the steps that lead to what they mean in one object or another.
//!
//! An element of a list is meant by its merge key where the server knows one (`containers[name=app]`), and by its index
//! elsewhere: the index that a user wrote counts in the manifest, and others may have put elements before it.

use std::fmt;

use serde_json::{Map, Value};

use super::FieldSets;
use super::rule::IgnoreError;

/// A JSON pointer (RFC 6901) to something below the root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pointer {
    segments: Vec<String>,
}

impl Pointer {
    pub(crate) fn parse(text: &str) -> Result<Self, IgnoreError> {
        if text.is_empty() {
            return Err(IgnoreError::Root);
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(IgnoreError::Pointer(text.to_owned()));
        };
        let plain = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
        Ok(Self {
            segments: rest.split('/').map(plain).collect(),
        })
    }

    /// Finds the steps that this means, by the first of the objects that has the lists on the way.
    pub(crate) fn steps(&self, objects: [&Value; 2], sets: &FieldSets<'_>) -> Vec<Step> {
        let mut at = objects.map(Some);
        let mut sets = sets.clone();
        let mut steps = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let step = step(segment, at, &sets);
            at = at.map(|value| step.take(value?));
            sets = sets.below(&step.owned());
            steps.push(step);
        }
        steps
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments
            .iter()
            .try_for_each(|segment| write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1")))
    }
}

/// One step down into an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Into a field.
    Field(String),
    /// To an element of a list without keys.
    Index(usize),
    /// To the element that has these values in its key fields.
    Element {
        /// The key as field sets write it: `k:{"name":"app"}`.
        written: String,
        key: Map<String, Value>,
    },
}

fn step(segment: &str, at: [Option<&Value>; 2], sets: &FieldSets<'_>) -> Step {
    let lists = at.into_iter().flatten().filter_map(Value::as_array);
    let mut elements = lists.filter_map(|list| Some((segment.parse().ok()?, list)));
    let Some((index, list)) = elements.next() else {
        return Step::Field(segment.to_owned());
    };
    let list = [Some(list), elements.next().map(|(_, list)| list)];
    let element = list.into_iter().flatten().find_map(|list| list.get(index));
    element
        .and_then(|element| sets.key_of(element))
        .unwrap_or(Step::Index(index))
}

impl Step {
    /// Takes the step in a value.
    pub(crate) fn take<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => map.get(name),
            (_, Value::Array(list)) => list.get(self.index_in(list)?),
            _ => None,
        }
    }

    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => map.get_mut(name),
            (_, Value::Array(list)) => {
                let index = self.index_in(list)?;
                list.get_mut(index)
            }
            _ => None,
        }
    }

    fn index_in(&self, list: &[Value]) -> Option<usize> {
        match self {
            Step::Field(_) => None,
            Step::Index(index) => Some(*index),
            Step::Element { key, .. } => list.iter().position(|element| has_key(element, key)),
        }
    }

    /// Writes the step as field sets do; empty where they have no name for it.
    pub(crate) fn owned(&self) -> String {
        match self {
            Step::Field(name) => format!("f:{name}"),
            Step::Index(_) => String::new(),
            Step::Element { written, .. } => written.clone(),
        }
    }
}

/// Returns whether an element of a list has these values in its key fields.
pub(super) fn has_key(element: &Value, key: &Map<String, Value>) -> bool {
    key.iter().all(|(field, value)| element.get(field) == Some(value))
}

/// Looks a field up.
pub(crate) fn get<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| step.take(value))
}

/// Removes a field.
pub(crate) fn remove(value: &mut Value, steps: &[Step]) {
    let Some((first, rest)) = steps.split_first() else {
        return;
    };
    if rest.is_empty() {
        remove_child(value, first);
    } else if let Some(child) = first.of_mut(value) {
        remove(child, rest);
    }
}

/// Removes a field; what becomes empty by that goes, too, up to the root.
pub(crate) fn remove_with_parents(value: &mut Value, steps: &[Step]) {
    let Some((first, rest)) = steps.split_first() else {
        return;
    };
    if !rest.is_empty() {
        let Some(child) = first.of_mut(value) else { return };
        let was_empty = is_empty(child);
        remove_with_parents(child, rest);
        if was_empty || !is_empty(child) {
            return;
        }
    }
    remove_child(value, first);
}

fn remove_child(value: &mut Value, step: &Step) {
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => {
            map.remove(name);
        }
        (_, Value::Array(list)) => {
            if let Some(index) = step.index_in(list).filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Sets a field; mappings on the way are made, elements of lists are not.
pub(crate) fn put(value: &mut Value, steps: &[Step], new: Value) {
    let Some((first, rest)) = steps.split_first() else {
        *value = new;
        return;
    };
    if let (Step::Field(name), Value::Object(map)) = (first, &mut *value)
        && !map.contains_key(name)
    {
        let child = if rest.is_empty() {
            Value::Null
        } else {
            Value::Object(Map::new())
        };
        map.insert(name.clone(), child);
    }
    if let Some(child) = first.of_mut(value) {
        put(child, rest, new);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(pointer: &str, object: &Value) -> Vec<Step> {
        let fields = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1":
            {"f:list": {"k:{\"name\":\"a\"}": {}, "k:{\"name\":\"b\"}": {}}}}]}});
        let sets = FieldSets::from_live(&fields);
        Pointer::parse(pointer)
            .unwrap()
            .steps([object, &Value::Null], &sets)
    }

    #[test]
    fn pointers_are_read_and_written_with_their_escapes() {
        let pointer = Pointer::parse("/metadata/annotations/a.b~1c~0d").unwrap();
        assert_eq!(pointer.segments, ["metadata", "annotations", "a.b/c~d"]);
        assert_eq!(pointer.to_string(), "/metadata/annotations/a.b~1c~0d");
        assert_eq!(Pointer::parse("a"), Err(IgnoreError::Pointer("a".into())));
    }

    #[test]
    fn an_element_is_meant_by_its_key_wherever_it_stands() {
        let ours = json!({"list": [{"name": "a", "x": 1}]});
        let live = json!({"list": [{"name": "b", "x": 2}, {"name": "a", "x": 3}]});
        let steps = steps("/list/0/x", &ours);
        assert_eq!(get(&live, &steps), Some(&json!(3)));
        assert_eq!(steps[1].owned(), "k:{\"name\":\"a\"}");
    }

    #[test]
    fn an_element_without_a_key_is_meant_by_its_index() {
        let object = json!({"other": [1, 2], "map": {"0": "field"}});
        assert_eq!(steps("/other/1", &object)[1], Step::Index(1));
        assert_eq!(steps("/map/0", &object)[1], Step::Field("0".into()));
        assert_eq!(get(&object, &steps("/other/7/x", &object)), None);
    }

    #[test]
    fn removing_takes_along_what_becomes_empty_only_when_told_to() {
        let mut alone = json!({"a": {"b": 1}});
        remove(&mut alone, &steps("/a/b", &json!({})));
        assert_eq!(alone, json!({"a": {}}));
        let mut object = json!({"a": {"b": {"c": 1}}, "list": [{"name": "a", "x": 1}], "keep": {}});
        for pointer in ["/a/b/c", "/list/0/x", "/keep/x", "/nothing/at/all"] {
            let found = steps(pointer, &object);
            remove_with_parents(&mut object, &found);
        }
        assert_eq!(object, json!({"list": [{"name": "a"}], "keep": {}}));
    }

    #[test]
    fn putting_makes_mappings_but_no_elements() {
        let mut object = json!({"list": []});
        put(
            &mut object,
            &[Step::Field("a".into()), Step::Field("b".into())],
            json!(1),
        );
        put(
            &mut object,
            &[Step::Field("list".into()), Step::Index(0)],
            json!(1),
        );
        assert_eq!(object, json!({"list": [], "a": {"b": 1}}));
    }
}
