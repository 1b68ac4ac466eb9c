//! Parameters in the template of an ApplicationSet: plain ones (`{{name}}`), or Go templates (`goTemplate: true`).

use std::time::Duration;

use go_template::json;
use go_template::{
    Error, Function, Functions, Limits, MissingKey, Options, Render, Templates, Type, on_stack,
};
use resource_set::functions::{slug, to_yaml};
use serde_json::{Map, Value, json};

use super::parameters::{Parameters, flattened, normalized};

/// Functions of sprig that Argo CD takes away.
const REMOVED: [&str; 3] = ["env", "expandenv", "getHostByName"];
/// Bytes of stack for a template.
const STACK: usize = 8 << 20;
/// What one text may cost.
const BYTES: usize = 1 << 20;
const STEPS: u64 = 1_000_000;
const TIME: Duration = Duration::from_secs(5);
/// As long as a label may be, and what `slugify` makes of a text where it is not told how long.
const LONGEST_SLUG: usize = 50;

/// How parameters are named, and filled in.
pub(super) enum Filling {
    /// By their paths: `metadata.labels.env`. What is not known stays in braces.
    Plain,
    /// As fields of one value.
    Go(MissingKey),
}

impl Filling {
    /// What an ApplicationSet asks for.
    pub(super) fn of(set: &Value) -> Self {
        if set["spec"]["goTemplate"] != true {
            return Self::Plain;
        }
        let options = crate::list(set, "/spec/goTemplateOptions");
        let missing = options
            .iter()
            .filter_map(Value::as_str)
            .find_map(|option| option.strip_prefix("missingkey="));
        Self::Go(match missing {
            Some("error") => MissingKey::Error,
            Some("zero") => MissingKey::Zero,
            _ => MissingKey::default(),
        })
    }

    /// Parameters under their names.
    pub(super) fn named(&self, parameters: &Map<String, Value>) -> Parameters {
        match self {
            Self::Plain => {
                let flat = flattened(parameters).into_iter();
                flat.map(|(name, value)| (name, value.into())).collect()
            }
            Self::Go(_) => parameters.clone(),
        }
    }

    /// The parameters about a folder, or about a file in it.
    pub(super) fn of_path(&self, folder: &str, file: Option<&str>, prefix: &str) -> Parameters {
        let basename = folder.rsplit('/').next().unwrap_or_default();
        let segments: Vec<&str> = folder.split('/').collect();
        let mut parameters = Parameters::new();
        match self {
            Self::Plain => {
                let path = match prefix {
                    "" => "path".to_owned(),
                    prefix => format!("{prefix}.path"),
                };
                parameters.insert(format!("{path}.basename"), basename.into());
                parameters.insert(format!("{path}.basenameNormalized"), normalized(basename).into());
                for (number, segment) in segments.iter().enumerate() {
                    parameters.insert(format!("{path}[{number}]"), (*segment).into());
                }
                if let Some(file) = file {
                    parameters.insert(format!("{path}.filename"), file.into());
                    parameters.insert(format!("{path}.filenameNormalized"), normalized(file).into());
                }
                parameters.insert(path, folder.into());
            }
            Self::Go(_) => {
                let mut path = json!({"path": folder, "basename": basename, "basenameNormalized": normalized(basename),
                    "segments": segments});
                if let Some(file) = file {
                    path["filename"] = file.into();
                    path["filenameNormalized"] = normalized(file).into();
                }
                let below = match prefix {
                    "" => path,
                    _ => json!({"path": path}),
                };
                let name = if prefix.is_empty() { "path" } else { prefix };
                parameters.insert(name.to_owned(), below);
            }
        }
        parameters
    }

    /// Fills in the parameters; returns how many are still in braces.
    pub(super) fn fill(&self, value: &mut Value, parameters: &Parameters) -> Result<usize, String> {
        match self {
            Self::Plain => Ok(fill_plain(value, parameters)),
            Self::Go(missing) => {
                let data = Value::Object(parameters.clone()).to_string();
                let filled = on_stack(STACK, || {
                    let mut value = value.clone();
                    fill_go(&mut value, &data, *missing, &functions()).map(|()| value)
                });
                *value = filled.map_err(|error| error.to_string())??;
                Ok(0)
            }
        }
    }
}

fn fill_plain(value: &mut Value, parameters: &Parameters) -> usize {
    match value {
        Value::String(text) => {
            let (filled, left) = filled(text, parameters);
            *text = filled;
            left
        }
        Value::Array(items) => items.iter_mut().map(|item| fill_plain(item, parameters)).sum(),
        Value::Object(fields) => {
            let mut left = 0;
            let mut made = Map::new();
            for (key, mut field) in std::mem::take(fields) {
                let (key, left_in_key) = filled(&key, parameters);
                left += left_in_key + fill_plain(&mut field, parameters);
                made.insert(key, field);
            }
            *fields = made;
            left
        }
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
        let name = action[2..action.len() - 2].trim();
        match parameters.get(name) {
            Some(Value::String(value)) => made.push_str(value),
            _ => {
                left += 1;
                made.push_str(action);
            }
        }
        rest = &rest[begin + length + 2..];
    }
    made.push_str(rest);
    (made, left)
}

fn fill_go(value: &mut Value, data: &str, missing: MissingKey, functions: &Functions) -> Result<(), String> {
    match value {
        Value::String(text) => *text = rendered(text, data, missing, functions)?,
        Value::Array(items) => {
            for item in items {
                fill_go(item, data, missing, functions)?;
            }
        }
        Value::Object(fields) => {
            let mut made = Map::new();
            for (key, mut field) in std::mem::take(fields) {
                fill_go(&mut field, data, missing, functions)?;
                made.insert(rendered(&key, data, missing, functions)?, field);
            }
            *fields = made;
        }
        _ => {}
    }
    Ok(())
}

fn rendered(text: &str, data: &str, missing: MissingKey, functions: &Functions) -> Result<String, String> {
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    let failed = |error: Error| format!("{text:?}: {error}");
    let mut templates = Templates::new("template");
    templates.parse("template", text, functions).map_err(failed)?;
    let options = Options {
        missing_key: missing,
        limits: Limits {
            stack: STACK - (512 << 10),
            bytes: BYTES,
            steps: STEPS,
            time: Some(TIME),
            ..Limits::default()
        },
    };
    let data = json::decode(data).map_err(failed)?;
    let made = Render::new(&templates, functions, &options).execute("template", &data);
    Ok(String::from_utf8_lossy(&made.map_err(failed)?).into_owned())
}

fn functions() -> Functions {
    let mut functions = sprig_functions::all();
    for name in REMOVED {
        functions.remove(name);
    }
    functions.add(
        "normalize",
        Function::new(&[Type::STRING], |_, arguments| {
            let text = arguments[0].as_string().map(|text| text.to_text().into_owned());
            Ok(normalized(&text.unwrap_or_default()).into())
        }),
    );
    functions.add(
        "slugify",
        Function::new(&[Type::STRING], |_, arguments| {
            let text = arguments[0].as_string().map(|text| text.to_text().into_owned());
            Ok(slug(&text.unwrap_or_default(), LONGEST_SLUG).into())
        }),
    );
    functions.add("toYaml", to_yaml());
    for name in ["fromYaml", "fromYamlArray"] {
        functions.add(
            name,
            Function::new(&[Type::STRING], |context, arguments| {
                let text = arguments[0].as_string().map(|text| text.to_text().into_owned());
                let text = text.unwrap_or_default();
                context.charge(text.len())?;
                let documents = manifest::yaml::read_documents(&text, "");
                let documents = documents.map_err(|error| Error::new(error.to_string()))?;
                let value = documents.into_iter().next().map(|document| document.value);
                json::decode(value.unwrap_or_default().to_string())
            }),
        );
    }
    functions
}
