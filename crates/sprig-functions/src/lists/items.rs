//! Items of a list argument.

use std::borrow::Cow;

use go_template::{Error, Kind, Value};

use crate::reflection::kind_of;

/// Go's panic when a function asks nil for its type.
pub(crate) const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// Returns the elements of a slice; refuses another kind with the words that are made of its name.
pub(crate) fn items(value: &Value, refusal: impl Fn(&str) -> String) -> Result<Cow<'_, [Value]>, Error> {
    match value {
        Value::List(list) => Ok(Cow::Borrowed(list)),
        Value::Bytes(bytes) => Ok(Cow::Owned(
            bytes
                .iter()
                .map(|byte| Value::Uint(u64::from(*byte), Kind::Uint8))
                .collect(),
        )),
        Value::Invalid | Value::Nil => Err(Error::new(NIL_POINTER)),
        value => Err(Error::new(refusal(kind_of(value)))),
    }
}
