//! `import-values`: values of dependencies that become defaults of the chart that holds them.

use go_template::{Map, Value};
use serde_json::{Value as Json, json};

use super::graph::{ChartId, DependencyId, Graph};
use super::log::warning;
use crate::values::{
    Coalescer, NotFound, Nulls, check_bounds, copy, lay_under, plain, put, table, value_from_json,
};
use helm_chart::{Error, Helm, Warning};

/// Imports into all charts, from the innermost outwards.
pub(super) fn process(
    graph: &mut Graph<'_>,
    chart: ChartId,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    for below in graph.charts(chart) {
        process(graph, below, helm, warnings)?;
    }
    import(graph, chart, helm, warnings)
}

/// Gives a chart with named dependencies new defaults: its own, its dependencies', and below them what it imports.
fn import(
    graph: &mut Graph<'_>,
    chart: ChartId,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    let Some(named) = graph.named(chart) else {
        return Ok(());
    };
    let values = Coalescer::new(helm, warnings).merge_defaults(graph.view(chart))?;
    let mut importer = Importer {
        values: &values,
        imported: Map::new(),
        helm,
        warnings,
    };
    for id in named {
        importer.import_from(graph, id)?;
    }
    let imported = importer.imported;
    // Tables that were imported are still those of the dependencies, which may have grown meanwhile.
    let values = copy(&values);
    lay_under(&values, &imported, "", Nulls::Keep, warnings)?;
    check_bounds(&values)?;
    graph.set_values(chart, values);
    Ok(())
}

struct Importer<'a> {
    values: &'a Map,
    imported: Map,
    helm: Helm,
    warnings: &'a mut Vec<Warning>,
}

impl Importer<'_> {
    /// Imports from one dependency, and writes its imports down as templates will see them.
    fn import_from(&mut self, graph: &mut Graph<'_>, id: DependencyId) -> Result<(), Error> {
        let imports = graph.take_imports(id);
        let name = &graph.dependency(id).name;
        let mut seen = Vec::new();
        for import in &imports {
            match import {
                Json::Object(fields) => {
                    let field = |key| fields.get(key).map_or_else(|| "<nil>".to_owned(), shown);
                    let (child, parent) = (field("child"), field("parent"));
                    seen.push(json!({"child": child, "parent": parent}));
                    match table(self.values, &format!("{name}.{child}")) {
                        Ok(found) => self.take(&at_path(&parent, found))?,
                        Err(error) => self.warn_of_chart(name, &error),
                    }
                }
                Json::String(export) => {
                    let child = format!("exports.{export}");
                    seen.push(json!({"child": child, "parent": "."}));
                    match table(self.values, &format!("{name}.{child}")) {
                        Ok(found) => self.take(&or_new(found))?,
                        Err(error) => self.warn(&error),
                    }
                }
                _ => {}
            }
        }
        graph.dependency_mut(id).import_values = seen;
        Ok(())
    }

    /// Lays a table under what was imported so far. Both hold tables of the dependencies, which may come to hold each
    /// other: that is looked at each time, before anything follows them.
    fn take(&mut self, found: &Map) -> Result<(), Error> {
        lay_under(&self.imported, found, "", Nulls::Keep, self.warnings)?;
        check_bounds(&self.imported)?;
        check_bounds(self.values)
    }

    fn warn_of_chart(&mut self, chart: &str, error: &NotFound) {
        let error = error.to_string();
        let sentence = format!("Warning: ImportValues missing table from chart {chart}: {error}");
        let message = "ImportValues missing table from chart";
        let attributes = [("chart", chart), ("error", &error)];
        self.warnings
            .push(warning(self.helm, sentence, message, &attributes));
    }

    fn warn(&mut self, error: &NotFound) {
        let error = error.to_string();
        let sentence = format!("Warning: ImportValues missing table: {error}");
        let message = "ImportValues missing table";
        self.warnings
            .push(warning(self.helm, sentence, message, &[("error", &error)]));
    }
}

/// Puts a table into new tables, one for each part of a path; `.` is the table itself.
fn at_path(path: &str, found: Map) -> Map {
    let found = or_new(found);
    if path == "." {
        return found;
    }
    path.rsplit('.').fold(found, |below, key| {
        let table = Map::new();
        put(&table, key, Value::Map(below));
        table
    })
}

/// Go hands out a new map for an empty one, so what is imported into it stays there.
fn or_new(found: Map) -> Map {
    if found.is_empty() { Map::new() } else { found }
}

fn shown(value: &Json) -> String {
    plain(&value_from_json(value))
}
