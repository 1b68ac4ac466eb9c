//! Scope of each chart's templates, their `.`: Helm's `recAllTpls`.

use std::sync::Arc;

use go_template::{Map, Type, Value};
use helm_chart::{Chart, File};

use super::capabilities_data::capabilities_data;
use super::chart_data::chart_data;
use super::files_data::files_data;
use super::job::Job;
use super::values_type::values_type;
use crate::manifest::base;
use crate::values;

/// A template of one of the charts.
pub(super) struct Renderable<'a> {
    /// The chart's full path and the file's name, which is the template's name.
    pub(super) path: Arc<str>,
    /// `templates` below the chart's full path.
    pub(super) base_path: Arc<str>,
    /// Which scope it sees: charts are counted as [`scopes`] lists them.
    pub(super) chart: usize,
    /// The file.
    pub(super) file: &'a Arc<File>,
}

/// Lists the templates of a chart and of those below it. Of files with one path the last one counts.
pub(super) fn renderables(chart: &Chart) -> Vec<Renderable<'_>> {
    let mut found = Vec::new();
    let mut next = 0;
    collect(chart, &mut next, &mut found);
    found
}

fn collect<'a>(chart: &'a Chart, next: &mut usize, found: &mut Vec<Renderable<'a>>) {
    let index = *next;
    *next += 1;
    for dependency in &chart.dependencies {
        collect(dependency, next, found);
    }
    let base_path: Arc<str> = format!("{}/templates", chart.path).into();
    let is_library = chart.is_library();
    for file in &chart.content.templates {
        // A library only defines.
        if is_library && !base(&file.name).starts_with('_') {
            continue;
        }
        found.push(Renderable {
            path: format!("{}/{}", chart.path, file.name).into(),
            base_path: base_path.clone(),
            chart: index,
            file,
        });
    }
}

/// Makes what the templates of each chart see, in the order in which a walk from the root meets the charts.
pub(super) fn scopes(job: &Job<'_>) -> Vec<Map> {
    let release = job.release;
    let release: Map = [
        ("Name", Value::from(release.name.as_str())),
        ("Namespace", Value::from(release.namespace.as_str())),
        ("IsUpgrade", Value::Bool(release.is_upgrade)),
        ("IsInstall", Value::Bool(!release.is_upgrade)),
        ("Revision", Value::int(release.revision)),
        ("Service", Value::from("Helm")),
    ]
    .into_iter()
    .collect();
    let capabilities = capabilities_data(job.capabilities, job.helm);
    let values = job.values.with_type(values_type(job.helm));
    let mut scopes = Vec::new();
    add(job, job.chart, &release, &capabilities, values, &mut scopes);
    scopes
}

fn add(
    job: &Job<'_>,
    chart: &Chart,
    release: &Map,
    capabilities: &Value,
    values: Map,
    scopes: &mut Vec<Map>,
) -> Map {
    let subcharts = Map::new();
    let scope: Map = [
        ("Chart", chart_data(chart, job.helm)),
        ("Files", files_data(&chart.content)),
        ("Release", release.clone().into()),
        ("Capabilities", capabilities.clone()),
        ("Values", values.clone().into()),
        ("Subcharts", subcharts.clone().into()),
    ]
    .into_iter()
    .collect();
    scopes.push(scope.clone());
    for dependency in &chart.dependencies {
        // A name with dots leads through tables, as Helm has it.
        let below = values::table(&values, dependency.name()).unwrap_or_default();
        let below = below.with_type(values.type_());
        let below = add(job, dependency, release, capabilities, below, scopes);
        _ = subcharts.insert(dependency.name(), below.with_type(Type::MAP_ANY));
    }
    scope
}
