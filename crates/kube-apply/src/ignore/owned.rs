//! Owners of fields, from `metadata.managedFields`, as far as ignored fields need them.

use serde_json::{Map, Value};

use super::Step;
use super::field::has_key;

/// The field sets of everybody who applied an object server-side, each at some depth.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSets<'a> {
    appliers: Vec<(&'a str, &'a Map<String, Value>)>,
}

impl<'a> FieldSets<'a> {
    /// Reads them out of a live object.
    pub(crate) fn from_live(live: &'a Value) -> Self {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let text =
            |entry: &'a Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let appliers = entries
            .into_iter()
            .flatten()
            .filter(|entry| text(entry, "operation") == "Apply" && text(entry, "subresource").is_empty())
            .filter_map(|entry| Some((text(entry, "manager"), entry.get("fieldsV1")?.as_object()?)));
        Self {
            appliers: appliers.collect(),
        }
    }

    /// Goes one step down.
    pub(crate) fn below(&self, step: &str) -> Self {
        let below = |(manager, fields): &(&'a str, &'a Map<String, Value>)| {
            Some((*manager, fields.get(step)?.as_object()?))
        };
        Self {
            appliers: self.appliers.iter().filter_map(below).collect(),
        }
    }

    /// Finds the merge key that someone knows an element of the list at this depth by.
    pub(crate) fn key_of(&self, element: &Value) -> Option<Step> {
        let written = self.appliers.iter().flat_map(|(_, fields)| fields.keys());
        written
            .filter_map(|written| read_key(written))
            .find_map(|(written, key)| {
                has_key(element, &key).then(|| Step::Element {
                    written: written.to_owned(),
                    key,
                })
            })
    }

    /// Returns whether someone but `manager` applied the field.
    pub(crate) fn has_other_owner(&self, manager: &str, steps: &[Step]) -> bool {
        let found = steps
            .iter()
            .fold(self.clone(), |sets, step| sets.below(&step.owned()));
        !steps.is_empty() && found.appliers.iter().any(|(other, _)| *other != manager)
    }
}

fn read_key(written: &str) -> Option<(&str, Map<String, Value>)> {
    let key = written.strip_prefix("k:")?;
    Some((written, serde_json::from_str(key).ok()?))
}

/// Fields of one object whose owners do not matter to us, as field sets write the way to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    paths: Vec<Vec<String>>,
}

impl Ignored {
    /// Takes the fields that field sets have a name for.
    pub(crate) fn new<'s>(fields: impl IntoIterator<Item = &'s [Step]>) -> Self {
        let written = fields
            .into_iter()
            .map(|steps| steps.iter().map(Step::owned).collect());
        Self {
            paths: written
                .filter(|path: &Vec<String>| path.iter().all(|step| !step.is_empty()))
                .collect(),
        }
    }

    /// Takes these fields out of a field set.
    pub(crate) fn prune(&self, fields: &mut Map<String, Value>) {
        self.paths.iter().for_each(|path| cut(fields, path));
    }
}

/// Cuts a field, and every parent that is left without members.
fn cut(fields: &mut Map<String, Value>, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let Some(Value::Object(child)) = fields.get_mut(first) else {
        return;
    };
    if !rest.is_empty() {
        let was_leaf = child.is_empty();
        cut(child, rest);
        if was_leaf || !child.is_empty() {
            return;
        }
    }
    fields.remove(first);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(steps: &[&str]) -> Vec<Step> {
        steps.iter().map(|name| Step::Field((*name).to_owned())).collect()
    }

    #[test]
    fn only_other_appliers_are_other_owners() {
        let entry = |manager: &str, operation: &str, subresource: &str| {
            json!({"manager": manager, "operation": operation, "subresource": subresource,
                "fieldsV1": {"f:spec": {"f:replicas": {}}}})
        };
        let replicas = fields(&["spec", "replicas"]);
        for (entry, expected) in [
            (entry("hpa", "Apply", ""), true),
            (entry("hpa", "Update", ""), false),
            (entry("hpa", "Apply", "scale"), false),
            (entry("us", "Apply", ""), false),
        ] {
            let live = json!({"metadata": {"managedFields": [entry]}});
            assert_eq!(
                FieldSets::from_live(&live).has_other_owner("us", &replicas),
                expected,
                "{live}"
            );
            assert!(!FieldSets::from_live(&live).has_other_owner("us", &fields(&["spec", "paused"])));
        }
    }

    #[test]
    fn ignored_fields_leave_no_trace_in_a_field_set() {
        let ignored = Ignored::new([fields(&["spec", "replicas"]).as_slice(), &[Step::Index(1)]]);
        let pruned = |mut set: Value| {
            ignored.prune(set.as_object_mut().unwrap());
            set
        };
        let rest = json!({"f:spec": {"f:paused": {}}});
        assert_eq!(
            pruned(json!({"f:spec": {"f:paused": {}, "f:replicas": {}}})),
            rest
        );
        assert_eq!(pruned(rest.clone()), rest);
        assert_eq!(pruned(json!({"f:spec": {"f:replicas": {}}})), json!({}));
        assert_eq!(pruned(json!({"f:spec": {}})), json!({"f:spec": {}}));
    }
}
