//! A chart and its dependencies, each against its own schema.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use json_schema::Compiled;

use crate::Warning;
use crate::chart::{Chart, File};

/// The charts whose values do not fit their schemas, each with what is wrong, in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The `values.schema.json` of a chart, compiled when values are first checked against it and kept for all others.
#[derive(Clone, Debug)]
pub struct Schema {
    file: Arc<File>,
    compiled: Arc<OnceLock<Result<Compiled, json_schema::Error>>>,
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

    fn compiled(&self) -> Result<&Compiled, json_schema::Error> {
        let compiled = self.compiled.get_or_init(|| Compiled::new(&self.file.data));
        compiled.as_ref().map_err(json_schema::Error::clone)
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
        && let Err(problem) = check(schema, values, warnings)
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

fn check(
    schema: &Schema,
    values: &Map<String, Value>,
    warnings: &mut Vec<Warning>,
) -> Result<(), json_schema::Error> {
    let schema = schema.compiled()?;
    warnings.extend(schema.unresolved_urns().iter().map(|urn| {
        Warning::new(format!(
            "unresolved URN reference ignored; using permissive schema urn={urn}"
        ))
    }));
    schema.check(values)
}

/// Go's name of a value's type, as `%T` prints it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_warns_of_urns_each_time_its_values_are_checked() {
        let file = |name: &str, text: &str| File {
            name: name.to_owned(),
            data: text.into(),
        };
        let files = vec![
            file("Chart.yaml", "apiVersion: v2\nname: demo\nversion: 0.1.0\n"),
            file("values.schema.json", r#"{"$ref":"urn:foo"}"#),
        ];
        let chart = crate::load_files(files, crate::chart::Helm::V4, &mut Vec::new()).expect("valid");
        for _ in 0..2 {
            let mut warnings = Vec::new();
            assert_eq!(check_chart(&chart, &Map::new(), &mut warnings), Ok(()));
            let texts: Vec<_> = warnings.iter().map(crate::Warning::text).collect();
            assert_eq!(
                texts,
                ["unresolved URN reference ignored; using permissive schema urn=urn:foo"]
            );
        }
    }
}
