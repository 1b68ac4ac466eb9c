//! How optional fields are read and written: as Go's `omitempty` does, so that both sides see the same object.

use serde::{Deserialize, Deserializer};

/// Reads an optional text; an empty one counts as absent.
///
/// Go writes no empty string and takes an empty string for "not set". With a plain `Option<String>` a manifest
/// that says `namespace: ""` would name a namespace, the one with the empty name.
pub(crate) fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Returns whether a flag need not be written.
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// Returns whether a count need not be written.
pub(crate) fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// The schema of a Go `int`, which has no format: it is 32 or 64 bits wide, by machine.
pub(crate) fn plain_integer(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer" })
}
