//! Which objects an owner has applied, as `status.inventory.entries` holds it. Pure.
//!
//! The caller writes the union of the old and the new inventory before it applies, and what is left after pruning; so
//! whatever moment the process dies at, no object that was created is forgotten.

use std::collections::BTreeMap;

use manifest::order::compare_for_apply;
use manifest::{ObjectId, ParseObjectIdError};

/// Objects and the API version under which each was applied last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    entries: BTreeMap<ObjectId, String>,
}

impl Inventory {
    /// Reads entries as the status holds them: `(id, v)`.
    pub fn from_entries<I, A, B>(entries: I) -> Result<Self, ParseObjectIdError>
    where
        I: IntoIterator<Item = (A, B)>,
        A: AsRef<str>,
        B: Into<String>,
    {
        let parse = |(id, version): (A, B)| Ok((ObjectId::parse_inventory_id(id.as_ref())?, version.into()));
        Ok(Self {
            entries: entries.into_iter().map(parse).collect::<Result<_, _>>()?,
        })
    }

    /// Writes entries as the status holds them: `(id, v)`, in Flux's order of kinds.
    pub fn to_entries(&self) -> Vec<(String, String)> {
        self.sorted()
            .into_iter()
            .map(|(id, version)| (id.inventory_id(), version))
            .collect()
    }

    /// Adds an object, or replaces its version.
    pub fn insert(&mut self, id: ObjectId, version: impl Into<String>) {
        self.entries.insert(id, version.into());
    }

    /// Takes an object out.
    pub fn remove(&mut self, id: &ObjectId) {
        self.entries.remove(id);
    }

    /// Returns whether the object is in it.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.entries.contains_key(id)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether it holds no object.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Iterates over objects and versions, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &str)> {
        self.entries.iter().map(|(id, version)| (id, version.as_str()))
    }

    /// Returns objects and versions in the order in which they are applied.
    pub fn sorted(&self) -> Vec<(ObjectId, String)> {
        let mut all: Vec<_> = self
            .entries
            .iter()
            .map(|(id, v)| (id.clone(), v.clone()))
            .collect();
        all.sort_by(|a, b| compare_for_apply(&a.0, &b.0));
        all
    }

    /// Returns the names of the definitions of an API group's kinds.
    pub(crate) fn definitions_of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a str> {
        let defines = move |id: &&ObjectId| {
            id.group == "apiextensions.k8s.io"
                && id.kind == "CustomResourceDefinition"
                && id.name.split_once('.').is_some_and(|(_, of)| of == group)
        };
        self.entries.keys().filter(defines).map(|id| id.name.as_str())
    }

    /// Returns what is in either; where both know an object, the version of `newer` wins.
    pub fn union(&self, newer: &Inventory) -> Inventory {
        let mut entries = self.entries.clone();
        entries.extend(newer.entries.iter().map(|(id, v)| (id.clone(), v.clone())));
        Inventory { entries }
    }
}

impl FromIterator<(ObjectId, String)> for Inventory {
    fn from_iter<I: IntoIterator<Item = (ObjectId, String)>>(iter: I) -> Self {
        Self {
            entries: iter.into_iter().collect(),
        }
    }
}

/// Returns what is in `old` and no longer in `new`, in the order in which it was applied: what is to be pruned.
pub fn diff(old: &Inventory, new: &Inventory) -> Vec<(ObjectId, String)> {
    old.sorted()
        .into_iter()
        .filter(|(id, _)| !new.contains(id))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(entries: &[(&str, &str)]) -> Inventory {
        Inventory::from_entries(entries.iter().copied()).unwrap()
    }

    #[test]
    fn entries_survive_a_round_trip_in_fluxs_order() {
        let entries = [
            ("default_web_apps_Deployment", "v1"),
            ("_default__Namespace", "v1"),
        ];
        let written = inventory(&entries).to_entries();
        assert_eq!(
            written,
            [
                ("_default__Namespace".into(), "v1".into()),
                (entries[0].0.into(), "v1".into())
            ]
        );
    }

    #[test]
    fn a_malformed_entry_is_refused() {
        assert!(Inventory::from_entries([("nonsense", "v1")]).is_err());
    }

    #[test]
    fn diff_is_what_left_whatever_its_version() {
        let old = inventory(&[
            ("a_x__ConfigMap", "v1"),
            ("a_y_apps_Deployment", "v1beta1"),
            ("a_z__Secret", "v1"),
        ]);
        let new = inventory(&[("a_y_apps_Deployment", "v1")]);
        let left: Vec<_> = diff(&old, &new)
            .into_iter()
            .map(|(id, _)| id.to_string())
            .collect();
        assert_eq!(left, ["ConfigMap/a/x", "Secret/a/z"]);
        assert!(diff(&new, &old).is_empty());
    }

    #[test]
    fn union_keeps_both_and_the_newer_version() {
        let old = inventory(&[("a_x__ConfigMap", "v1"), ("a_y_apps_Deployment", "v1beta1")]);
        let new = inventory(&[("a_y_apps_Deployment", "v1"), ("a_z__Secret", "v1")]);
        let union = old.union(&new);
        assert_eq!(union.len(), 3);
        let deployment = ObjectId::parse_inventory_id("a_y_apps_Deployment").unwrap();
        assert_eq!(union.iter().find(|(id, _)| **id == deployment).unwrap().1, "v1");
    }
}
