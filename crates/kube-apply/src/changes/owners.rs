//! Previous owners of fields, from the `metadata.managedFields` of the old state.

use serde_json::{Map, Value};

use super::field::SetBy;

/// The entries of others that own something at one depth of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners<'v> {
    entries: Vec<(&'v Value, &'v Map<String, Value>)>,
}

impl<'v> Owners<'v> {
    /// Takes the entries of everybody but us.
    pub(super) fn new(object: &'v Value, us: &str) -> Self {
        let entries = object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array);
        let others = entries
            .into_iter()
            .flatten()
            .filter(|entry| entry.get("manager").and_then(Value::as_str) != Some(us))
            .filter_map(|entry| Some((entry, entry.get("fieldsV1")?.as_object()?)));
        Self {
            entries: others.collect(),
        }
    }

    /// Goes into a field.
    pub(super) fn field(&self, name: &str) -> Self {
        let step = format!("f:{name}");
        self.below(|fields| fields.get(&step))
    }

    /// Goes into the element of a list.
    pub(super) fn element(&self, element: &Value) -> Self {
        self.below(|fields| {
            let is_it = |written: &str| {
                let key = written.strip_prefix("k:")?;
                let key: Map<String, Value> = serde_json::from_str(key).ok()?;
                key.iter()
                    .all(|(field, value)| element.get(field) == Some(value))
                    .then_some(())
            };
            fields
                .iter()
                .find(|(written, _)| is_it(written).is_some())
                .map(|(_, below)| below)
        })
    }

    /// Looks for an owner of the field or, if it is set as a whole, of a parent.
    fn below(&self, find: impl Fn(&'v Map<String, Value>) -> Option<&'v Value>) -> Self {
        let step = |(entry, fields): &(&'v Value, &'v Map<String, Value>)| {
            if fields.is_empty() {
                return Some((*entry, *fields));
            }
            Some((*entry, find(fields)?.as_object()?))
        };
        Self {
            entries: self.entries.iter().filter_map(step).collect(),
        }
    }

    /// Names the one who wrote last.
    pub(super) fn latest(&self) -> Option<SetBy> {
        let text = |entry: &Value, field: &str| {
            entry
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let entries = self.entries.iter().map(|(entry, _)| SetBy {
            manager: text(entry, "manager").chars().take(MANAGER).collect(),
            time: text(entry, "time"),
        });
        // Times of the API server sort as they are.
        entries
            .max_by(|a, b| a.time.cmp(&b.time))
            .filter(|found| !found.manager.is_empty())
    }
}

/// Characters of a manager's name that are told.
const MANAGER: usize = 64;
