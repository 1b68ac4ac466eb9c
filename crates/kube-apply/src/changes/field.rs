//! Changed fields of one object.

use std::fmt;

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
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.more == 0
    }
}
