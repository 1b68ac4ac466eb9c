//! ResourceSets of flux-operator: which sets of inputs there are.

pub mod found;
pub mod inputs;
pub mod schedule;

pub use inputs::{Export, combine};
