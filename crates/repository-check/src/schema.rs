//! Objects against the schemas of their kinds: those of Flux and Windlass, and those of CustomResourceDefinitions in the repository.
//!
//! What the API server would say about fields: unknown ones, missing ones, wrong types. Texts with a variable in them are left alone.

use std::collections::BTreeMap;

use manifest::Object;
use serde_json::{Map, Value};

use crate::report::{Level, Report};

/// Findings about one object; more say nothing new.
const MAX_FINDINGS: usize = 10;
/// Levels of fields that are looked into.
const MAX_DEPTH: usize = 64;

/// Schemas by group, version and kind.
pub(crate) struct Schemas(BTreeMap<(String, String, String), Value>);

impl Schemas {
    /// Ours, and those of definitions among the objects, which win.
    pub(crate) fn new(objects: &[&Object]) -> Self {
        let mut all = BTreeMap::new();
        for definition in api::crd::all() {
            add(&serde_json::to_value(definition).unwrap_or_default(), &mut all);
        }
        let definitions = objects
            .iter()
            .filter(|object| object.gvk().kind == "CustomResourceDefinition");
        for definition in definitions {
            add(&Value::Object(definition.value().clone()), &mut all);
        }
        Self(all)
    }

    /// Checks one object, if its kind is known.
    pub(crate) fn check(&self, object: &Object, report: &mut Report) {
        let gvk = object.gvk();
        let key = (gvk.group.clone(), gvk.version.clone(), gvk.kind.clone());
        let Some(schema) = self.0.get(&key) else {
            let other = self
                .0
                .keys()
                .find(|(group, _, kind)| (group, kind) == (&gvk.group, &gvk.kind));
            if let Some((_, version, _)) = other {
                let message = format!(
                    "{} {} has no version {}: the newest known is {version}",
                    gvk.group, gvk.kind, gvk.version
                );
                report.add("schema", Level::Error, message).of(object);
            }
            return;
        };
        let mut problems = Vec::new();
        // The API server takes these fields of any kind.
        let own: Map<String, Value> = object
            .value()
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        look("", &Value::Object(own), schema, 0, &mut problems);
        for problem in problems.into_iter().take(MAX_FINDINGS) {
            report.add("schema", Level::Error, problem).of(object);
        }
    }
}

fn add(definition: &Value, all: &mut BTreeMap<(String, String, String), Value>) {
    let text = |pointer: &str| {
        definition
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for version in versions {
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            all.insert((group.clone(), name.to_owned(), kind.clone()), schema.clone());
        }
    }
}

fn look(path: &str, value: &Value, schema: &Value, depth: usize, problems: &mut Vec<String>) {
    let is_set = |field: &str| schema.get(field).and_then(Value::as_bool).unwrap_or_default();
    if depth > MAX_DEPTH || is_variable(value) {
        return;
    }
    if value.is_null() {
        return; // the API server drops it, or takes the default
    }
    let name = if path.is_empty() { "the object" } else { path };
    if is_set("x-kubernetes-int-or-string") {
        if !value.is_string() && !value.is_i64() && !value.is_u64() {
            problems.push(format!(
                "{name} must be a number or a text, and is {}",
                type_of(value)
            ));
        }
        return;
    }
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    };
    if !fits {
        problems.push(format!(
            "{name} must be of the type {wanted}, and is {}",
            type_of(value)
        ));
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        problems.push(format!("{name} must be one of {}", allowed.join(", ")));
    }
    if let (Some(pattern), Some(text)) = (schema.get("pattern").and_then(Value::as_str), value.as_str())
        && let Ok(pattern) = regex::Regex::new(pattern)
        && !pattern.is_match(text)
    {
        problems.push(format!("{name} must match {pattern}"));
    }
    match value {
        Value::Object(fields) => look_at_fields(path, fields, schema, depth, problems),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (at, item) in items.iter().enumerate() {
                look(&format!("{path}[{at}]"), item, schema, depth + 1, problems);
            }
        }
        _ => {}
    }
}

fn look_at_fields(
    path: &str,
    fields: &Map<String, Value>,
    schema: &Value,
    depth: usize,
    problems: &mut Vec<String>,
) {
    let join = |field: &str| match path {
        "" => field.to_owned(),
        path => format!("{path}.{field}"),
    };
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let keeps_all = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    for (field, value) in fields {
        let schema = known
            .and_then(|known| known.get(field))
            .or(others.filter(|others| others.is_object()));
        match schema {
            Some(schema) => look(&join(field), value, schema, depth + 1, problems),
            None if keeps_all
                || others == Some(&Value::Bool(true))
                || (known.is_none() && others.is_none()) => {}
            None => problems.push(format!("{} is no field of this kind", join(field))),
        }
    }
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for field in required.filter_map(Value::as_str) {
        let is_ours = path.is_empty() && matches!(field, "apiVersion" | "kind" | "metadata");
        let has_default = known.is_some_and(|known| {
            known
                .get(field)
                .is_some_and(|field| field.get("default").is_some())
        });
        if !fields.contains_key(field) && !is_ours && !has_default {
            problems.push(format!("{} is missing", join(field)));
        }
    }
}

/// Variables of `postBuild` are filled in later, and may become anything.
fn is_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
