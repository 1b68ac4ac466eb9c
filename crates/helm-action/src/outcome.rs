//! Result of an action.

use std::collections::BTreeMap;

use helm_release::Release;

use crate::Error;

/// Result of an action.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every record that was written, in its newest state, by revision. Empty: the storage was not touched.
    pub written: BTreeMap<i64, Release>,
    /// How it ended.
    pub result: Result<(), Error>,
}
