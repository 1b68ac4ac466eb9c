//! The Applications that an ApplicationSet makes: of lists, and of matrices and merges of lists. Other generators ask something for what
//! there is, which an import cannot: ResourceSets do that.

use serde_json::{Map, Value};

use crate::{Note, list, text};

/// More are not made of one set.
const MOST: usize = 1000;

/// What came of a set.
#[derive(Debug, Default)]
pub struct Made {
    /// The Applications.
    pub applications: Vec<Value>,
    /// What is not made, and why.
    pub notes: Vec<Note>,
}

/// Makes them.
pub fn applications(set: &Value) -> Made {
    let name = format!("ApplicationSet {}", text(set, "/metadata/name"));
    let mut made = Made::default();
    let mut note = |field: &str, text: String| {
        made.notes.push(Note {
            application: name.clone(),
            field: field.to_owned(),
            text,
        });
    };
    let mut parameters = Vec::new();
    for generator in list(set, "/spec/generators") {
        match expanded(generator) {
            Ok(found) => parameters.extend(found),
            Err(text) => note("generators", text),
        }
    }
    if parameters.len() > MOST {
        note(
            "generators",
            format!(
                "it makes {} Applications; the first {MOST} are imported",
                parameters.len()
            ),
        );
        parameters.truncate(MOST);
    }
    if !set["spec"]["templatePatch"].is_null() {
        note("templatePatch", "it is left out".to_owned());
    }
    let mut left = 0;
    for one in parameters {
        let mut application = set["spec"]["template"].clone();
        application["apiVersion"] = "argoproj.io/v1alpha1".into();
        application["kind"] = "Application".into();
        left += fill(&mut application, &one);
        made.applications.push(application);
    }
    if left > 0 {
        made.notes.push(Note {
            application: name,
            field: "template".to_owned(),
            text:
                "only plain parameters are filled in ({{name}}, {{.name}}): look for what is still in braces"
                    .to_owned(),
        });
    }
    made
}

type Parameters = Map<String, Value>;

/// The sets of parameters that a generator makes.
fn expanded(generator: &Value) -> Result<Vec<Parameters>, String> {
    let Some((kind, content)) = generator
        .as_object()
        .and_then(|fields| fields.iter().find(|(key, _)| *key != "selector"))
    else {
        return Ok(Vec::new());
    };
    if !generator["selector"].is_null() {
        return Err(format!("a {kind} generator with a selector is not imported"));
    }
    match kind.as_str() {
        "list" => {
            let elements = list(content, "/elements").iter();
            Ok(elements.filter_map(Value::as_object).cloned().collect())
        }
        "matrix" => {
            let mut all = vec![Parameters::new()];
            for generator in list(content, "/generators") {
                let found = expanded(generator)?;
                if all.len().saturating_mul(found.len()) > MOST {
                    return Err(format!("a matrix that makes more than {MOST} Applications is not imported"));
                }
                let with = |one: &Parameters, more: &Parameters| one.clone().into_iter().chain(more.clone()).collect();
                all = all.iter().flat_map(|one| found.iter().map(move |more| with(one, more))).collect();
            }
            Ok(all)
        }
        "clusters" => Err("the generator clusters is not imported: let each cluster pull by itself, or write a ResourceSet with an input for each".to_owned()),
        "pullRequest" => Err("the generator pullRequest is not imported: write a ResourceSetInputProvider and a ResourceSet".to_owned()),
        other => Err(format!("the generator {other} is not imported: write a ResourceSet, whose inputs are listed or read by a ResourceSetInputProvider")),
    }
}

/// Fills in the parameters; returns how many are still in braces.
fn fill(value: &mut Value, parameters: &Parameters) -> usize {
    match value {
        Value::String(text) => {
            let (filled, left) = filled(text, parameters);
            *text = filled;
            left
        }
        Value::Array(items) => items.iter_mut().map(|item| fill(item, parameters)).sum(),
        Value::Object(fields) => fields.values_mut().map(|field| fill(field, parameters)).sum(),
        _ => 0,
    }
}

fn filled(text: &str, parameters: &Parameters) -> (String, usize) {
    let (mut made, mut rest, mut left) = (String::new(), text, 0);
    while let Some(begin) = rest.find("{{") {
        let Some(length) = rest[begin..].find("}}") else {
            break;
        };
        made.push_str(&rest[..begin]);
        let action = &rest[begin..begin + length + 2];
        let name = action[2..action.len() - 2].trim().trim_start_matches('.');
        match parameter(parameters, name) {
            Some(value) => made.push_str(&value),
            None => {
                left += 1;
                made.push_str(action);
            }
        }
        rest = &rest[begin + length + 2..];
    }
    made.push_str(rest);
    (made, left)
}

/// A parameter by its name, or by its path: `values.region`.
fn parameter(parameters: &Parameters, name: &str) -> Option<String> {
    let found = parameters.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        parameters
            .get(first)?
            .pointer(&format!("/{}", rest.replace('.', "/")))
    })?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(found.to_string()),
        _ => None,
    }
}
