//! Drops deep values without deep recursion.
//!
//! `{{ $l = list $l }}` in a loop makes a value as deep as the loop is long; dropping it by recursion would overflow the
//! stack, which ends the process. Below a depth the values are put on a list that the outermost drop works off.

use std::cell::{Cell, RefCell};

use crate::Value;

/// How deep drops may nest: far more than any manifest, and a few hundred bytes of stack each.
const MAX_DEPTH: u32 = 128;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static PENDING: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Drops values that a list or map held.
pub(super) fn release(values: impl Iterator<Item = Value>) {
    let values = values.filter(|value| matches!(value, Value::List(_) | Value::Map(_) | Value::Object(_)));
    // At the end of a thread its locals may be gone: then plain recursion is left.
    let Ok(depth) = DEPTH.try_with(Cell::get) else {
        return drop(values.collect::<Vec<_>>());
    };
    if depth >= MAX_DEPTH {
        PENDING.with_borrow_mut(|pending| pending.extend(values));
        return;
    }
    DEPTH.set(depth + 1);
    values.for_each(drop);
    if depth == 0 {
        while let Some(value) = PENDING.with_borrow_mut(Vec::pop) {
            drop(value);
        }
    }
    DEPTH.set(depth);
}
