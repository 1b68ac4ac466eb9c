//! Changes of an apply, field by field: old value, new value, and the previous owner. Pure.
//!
//! Two states of one object go in, before and after a write. Labels, annotations, finalizers and all that is neither
//! metadata nor status is compared. What comes out is made to be read by people and to be kept in a status: it is bounded
//! however large the objects are, and the values of Secrets are masked as Flux masks them.

mod count;
mod elements;
mod masked;
mod owners;
mod show;
mod walk;

use std::fmt;

use serde_json::Value;

pub(crate) use count::Count;
pub use masked::masked;
pub(crate) use masked::plain;
use owners::Owners;
use show::Mask;

/// How much is told of one object.
const FIELDS: usize = 16;

/// One field that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The way to it: `spec.template.spec.containers[name=app].image`.
    pub path: String,
    /// The value before, as shortened JSON; None is an absent field.
    pub old: Option<String>,
    /// The value after.
    pub new: Option<String>,
    /// Previous owner of the value, unless that was us or is unknown.
    pub set_by: Option<SetBy>,
}

/// The manager of a field, as `metadata.managedFields` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetBy {
    /// The field manager.
    pub manager: String,
    /// When it last changed something in the object; empty if that is not known.
    pub time: String,
}

impl fmt::Display for FieldChange {
    /// `spec.replicas: 5 → 3 (was set by kubectl-edit at 2026-01-01T00:00:00Z)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
        write!(f, "{}: {} → {}", self.path, shown(&self.old), shown(&self.new))?;
        match &self.set_by {
            None => Ok(()),
            Some(SetBy { manager, time }) if time.is_empty() => write!(f, " (was set by {manager})"),
            Some(SetBy { manager, time }) => write!(f, " (was set by {manager} at {time})"),
        }
    }
}

/// The fields of one object that were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    /// The first of them, in the order of their names.
    pub fields: Vec<FieldChange>,
    /// How many there are besides.
    pub more: usize,
}

impl FieldChanges {
    /// Compares two states of an object. What `manager` had set is not told of by whom; of a
    /// confidential object, Secret or not, no value is told.
    pub fn between(before: &Value, after: &Value, manager: &str, is_confidential: bool) -> Self {
        Self::up_to(FIELDS, before, after, manager, is_confidential)
    }

    /// The same, with so many fields at most.
    pub(crate) fn up_to(
        limit: usize,
        before: &Value,
        after: &Value,
        manager: &str,
        is_confidential: bool,
    ) -> Self {
        let mask = Mask::of(after, is_confidential);
        let owners = Owners::of(before, manager);
        let mut walk = walk::Walk::new(limit, mask);
        walk.objects(before, after, &owners);
        walk.found
    }

    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.more == 0
    }
}

/// Writes changes of several objects, each under its name, in at most `limit` bytes. Empty when there is nothing to tell.
pub fn report<'c>(objects: impl IntoIterator<Item = (String, &'c FieldChanges)>, limit: usize) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for (name, changes) in objects.into_iter().filter(|(_, changes)| !changes.is_empty()) {
        let mut lines = format!("{name}:\n");
        changes
            .fields
            .iter()
            .for_each(|field| lines.push_str(&format!("  {field}\n")));
        if changes.more > 0 {
            lines.push_str(&format!("  and {} more\n", changes.more));
        }
        // Room is left to say how many are missing.
        if left_out > 0 || text.len() + lines.len() + REST > limit {
            left_out += 1;
        } else {
            text.push_str(&lines);
        }
    }
    if left_out > 0 {
        text.push_str(&format!("and fields of {left_out} more objects\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Bytes of the longest last line.
const REST: usize = 50;

#[cfg(test)]
#[path = "changes/tests.rs"]
mod tests;
