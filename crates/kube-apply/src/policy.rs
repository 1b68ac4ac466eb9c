//! Policies of applying and deleting, from labels and annotations of an object. Pure.
//!
//! Flux looks for its keys in labels and in annotations and compares values without regard to case
//! (`ssa/utils.AnyInMetadata`); so do we, for the manifest and for the live object alike.

use manifest::Object;
use serde_json::{Map, Value};

/// Policy in an object's own metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Not to be applied nor deleted: `ssa: Ignore` or `reconcile: disabled`.
    pub excluded: bool,
    /// Applied only while absent: `ssa: IfNotPresent`.
    pub if_not_present: bool,
    /// Fields that kubectl added stay: `ssa: Merge`.
    pub merge: bool,
    /// Recreated when an immutable field changed: `force: enabled`.
    pub force: bool,
    /// Never deleted: `prune: disabled`.
    pub prune_disabled: bool,
}

impl Policy {
    /// Reads the policy out of labels and annotations, through a lookup of one key in one of them.
    pub fn read<'a>(group: &str, lookup: impl Fn(&str) -> [Option<&'a str>; 2]) -> Self {
        let says = |name: &str, value: &str| {
            let values = lookup(&format!("{group}/{name}"));
            values
                .into_iter()
                .flatten()
                .any(|found| found.eq_ignore_ascii_case(value))
        };
        Self {
            excluded: says("reconcile", "disabled") || says("ssa", "Ignore"),
            if_not_present: says("ssa", "IfNotPresent"),
            merge: says("ssa", "Merge"),
            force: says("force", "enabled"),
            prune_disabled: says("prune", "disabled"),
        }
    }

    /// Reads the policy of a manifest.
    pub fn new(object: &Object, group: &str) -> Self {
        Self::read(group, |key| [object.label(key), object.annotation(key)])
    }

    /// Reads the policy of a live object's labels and annotations.
    pub fn of_metadata(labels: &Map<String, Value>, annotations: &Map<String, Value>, group: &str) -> Self {
        Self::read(group, |key| {
            [labels, annotations].map(|map| map.get(key).and_then(Value::as_str))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "kustomize.toolkit.fluxcd.io";

    fn policy(field: &str, name: &str, value: &str) -> Policy {
        let metadata = serde_json::json!({"metadata": {field: {format!("{GROUP}/{name}"): value}}});
        match metadata {
            Value::Object(map) => Policy::new(&Object::new(map, None), GROUP),
            _ => unreachable!(),
        }
    }

    #[test]
    fn policies_are_read_from_labels_and_annotations_in_any_case() {
        assert!(policy("annotations", "ssa", "Ignore").excluded);
        assert!(policy("labels", "ssa", "ignore").excluded);
        assert!(policy("annotations", "reconcile", "Disabled").excluded);
        assert!(policy("annotations", "ssa", "IfNotPresent").if_not_present);
        assert!(policy("annotations", "ssa", "merge").merge);
        assert!(policy("annotations", "force", "Enabled").force);
        assert!(policy("annotations", "prune", "disabled").prune_disabled);
    }

    #[test]
    fn other_values_and_absence_mean_the_default() {
        assert_eq!(policy("annotations", "ssa", "Override"), Policy::default());
        assert_eq!(policy("annotations", "force", ""), Policy::default());
        assert_eq!(policy("annotations", "other", "disabled"), Policy::default());
    }
}
