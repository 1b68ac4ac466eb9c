//! Which dependencies take part: aliases, versions, tags and conditions (`processDependencyEnabled`).

use go_semver::{Constraints, Version};
use go_template::{Map, Value};

use super::graph::{ChartId, DependencyId, Graph};
use super::log::warning;
use crate::values::{Coalescer, path_value, table};
use helm_chart::{Error, Helm, Warning};

/// Processes a chart, then those in it. `path` is where the values of this chart stand in those of the root, with a dot
/// behind it.
///
/// The charts below are given the composed values of the chart that holds them, as Helm does, though their own values
/// stand one level deeper there: conditions are paths from the root.
pub(super) fn process(
    graph: &mut Graph<'_>,
    chart: ChartId,
    given: &Map,
    path: &str,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    let Some(named) = graph.named(chart) else {
        return Ok(());
    };
    let charts = chosen(graph, chart, &named, helm);
    graph.set_charts(chart, charts);
    for dependency in &named {
        graph.dependency_mut(*dependency).enabled = true;
    }
    let values = Coalescer::new(helm, warnings).coalesce(graph.view(chart), given)?;
    apply_tags(graph, &named, &values, helm, warnings);
    apply_conditions(graph, &named, &values, path, helm, warnings);
    let charts = remove_disabled(graph, chart, &named);
    let kept = kept(graph, &named);
    for below in &charts {
        let path = format!("{path}{}.", graph.name(*below));
        process(graph, *below, &values, &path, helm, warnings)?;
    }
    graph.set_named(chart, kept);
    graph.set_charts(chart, charts);
    Ok(())
}

/// Picks the charts that take part as far as names and versions say: first those that Chart.yaml does not name, then a copy
/// for each that it does.
fn chosen(graph: &mut Graph<'_>, chart: ChartId, named: &[DependencyId], helm: Helm) -> Vec<ChartId> {
    let held = graph.charts(chart);
    let is_named = |below: &ChartId| named.iter().any(|id| is_wanted(graph, *id, *below));
    let mut charts: Vec<ChartId> = held.iter().copied().filter(|below| !is_named(below)).collect();
    for id in named {
        let alias = graph.dependency(*id).alias.clone();
        if let Some(below) = held.iter().copied().find(|below| is_wanted(graph, *id, *below)) {
            let copied = match helm {
                Helm::V3 => graph.copy_shallow(below),
                Helm::V4 => graph.copy_deeper(below),
            };
            if !alias.is_empty() {
                graph.set_name(copied, alias.clone());
            }
            charts.push(copied);
        }
        if !alias.is_empty() {
            graph.dependency_mut(*id).name = alias;
        }
    }
    charts
}

fn is_wanted(graph: &Graph<'_>, id: DependencyId, chart: ChartId) -> bool {
    let dependency = graph.dependency(id);
    dependency.name == graph.name(chart) && is_compatible(&dependency.version, graph.version(chart))
}

/// Returns whether a version lies in a range; what cannot be parsed never does.
fn is_compatible(range: &str, version: &str) -> bool {
    match (Version::parse(version), Constraints::parse(range)) {
        (Ok(version), Ok(range)) => range.check(&version),
        _ => false,
    }
}

/// One true tag enables a dependency; without one, a false tag disables it.
fn apply_tags(
    graph: &mut Graph<'_>,
    named: &[DependencyId],
    values: &Map,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) {
    let Ok(tags) = table(values, "tags") else {
        return;
    };
    for id in named {
        let dependency = graph.dependency(*id);
        let (mut has_true, mut has_false) = (false, false);
        for tag in &dependency.tags {
            match tags.get(tag) {
                None => {}
                Some(Value::Bool(true)) => has_true = true,
                Some(Value::Bool(false)) => has_false = true,
                Some(_) => {
                    let name = &dependency.name;
                    let sentence = format!("Warning: Tag '{tag}' for chart {name} returned non-bool value");
                    let attributes = [("tag", tag.as_str()), ("chart", name)];
                    warnings.push(warning(helm, sentence, "returned non-bool value", &attributes));
                }
            }
        }
        graph.dependency_mut(*id).enabled = has_true || !has_false;
    }
}

/// The first path of a condition that holds a boolean decides, whatever the tags said.
fn apply_conditions(
    graph: &mut Graph<'_>,
    named: &[DependencyId],
    values: &Map,
    path: &str,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) {
    for id in named {
        let dependency = graph.dependency(*id);
        let mut decision = None;
        // Only the ends of the whole text are trimmed.
        for condition in dependency
            .condition
            .trim()
            .split(',')
            .filter(|path| !path.is_empty())
        {
            match path_value(values, &format!("{path}{condition}")) {
                Ok(Value::Bool(enabled)) => {
                    decision = Some(enabled);
                    break;
                }
                Ok(_) => {
                    let name = &dependency.name;
                    let sentence = format!(
                        "Warning: Condition path '{condition}' for chart {name} returned non-bool value"
                    );
                    let attributes = [("path", condition), ("chart", name)];
                    warnings.push(warning(helm, sentence, "returned non-bool value", &attributes));
                }
                Err(_) => {}
            }
        }
        if let Some(enabled) = decision {
            graph.dependency_mut(*id).enabled = enabled;
        }
    }
}

/// Returns the charts of a chart without the disabled ones. Only names count: a chart that Chart.yaml does not name goes
/// as well if a disabled dependency has its name.
fn remove_disabled(graph: &Graph<'_>, chart: ChartId, named: &[DependencyId]) -> Vec<ChartId> {
    let mut charts = graph.charts(chart);
    charts.retain(|below| !is_disabled(graph, named, graph.name(*below)));
    charts
}

/// Returns what stays of the dependencies that Chart.yaml names.
fn kept(graph: &Graph<'_>, named: &[DependencyId]) -> Vec<DependencyId> {
    let ids = named.iter().copied();
    ids.filter(|id| !is_disabled(graph, named, &graph.dependency(*id).name))
        .collect()
}

fn is_disabled(graph: &Graph<'_>, named: &[DependencyId], name: &str) -> bool {
    let mut dependencies = named.iter().map(|id| graph.dependency(*id));
    dependencies.any(|dependency| !dependency.enabled && dependency.name == name)
}
