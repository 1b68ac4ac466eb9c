//! `.Files`: the files of a chart that are no templates, with methods to read them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_template::{Context, Error, Function, Kind, List, Map, Str, Type, TypeInfo, Value};

use crate::functions::yaml;
use crate::glob::Glob;
use crate::manifest::base;
use helm_chart::Content;

static FILES: TypeInfo = TypeInfo {
    named: true,
    method: Some(method),
    ..TypeInfo::new("engine.files", Kind::Map, Type::BYTES)
};

/// Makes `.Files`.
pub(super) fn files_data(content: &Content) -> Value {
    let files = content.files.iter();
    let entries = files.map(|file| (Str::from(&file.name), Value::Bytes(file.data.clone())));
    Map::with_entries(Type::new(&FILES), entries.collect()).into()
}

fn method(name: &str) -> Option<Function> {
    const NAME: &[Type] = &[Type::STRING];
    Some(match name {
        "Get" => Function::new(NAME, |_, arguments| Ok(Value::String(bytes(arguments)))),
        "GetBytes" => Function::new(NAME, |_, arguments| Ok(Value::Bytes(bytes(arguments)))),
        "Glob" => Function::new(NAME, |_, arguments| Ok(matching(arguments))),
        "Lines" => Function::new(NAME, |_, arguments| Ok(lines(&bytes(arguments)))),
        "AsConfig" => Function::new(&[], |context, arguments| {
            flattened(context, &arguments[0], |content| Value::String(content.clone()))
        }),
        "AsSecrets" => Function::new(&[], |context, arguments| {
            flattened(context, &arguments[0], |content| STANDARD.encode(content).into())
        }),
        _ => return None,
    })
}

/// Returns the content of the named file; nothing for a file that is not there.
fn bytes(arguments: &[Value]) -> Str {
    let found = match arguments {
        [Value::Map(files), Value::String(name)] => files.get(name),
        _ => None,
    };
    match found {
        Some(Value::Bytes(content)) => content,
        _ => Str::default(),
    }
}

/// Returns the files whose names fit a pattern.
fn matching(arguments: &[Value]) -> Value {
    let [Value::Map(files), Value::String(pattern)] = arguments else {
        return Value::Nil;
    };
    let glob = Glob::new(pattern);
    let entries = files.entries().into_iter();
    let entries = entries.filter(|(name, _)| glob.matches(name));
    Map::with_entries(Type::new(&FILES), entries.collect()).into()
}

fn lines(content: &Str) -> Value {
    if content.is_empty() {
        return List::of_strings(Vec::<Str>::new()).into();
    }
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    List::of_strings(content.split(|byte| *byte == b'\n')).into()
}

/// Writes the files as YAML, each under the last element of its name.
fn flattened(context: &mut Context<'_>, files: &Value, show: impl Fn(&Str) -> Value) -> Result<Value, Error> {
    let Some(files) = files.as_map().filter(|files| !files.is_nil()) else {
        return Ok("".into());
    };
    let entries = files
        .entries()
        .into_iter()
        .filter_map(|(name, content)| match content {
            Value::Bytes(content) => Some((Str::from(base(&name.to_text())), show(&content))),
            _ => None,
        });
    let flat = Map::with_entries(Type::MAP_STRING, entries.collect());
    Ok(yaml::to_yaml(context, &Value::Map(flat))?.into())
}
