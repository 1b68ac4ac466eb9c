//! Laying tables under tables: what two sources of values say of the same keys.

use go_template::{Map, Str, Value};

use super::show::plain;
use helm_chart::{Error, ErrorKind, Warning};

/// How deep tables may be nested. YAML is read 256 deep at most; a chart that imports its tables into each other can make
/// one that holds itself, with which Helm ends in a stack overflow.
const MAX_DEPTH: usize = 512;

/// How many values there may be: what shares tables can grow by a factor of two with each import.
const MAX_VALUES: usize = 2_000_000;

/// Whether a null takes the value of its key away, or stays to do so later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// A null in the upper table removes the key if the lower table has a value for it.
    Remove,
    /// Nulls are values like all others.
    Keep,
}

/// Lays `below` under `above`: `above` gets what it does not have, table by table.
///
/// Helm's `coalesceTablesFullKey`. Tables that only `below` has become shared by both, and nulls of `above` are written into
/// `below` too: both can be seen where Helm shares tables, so both are done here.
pub(crate) fn lay_under(
    above: &Map,
    below: &Map,
    prefix: &str,
    nulls: Nulls,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    lay_under_at(above, below, prefix, nulls, warnings, 0)
}

fn lay_under_at(
    above: &Map,
    below: &Map,
    prefix: &str,
    nulls: Nulls,
    warnings: &mut Vec<Warning>,
    depth: usize,
) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    // Whether a key had a value is asked before nulls are written into the lower table.
    let had_value: Vec<Str> = match nulls {
        Nulls::Remove => keys_where(below, |value| !is_null(value)),
        Nulls::Keep => Vec::new(),
    };
    for key in keys_where(above, is_null) {
        put(below, key, Value::Nil);
    }
    for (key, lower) in below.entries() {
        match (above.get(&key), &lower) {
            (None, _) => put(above, key, lower),
            (Some(Value::Nil), _) if had_value.binary_search(&key).is_ok() => {
                above.remove(&key);
            }
            (Some(Value::Map(upper)), Value::Map(lower)) => {
                let path = joined(prefix, &key.to_text());
                lay_under_at(&upper, lower, &path, nulls, warnings, depth + 1)?;
            }
            (Some(_), Value::Map(_)) => warnings.push(Warning::new(format!(
                "warning: cannot overwrite table with non table for {} ({})",
                joined(prefix, &key.to_text()),
                plain(&lower)
            ))),
            (Some(Value::Map(_)), lower) if !is_null(lower) => warnings.push(Warning::new(format!(
                "warning: destination for {} is a table. Ignoring non-table value ({})",
                joined(prefix, &key.to_text()),
                plain(lower)
            ))),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses values that are nested too deep, such as tables that hold themselves, or that are too many.
pub(crate) fn check_bounds(values: &Map) -> Result<(), Error> {
    let mut remaining = MAX_VALUES;
    check_table(values, 0, &mut remaining)
}

fn check_table(table: &Map, depth: usize, remaining: &mut usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let Some(entries) = table.borrow() else {
        return Ok(());
    };
    entries
        .values()
        .try_for_each(|value| check_value(value, depth, remaining))
}

fn check_value(value: &Value, depth: usize, remaining: &mut usize) -> Result<(), Error> {
    *remaining = remaining.checked_sub(1).ok_or_else(|| {
        let text = format!("failed to compose the values: there are more than {MAX_VALUES}");
        Error::new(ErrorKind::Limit, text)
    })?;
    match value {
        Value::Map(table) => check_table(table, depth + 1, remaining),
        Value::List(elements) => {
            let mut elements = elements.iter();
            elements.try_for_each(|element| check_value(element, depth + 1, remaining))
        }
        _ => Ok(()),
    }
}

fn too_deep() -> Error {
    let text = format!("failed to compose the values: tables are nested deeper than {MAX_DEPTH}");
    Error::new(ErrorKind::Limit, text)
}

/// Removes all nulls of a table and of the tables in it.
pub(super) fn remove_nulls(table: &Map) {
    for (key, value) in table.entries() {
        match value {
            Value::Nil => {
                table.remove(&key);
            }
            Value::Map(below) => remove_nulls(&below),
            _ => {}
        }
    }
}

/// Joins two parts of a path with a dot, unless the first is empty.
pub(super) fn joined(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

/// Puts a value into a table of values.
pub(crate) fn put(table: &Map, key: impl Into<Str>, value: impl Into<Value>) {
    let written = table.insert(key, value);
    debug_assert!(written, "values hold no nil maps");
}

fn keys_where(table: &Map, wanted: impl Fn(&Value) -> bool) -> Vec<Str> {
    table.borrow().map_or_else(Vec::new, |entries| {
        let found = entries.iter().filter(|(_, value)| wanted(value));
        found.map(|(key, _)| key.clone()).collect()
    })
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Nil)
}
