//! Drift: objects that differ from the manifest of their release.

use std::fmt;

/// One object that differs from the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Kind.
    pub kind: String,
    /// Namespace, if it has one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// How it differs.
    pub change: Change,
}

/// How an object differs from the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is not there.
    Removed,
    /// Fields differ.
    Changed {
        /// How many the manifest adds.
        additions: usize,
        /// How many it has other values for.
        changes: usize,
        /// How many it removes.
        removals: usize,
    },
    /// It is not compared, as an annotation asks.
    Excluded,
}

impl Change {
    /// Returns whether there is something to correct.
    pub fn is_drift(self) -> bool {
        self != Self::Excluded
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        write!(formatter, "{} ", self.name)?;
        match self.change {
            Change::Removed => formatter.write_str("removed"),
            Change::Excluded => formatter.write_str("excluded"),
            Change::Changed {
                additions,
                changes,
                removals,
            } => write!(
                formatter,
                "changed ({additions} additions, {changes} changes, {removals} removals)"
            ),
        }
    }
}
