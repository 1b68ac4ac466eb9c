//! Values: read from YAML, merged, and composed of what a chart and its dependencies set by default.

mod read;

pub use read::{merge, read};
