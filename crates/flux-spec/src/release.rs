//! Interpretation of a HelmRelease's spec, apart from the chart: its name, its values, and the changes to the
//! rendered objects.
//!
//! Pure: ConfigMaps and Secrets come from whoever may read them, and nothing here knows a cluster. The controller that makes
//! releases and the command that says what a change would do share it.

mod chart;
pub mod names;
mod post_render;
pub mod values;

pub use chart::chart_spec;
pub use post_render::{PostRenderers, origin_labels};
