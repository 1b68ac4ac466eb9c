//! Helm's `Values`: a map with methods, which is the type of `.`, `.Values` and `.Template`.

use go_template::{Context, Error, Function, Kind, Map, Type, TypeInfo, Value};

use crate::functions::yaml;
use crate::values;
use helm_chart::Helm;

const fn values_info(name: &'static str) -> TypeInfo {
    TypeInfo {
        named: true,
        method: Some(method),
        ..TypeInfo::new(name, Kind::Map, Type::ANY)
    }
}

static V3: TypeInfo = values_info("chartutil.Values");
static V4: TypeInfo = values_info("common.Values");

/// Returns the type.
pub(super) fn values_type(helm: Helm) -> Type {
    Type::new(match helm {
        Helm::V3 => &V3,
        Helm::V4 => &V4,
    })
}

fn method(name: &str) -> Option<Function> {
    const PATH: &[Type] = &[Type::STRING];
    Some(match name {
        "AsMap" => Function::new(&[], |_, arguments| Ok(as_map(&arguments[0]))),
        "YAML" => Function::new(&[], as_yaml),
        "Table" => Function::new(PATH, |_, arguments| {
            let (values, path) = receiver_and_path(arguments);
            let table = values::table(&values, &path).map_err(|error| Error::new(error.to_string()))?;
            Ok(table.with_type(values.type_()).into())
        }),
        "PathValue" => Function::new(PATH, |_, arguments| {
            let (values, path) = receiver_and_path(arguments);
            if path.is_empty() {
                return Err(Error::new("YAML path cannot be empty"));
            }
            values::path_value(&values, &path).map_err(|error| Error::new(error.to_string()))
        }),
        _ => return None,
    })
}

fn receiver_and_path(arguments: &[Value]) -> (Map, String) {
    let values = arguments[0].as_map().cloned().unwrap_or_default();
    let path = arguments.get(1).and_then(Value::as_string);
    (
        values,
        path.map(|path| path.to_text().into_owned()).unwrap_or_default(),
    )
}

fn as_map(values: &Value) -> Value {
    match values {
        Value::Map(values) if !values.is_empty() => values.with_type(Type::MAP_ANY).into(),
        _ => Map::new().into(),
    }
}

fn as_yaml(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let text = yaml::marshal(context, &arguments[0])?;
    Ok(text.into())
}
