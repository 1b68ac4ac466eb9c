//! Which of a chart's dependencies take part, under which name, and which of their values the chart imports.
//!
//! Between loading and composing values (Helm's `ProcessDependencies`): a loaded chart and the given values go in, a chart
//! comes out whose disabled dependencies are gone, whose aliases are charts of their own and whose default values hold
//! what it imports. Files, templates and values that nobody changed are shared with the loaded chart.

mod enabled;
mod graph;
mod import;
mod log;

use go_template::Map;

use crate::chart::{Chart, Error};
use crate::{Helm, Warning};
use graph::Graph;

/// Processes the dependencies of a loaded chart for given values.
///
/// Charts of charts/ that Chart.yaml does not name always take part. Those that it names are looked for by name and
/// version; one that is not found is passed over here ([`crate::chart::check_dependencies`] asks for names only).
pub fn process(chart: &Chart, given: &Map, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    if chart.dependencies.is_empty() && chart.metadata.dependencies.is_none() {
        return Ok(chart.clone());
    }
    let mut graph = Graph::of(chart);
    let root = graph.root();
    enabled::process(&mut graph, root, given, "", helm, warnings).map_err(|error| match helm {
        Helm::V3 => error,
        Helm::V4 => error.within("chart dependencies processing failed"),
    })?;
    import::process(&mut graph, root, helm, warnings).map_err(|error| match helm {
        Helm::V3 => error,
        Helm::V4 => error.within("chart dependencies processing failed"),
    })?;
    Ok(graph.into_chart())
}
