//! Runs a template with Go's own functions only, as hack/oracle/helm/plain.go does.

use go_template::{Functions, Limits, List, MissingKey, Options, Templates, Value, on_stack};
use helm_chart::Helm;
use serde_json::Value as Json;

use super::text_cases::{Answer, Case};

const NAME: &str = "page";

/// As much as Go would take for templates that call themselves.
const STACK: usize = 512 * 1024 * 1024;

/// Gives what the template makes of its values.
pub fn execute(case: &Case) -> Answer {
    on_stack(STACK + 1024 * 1024, || here(case)).expect("a thread")
}

fn here(case: &Case) -> Answer {
    let data = helm_chart::values::read(case.values.as_bytes(), Helm::V4).expect("values");
    let data = value(&Json::Object(data));
    let functions = Functions::default();
    let mut options = Options {
        limits: Limits {
            stack: STACK,
            ..Limits::default()
        },
        ..Options::default()
    };
    for option in &case.options {
        options.missing_key = match option.as_str() {
            "missingkey=error" => MissingKey::Error,
            "missingkey=zero" => MissingKey::Zero,
            _ => MissingKey::default(),
        };
    }
    let mut templates = Templates::new(NAME);
    templates
        .parse(NAME, case.template.as_str(), &functions)
        .and_then(|()| templates.execute(NAME, &data, &functions, &options))
        .map_err(|error| error.to_string())
}

/// Whole numbers are int64 here, unlike in a chart.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => {
            let number = number.as_f64().expect("a float");
            if number.trunc() == number && number.abs() < 9_007_199_254_740_992.0 {
                Value::int64(number as i64)
            } else {
                Value::Float(number)
            }
        }
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::List(List::from(items.iter().map(value).collect::<Vec<_>>())),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, item)| (key.as_str(), value(item)));
            Value::Map(entries.collect())
        }
    }
}
