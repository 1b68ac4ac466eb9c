//! Errors and limits of flags that set values.

/// The greatest index of a list that a flag may set: more would only fill memory with nulls.
pub const MAX_INDEX: i64 = 65_536;

/// The number of dots that the name of one value may hold.
pub const MAX_NESTED_NAME_LEVEL: usize = 30;

/// Problem of a flag's text, in Helm's words and without the flag's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub(crate) String);
