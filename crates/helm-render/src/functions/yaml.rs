//! `toYaml`, `fromYaml` and their kin: YAML by way of JSON, as sigs.k8s.io/yaml has it.

mod marshal;

use go_template::json::Decoded;
use go_template::{Context, Error, Function, Functions, List, Map, Type, Value};
use manifest::yaml::{self, Dialect, Node, Nodes};
use serde_json::Value as Plain;

pub(crate) use marshal::marshal;

use super::json;
use helm_chart::Helm;

pub(super) fn register(functions: &mut Functions, helm: Helm) {
    functions.add(
        "toYaml",
        Function::new(&[Type::ANY], |context, arguments| {
            Ok(to_yaml(context, &arguments[0])?.into())
        }),
    );
    if helm == Helm::V4 {
        functions.add(
            "mustToYaml",
            Function::new(&[Type::ANY], |context, arguments| {
                Ok(without_end(marshal(context, &arguments[0])?).into())
            }),
        );
    }
    functions.add(
        "fromYaml",
        Function::new(&[Type::STRING], |context, arguments| {
            Ok(json::map_of(read(
                context,
                json::text(&arguments[0]),
                Type::MAP_ANY,
            )?))
        }),
    );
    functions.add(
        "fromYamlArray",
        Function::new(&[Type::STRING], |context, arguments| {
            Ok(json::list_of(read(
                context,
                json::text(&arguments[0]),
                Type::LIST_ANY,
            )?))
        }),
    );
}

/// Writes YAML without a newline at its end; nothing for what cannot be written. Only a bound of the render is an error.
pub(crate) fn to_yaml(context: &mut Context<'_>, value: &Value) -> Result<String, Error> {
    match marshal(context, value) {
        Ok(text) => Ok(without_end(text)),
        Err(error) if error.is_limit() => Err(error),
        Err(_) => Ok(String::new()),
    }
}

fn without_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// Reads the first document of a text: `yaml.Unmarshal` into a map or list.
fn read(context: &mut Context<'_>, text: &[u8], type_: Type) -> Result<Decoded, Error> {
    // Charged before parsing: the nodes of a text can take sixty times its size.
    context.charge(nodes_of(text).saturating_mul(size_of::<Node>()))?;
    Ok(decoded(text, type_))
}

/// Estimates the number of nodes of a text by its separators.
fn nodes_of(text: &[u8]) -> usize {
    let is_separator = |byte: &&u8| matches!(byte, b',' | b'[' | b'{' | b':' | b'\n');
    text.iter().filter(is_separator).count().min(yaml::MAX_NODES)
}

fn decoded(text: &[u8], type_: Type) -> Decoded {
    let refused = |message: String| Decoded {
        value: None,
        error: Some(Error::new(message)),
    };
    let mut nodes = Nodes::default();
    let plain = yaml::compose_first(text, &mut nodes, Dialect::Sigs)
        .and_then(|root| root.map_or(Ok(Plain::Null), |root| yaml::json::decode(&nodes, root)));
    let plain = match plain {
        Ok(plain) => plain,
        Err(problem) => return refused(format!("error converting YAML to JSON: {problem}")),
    };
    let value = match plain {
        // Helm hands in an empty map or list, and nothing is put in.
        Plain::Null if type_ == Type::MAP_ANY => Map::new().into(),
        Plain::Null => List::from(Vec::new()).into(),
        Plain::Object(_) if type_ == Type::MAP_ANY => value(&plain),
        Plain::Array(_) if type_ == Type::LIST_ANY => value(&plain),
        other => {
            let kind = helm_chart::json_kind(&other);
            return refused(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type {type_}"
            ));
        }
    };
    Decoded {
        value: Some(value),
        error: None,
    }
}

/// Makes a value of JSON; every number is a float.
fn value(plain: &Plain) -> Value {
    match plain {
        Plain::Null => Value::Nil,
        Plain::Bool(truth) => Value::Bool(*truth),
        Plain::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        Plain::String(text) => text.as_str().into(),
        Plain::Array(items) => items.iter().map(value).collect::<List>().into(),
        Plain::Object(fields) => {
            let entries = fields.iter().map(|(key, plain)| (key.as_str(), value(plain)));
            entries.collect::<Map>().into()
        }
    }
}
