//! Goes through two states of an object side by side and notes where they differ.

use serde_json::{Map, Value};

use super::elements::{self, Pairing};
use super::field::{FieldChange, FieldChanges};
use super::owners::Owners;
use super::show::{Mask, shorten_path, show};

/// Deeper is not looked into: the value is told as a whole.
const DEPTH: usize = 40;

pub(super) struct Walk {
    limit: usize,
    mask: Mask,
    pub(super) found: FieldChanges,
}

/// Fields of the metadata that are reported. The server sets the others.
const METADATA: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

static NOTHING: Value = Value::Null;

impl Walk {
    pub(super) fn new(limit: usize, mask: Mask) -> Self {
        Self {
            limit,
            mask,
            found: FieldChanges::default(),
        }
    }

    /// Compares two objects.
    pub(super) fn objects(&mut self, before: &Value, after: &Value, owners: &Owners<'_>) {
        let metadata =
            |object: &Value, field: &str| object.get("metadata").and_then(|m| m.get(field)).cloned();
        for field in METADATA {
            let (old, new) = (metadata(before, field), metadata(after, field));
            let owners = owners.field("metadata").field(field);
            self.values(
                &format!("metadata.{field}"),
                old.as_ref(),
                new.as_ref(),
                &owners,
                2,
            );
        }
        for field in fields(before, after) {
            if !matches!(field, "apiVersion" | "kind" | "metadata" | "status") {
                self.values(
                    field,
                    before.get(field),
                    after.get(field),
                    &owners.field(field),
                    1,
                );
            }
        }
    }

    fn values(
        &mut self,
        path: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        owners: &Owners<'_>,
        depth: usize,
    ) {
        if old == new {
            return;
        }
        let both = (old.unwrap_or(&NOTHING), new.unwrap_or(&NOTHING));
        match both {
            _ if depth > DEPTH => self.note(path, old, new, owners),
            (Value::Object(_), Value::Object(_)) => self.maps(path, both.0, both.1, owners, depth),
            // A map of labels or of data that comes or goes is told key by key, so that keys are seen and values masked.
            (Value::Object(map), Value::Null) | (Value::Null, Value::Object(map)) if is_flat(map) => {
                self.maps(path, both.0, both.1, owners, depth);
            }
            (Value::Array(a), Value::Array(b)) => match elements::pair(a, b) {
                Pairing::Whole => self.note(path, old, new, owners),
                Pairing::Elements(pairs) => {
                    for pair in pairs {
                        let owners = owners.element(pair.old.or(pair.new).unwrap_or(&NOTHING));
                        self.values(
                            &format!("{path}[{}]", pair.name),
                            pair.old,
                            pair.new,
                            &owners,
                            depth + 1,
                        );
                    }
                }
            },
            _ => self.note(path, old, new, owners),
        }
    }

    fn maps(&mut self, path: &str, old: &Value, new: &Value, owners: &Owners<'_>, depth: usize) {
        for field in fields(old, new) {
            let below = format!("{path}{}", name(field));
            self.values(
                &below,
                old.get(field),
                new.get(field),
                &owners.field(field),
                depth + 1,
            );
        }
    }

    fn note(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>, owners: &Owners<'_>) {
        if self.found.fields.len() >= self.limit {
            self.found.more += 1;
            return;
        }
        let (old, new) = match self.mask.shown(path, old.is_some(), new.is_some()) {
            Some(masked) => masked,
            None => (old.map(show), new.map(show)),
        };
        let set_by = old.is_some().then(|| owners.latest()).flatten();
        self.found.fields.push(FieldChange {
            path: shorten_path(path),
            old,
            new,
            set_by,
        });
    }
}

/// Lists the fields of either, in order, each once.
fn fields<'v>(a: &'v Value, b: &'v Value) -> Vec<&'v str> {
    let keys = [a, b]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(Map::keys);
    let mut keys: Vec<_> = keys.map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn is_flat(map: &Map<String, Value>) -> bool {
    !map.is_empty() && map.values().all(|value| !value.is_object() && !value.is_array())
}

/// Writes a field as the end of a path; names with dots are quoted.
fn name(field: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !field.is_empty() && field.chars().all(is_plain) {
        format!(".{field}")
    } else {
        format!("[{}]", Value::from(field))
    }
}
