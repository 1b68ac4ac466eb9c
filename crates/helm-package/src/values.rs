//! Files with values that become the defaults of a chart: merged in order, written as Go writes YAML.

use std::sync::Arc;

use helm_chart::values::{merge, read};
use helm_chart::{Chart, Content, File, Helm};
use manifest::yaml;
use manifest::yaml::number::float_to_json;
use serde_json::{Map, Value};

use crate::error::{Error, Step, Words, during};
use crate::files::{self, Files, What, clean, within};
use crate::{Limits, Options, VALUES};

/// All files with values together, in files of the largest size.
const MAX_LARGEST_FILES: u64 = 4;

/// Values that were merged, and the files that they came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Merged {
    pub(crate) values: Map<String, Value>,
    pub(crate) files: Vec<String>,
}

/// Merges files of a source, whose paths start at its root.
pub(crate) fn of_source(files: &dyn Files, options: &Options) -> Result<Merged, Error> {
    let mut merging = Merging::new(options);
    for path in &options.values_files {
        let inside = within("", path);
        let what = files.what(&inside).map_err(during(Step::Values))?;
        match what {
            Some(What::File(_)) => {}
            None if options.ignore_missing_values_files => continue,
            _ => {
                return Err(refused(format!(
                    "no values file found at path '/{inside}' (reference '{path}')"
                )));
            }
        }
        let data = files::read(files, &inside, options.limits.file)
            .map_err(|error| refused(format!("could not read values from file '{path}': {error}")))?;
        merging.add(path, &data)?;
    }
    Ok(merging.merged)
}

/// Merges files of a chart. values.yaml stands for the defaults that it has.
pub(crate) fn of_chart(chart: &Chart, options: &Options) -> Result<Merged, Error> {
    let mut merging = Merging::new(options);
    for path in &options.values_files {
        let inside = clean(path);
        if inside == VALUES {
            merging.lay_over(path, (*chart.values).clone());
            continue;
        }
        let file = chart.content.files.iter().find(|file| file.name == inside);
        match file {
            Some(file) => merging.add(path, &file.data)?,
            None if options.ignore_missing_values_files => {}
            None => return Err(refused(format!("no values file found at path '{path}'"))),
        }
    }
    Ok(merging.merged)
}

/// Makes values the defaults of a chart. False when they are that already.
pub(crate) fn overwrite(chart: &mut Chart, values: Map<String, Value>) -> Result<bool, Error> {
    let text = encode(&values)?;
    let Some(old) = &chart.content.values else {
        return Err(refused(format!("failed to locate values file: {VALUES}")));
    };
    if *old.data == *text.as_bytes() {
        return Ok(false);
    }
    let file = File {
        name: VALUES.to_owned(),
        data: text.as_str().into(),
    };
    chart.content = Arc::new(Content {
        values: Some(Arc::new(file)),
        ..(*chart.content).clone()
    });
    chart.values = Arc::new(values);
    Ok(true)
}

/// A value whose floats are as JSON shows them: without a fraction where there is none.
pub(crate) fn printable(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().and_then(float_to_json);
            float.unwrap_or_else(|| value.clone())
        }
        Value::Array(items) => items.iter().map(printable).collect(),
        Value::Object(fields) => Value::Object(printable_fields(fields)),
        other => other.clone(),
    }
}

fn printable_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.clone(), printable(value)))
        .collect()
}

/// Nothing at all for no values.
fn encode(values: &Map<String, Value>) -> Result<String, Error> {
    if values.is_empty() {
        return Ok(String::new());
    }
    yaml::write_mapping(&printable_fields(values)).map_err(during(Step::Values))
}

struct Merging<'a> {
    limits: &'a Limits,
    bytes: u64,
    merged: Merged,
}

impl<'a> Merging<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            limits: &options.limits,
            bytes: 0,
            merged: Merged::default(),
        }
    }

    fn add(&mut self, path: &str, data: &[u8]) -> Result<(), Error> {
        let limit = MAX_LARGEST_FILES * self.limits.file;
        self.bytes += data.len() as u64;
        if self.bytes > limit {
            return Err(refused(format!(
                "values files have more than {limit} bytes together"
            )));
        }
        // The first document only, as the library that Flux reads them with.
        let values = read(data, Helm::V3)
            .map_err(|error| refused(format!("unmarshaling values from '{path}' failed: {error}")))?;
        self.lay_over(path, values);
        Ok(())
    }

    fn lay_over(&mut self, path: &str, values: Map<String, Value>) {
        merge(&mut self.merged.values, values);
        self.merged.files.push(path.to_owned());
    }
}

fn refused(text: String) -> Error {
    Error::new(Step::Values, Words(text))
}
