//! Changes of an apply, field by field: old value, new value, and the previous owner. Pure.
//!
//! Two states of one object go in, before and after a write. Labels, annotations, finalizers and all that is neither
//! metadata nor status is compared. What comes out is made to be read by people and to be kept in a status: it is bounded
//! however large the objects are, and the values of Secrets are masked as Flux masks them.

mod count;
mod elements;
mod field;
mod masked;
mod owners;
mod show;
mod walk;

use serde_json::Value;

use owners::Owners;
use show::Mask;
use walk::Walk;

pub(crate) use count::Count;
pub use masked::masked;
pub(crate) use masked::plain;

pub use field::{FieldChange, FieldChanges, SetBy};

/// How much is told of one object.
const FIELDS: usize = 16;

impl FieldChanges {
    /// Compares two states of an object. What `manager` had set is not told of by whom; of a
    /// confidential object, Secret or not, no value is told.
    pub fn between(before: &Value, after: &Value, manager: &str, is_confidential: bool) -> Self {
        Self::up_to(FIELDS, before, after, manager, is_confidential)
    }

    /// The same, with so many fields at most.
    pub fn up_to(limit: usize, before: &Value, after: &Value, manager: &str, is_confidential: bool) -> Self {
        let mask = Mask::new(after, is_confidential);
        let owners = Owners::new(before, manager);
        let mut walk = Walk::new(limit, mask);
        walk.objects(before, after, &owners);
        walk.found
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
