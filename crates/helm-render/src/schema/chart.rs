//! A chart and its dependencies, each against its own schema.

use serde_json::{Map, Value};

use super::{Compiled, Error};
use crate::chart::Chart;

/// Checks the values of a chart and of its dependencies, which stand under their names.
///
/// The error lists every chart whose values do not fit, its name on a line of its own.
pub fn check_chart(chart: &Chart, values: &Map<String, Value>) -> Result<(), Error> {
    let mut problems = String::new();
    check_into(chart, values, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error(problems))
}

fn check_into(chart: &Chart, values: &Map<String, Value>, problems: &mut String) {
    if let Some(schema) = &chart.content.schema
        && let Err(problem) = check(chart.name(), values, &schema.data)
    {
        problems.push_str(&problem.0);
    }
    for dependency in &chart.dependencies {
        match values.get(dependency.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => check_into(dependency, values, problems),
            Some(other) => problems.push_str(&format!(
                "{}:\ninvalid type for values: expected object (map), got {}\n",
                dependency.name(),
                go_type(other)
            )),
        }
    }
}

/// Checks values against one schema; the error starts with the chart's name.
pub fn check(chart_name: &str, values: &Map<String, Value>, schema: &[u8]) -> Result<(), Error> {
    Compiled::new(schema)
        .and_then(|schema| schema.check(values))
        .map_err(|Error(problem)| Error(format!("{chart_name}:\n{problem}")))
}

/// What Go's `%T` prints of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
