//! A chart and its dependencies, each against its own schema.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::{Compiled, Error};
use crate::Warning;
use crate::chart::{Chart, File};

/// The `values.schema.json` of a chart, compiled when values are first checked against it and kept for all others.
#[derive(Clone, Debug)]
pub struct Schema {
    file: Arc<File>,
    compiled: Arc<OnceLock<Result<Compiled, Error>>>,
}

impl Schema {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            compiled: Arc::default(),
        }
    }

    /// Returns the file, as it was written.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    fn compiled(&self) -> Result<&Compiled, Error> {
        let compiled = self.compiled.get_or_init(|| Compiled::new(&self.file.data));
        compiled.as_ref().map_err(Error::clone)
    }
}

/// Checks the values of a chart and of its dependencies, which stand under their names.
///
/// The error lists every chart whose values do not fit, its name on a line of its own.
pub fn check_chart(
    chart: &Chart,
    values: &Map<String, Value>,
    warnings: &mut Vec<Warning>,
) -> Result<(), Error> {
    let mut problems = String::new();
    check_into(chart, values, &mut problems, warnings);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error(problems))
}

fn check_into(
    chart: &Chart,
    values: &Map<String, Value>,
    problems: &mut String,
    warnings: &mut Vec<Warning>,
) {
    if let Some(schema) = &chart.content.schema
        && let Err(Error(problem)) = check(schema, values, warnings)
    {
        problems.push_str(&format!("{}:\n{problem}", chart.name()));
    }
    for dependency in &chart.dependencies {
        match values.get(dependency.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => check_into(dependency, values, problems, warnings),
            Some(other) => problems.push_str(&format!(
                "{}:\ninvalid type for values: expected object (map), got {}\n",
                dependency.name(),
                go_type(other)
            )),
        }
    }
}

fn check(schema: &Schema, values: &Map<String, Value>, warnings: &mut Vec<Warning>) -> Result<(), Error> {
    let schema = schema.compiled()?;
    warnings.extend(schema.unresolved_urns().iter().map(|urn| {
        Warning::new(format!(
            "unresolved URN reference ignored; using permissive schema urn={urn}"
        ))
    }));
    schema.check(values)
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
