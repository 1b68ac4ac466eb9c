//! Values: read from YAML, merged, and composed of what a chart and its dependencies set by default.
//!
//! Second stage of a rendering. What is loaded once is plain JSON; what is composed for one rendering are the maps of
//! [`go_template`], because Helm shares tables between a chart and its dependencies (nested tables of `global`), and
//! templates that `set` a key see it. Numbers from YAML and JSON are floats, those from `--set` are `int64`.

mod coalesce;
mod convert;
mod lookup;
mod reuse;
mod show;
mod tables;

use go_template::Map;

use helm_chart::{Chart, Error, Helm, Warning};

pub(crate) use coalesce::{Coalescer, Defaults};
pub use convert::{copy, from_json, to_json, value_from_json, value_to_json};
pub use lookup::{NotFound, path_value, table};
pub use reuse::{Reused, reuse};
pub(crate) use show::plain;
pub(crate) use tables::{Nulls, check_bounds, lay_under, put};

/// Composes the values that templates of a chart see: its defaults and those of its dependencies below what was given.
///
/// The dependencies must have been processed ([`crate::dependencies::process`]). What was given is not changed. A null that
/// was given takes a default away; where nulls of the chart itself stay depends on the version.
pub fn coalesce(chart: &Chart, given: &Map, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Map, Error> {
    Coalescer::new(helm, warnings).coalesce(chart, given)
}
