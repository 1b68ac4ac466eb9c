//! Compares an object with its manifest, except for ignored fields.

use serde_json::Value;

use super::Step;
use super::field::remove_with_parents;

/// Compares labels, annotations and everything that is neither metadata nor status, as Flux does.
pub(crate) fn same_but<'s>(
    live: &Value,
    wanted: &Value,
    ignored: impl IntoIterator<Item = &'s [Step]> + Clone,
) -> bool {
    reduced(live, ignored.clone()) == reduced(wanted, ignored)
}

/// Reduces an object to the fields that are compared.
pub(crate) fn reduced<'s>(object: &Value, ignored: impl IntoIterator<Item = &'s [Step]>) -> Value {
    let mut object = object.clone();
    if let Value::Object(map) = &mut object {
        map.remove("status");
    }
    for steps in ignored {
        remove_with_parents(&mut object, steps);
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|field, value| {
            let is_ours = matches!(field.as_str(), "labels" | "annotations");
            is_ours && value.as_object().is_some_and(|map| !map.is_empty())
        });
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_not_ignored_counts() {
        let live = json!({"metadata": {"resourceVersion": "1", "annotations": {"x": "1"}}, "spec": {"r": 5, "y": 1}, "status": 1});
        let field = |path: &[&str]| -> Vec<Step> { path.iter().map(|s| Step::Field((*s).into())).collect() };
        let ignored = [field(&["spec", "r"]), field(&["metadata", "annotations", "x"])];
        let ignored = || ignored.iter().map(Vec::as_slice);
        for (wanted, same) in [
            (json!({"metadata": {}, "spec": {"r": 1, "y": 1}}), true),
            (
                json!({"metadata": {"labels": {}}, "spec": {"y": 1}, "status": 2}),
                true,
            ),
            (
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"r": 1, "y": 1}}),
                false,
            ),
            (json!({"metadata": {}, "spec": {"r": 5, "y": 2}}), false),
        ] {
            assert_eq!(same_but(&live, &wanted, ignored()), same, "{wanted}");
        }
    }
}
