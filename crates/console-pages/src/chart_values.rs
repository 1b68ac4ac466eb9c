//! Fields for the values of a chart: as its schema has them, or as its defaults are. Pure.
//!
//! Who writes a chart writes these texts: they are shown, and what is typed stays a value of the type that its field has.

use serde_json::{Map, Value, json};

/// Fields that are offered, places that are looked at for them, and levels of mappings that are looked into.
const MAX_FIELDS: usize = 200;
const MAX_PLACES: usize = 5000;
const MAX_DEPTH: usize = 6;
/// What the names of such fields begin with; the type and the place follow: `values:integer:/image/tag`.
const PREFIX: &str = "values:";
/// Characters of a default and of a description that are shown.
const MAX_HINT: usize = 200;

/// A value that can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartValue {
    /// Where it is: a JSON pointer.
    pub pointer: String,
    /// Its type.
    pub kind: Kind,
    /// What it means, and its default.
    pub hint: String,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// One of these.
    Choice(Vec<String>),
}

impl ChartValue {
    /// The name of its field in a form.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}:{}", self.kind.word(), self.pointer)
    }

    /// The path as people write it: `image.tag`.
    pub fn path(&self) -> String {
        let parts = self.pointer.split('/').skip(1);
        let parts: Vec<String> = parts
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect();
        parts.join(".")
    }
}

impl Kind {
    fn word(&self) -> &'static str {
        match self {
            Self::Text | Self::Choice(_) => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The values that a chart takes: those of its schema, else those of its defaults.
pub fn fields(schema: Option<&Value>, defaults: &Value) -> Vec<ChartValue> {
    let mut walk = Walk {
        root: schema.unwrap_or(&Value::Null),
        found: Vec::new(),
        left: MAX_PLACES,
    };
    match schema {
        Some(schema) => walk.schema(schema, defaults, "", 0),
        None => walk.defaults(defaults, "", 0),
    }
    walk.found
}

struct Walk<'s> {
    /// The schema, for references within it.
    root: &'s Value,
    found: Vec<ChartValue>,
    /// Places that may still be looked at: references can make more of a small schema than anyone can wait for.
    left: usize,
}

impl Walk<'_> {
    fn may_go_on(&mut self, depth: usize) -> bool {
        let may = depth <= MAX_DEPTH && self.left > 0 && self.found.len() < MAX_FIELDS;
        self.left = self.left.saturating_sub(1);
        may
    }

    fn schema(&mut self, at: &Value, default: &Value, pointer: &str, depth: usize) {
        if !self.may_go_on(depth) {
            return;
        }
        if let Some(reference) = at.get("$ref").and_then(Value::as_str) {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.root.pointer(pointer));
            if let Some(target) = target {
                self.schema(target, default, pointer, depth + 1);
            }
            return;
        }
        if let Some(properties) = at.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let below = format!("{pointer}/{}", escaped(name));
                self.schema(property, &default[name], &below, depth + 1);
            }
            return;
        }
        let Some(kind) = kind_of(at) else {
            return;
        };
        let text = |name: &str| at.get(name).and_then(Value::as_str).unwrap_or_default();
        let said = match text("description") {
            "" => text("title"),
            said => said,
        };
        let default = if default.is_null() {
            &at["default"]
        } else {
            default
        };
        self.found.push(ChartValue {
            pointer: pointer.to_owned(),
            kind,
            hint: hint(said, default),
        });
    }

    fn defaults(&mut self, at: &Value, pointer: &str, depth: usize) {
        if !self.may_go_on(depth) {
            return;
        }
        let kind = match at {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.defaults(value, &format!("{pointer}/{}", escaped(name)), depth + 1);
                }
                return;
            }
            Value::String(_) => Kind::Text,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::Null | Value::Array(_) => return,
        };
        self.found.push(ChartValue {
            pointer: pointer.to_owned(),
            kind,
            hint: hint("", at),
        });
    }
}

fn kind_of(at: &Value) -> Option<Kind> {
    let words = at.get("enum").and_then(Value::as_array);
    if let Some(words) = words.filter(|words| words.iter().all(Value::is_string)) {
        let words = words.iter().filter_map(Value::as_str).map(str::to_owned);
        return Some(Kind::Choice(words.collect()));
    }
    let type_ = match &at["type"] {
        Value::String(one) => one.as_str(),
        // `["string", "null"]` is a text that may be left out.
        Value::Array(several) => {
            let mut several = several
                .iter()
                .filter_map(Value::as_str)
                .filter(|one| *one != "null");
            let first = several.next()?;
            if several.next().is_some() {
                return None;
            }
            first
        }
        _ => return None,
    };
    match type_ {
        "string" => Some(Kind::Text),
        "integer" => Some(Kind::Integer),
        "number" => Some(Kind::Number),
        "boolean" => Some(Kind::Boolean),
        _ => None,
    }
}

fn hint(said: &str, default: &Value) -> String {
    let cut = |text: &str| text.chars().take(MAX_HINT).collect::<String>();
    // Go's decoder makes a float of each number.
    let whole = default
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    let default = &whole.map_or_else(|| default.clone(), |number| json!(number as i64));
    match default {
        Value::Null | Value::Array(_) | Value::Object(_) => cut(said),
        default if said.is_empty() => format!("default: {}", cut(&default.to_string())),
        default => format!(
            "{} (default: {})",
            cut(said.trim_end_matches('.')),
            cut(&default.to_string())
        ),
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Puts what was typed into the values, where their mapping does not say it already.
///
/// # Errors
/// When what was typed is not of the type of its field.
pub(crate) fn put(values: &mut Value, name: &str, typed: &str) -> Result<(), String> {
    let Some((kind, pointer)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':')) else {
        return Ok(());
    };
    let wrong = |what: &str| format!("values{}: it must be {what}", pointer.replace('/', "."));
    let value = match (kind, typed) {
        (_, "") => return Ok(()),
        ("integer", typed) => json!(typed.parse::<i64>().map_err(|_| wrong("a whole number"))?),
        ("number", typed) => {
            // A whole number stays one.
            let whole = typed.parse::<i64>().ok().map(|whole| json!(whole));
            let other = || {
                typed
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite())
                    .map(|number| json!(number))
            };
            whole.or_else(other).ok_or_else(|| wrong("a number"))?
        }
        ("boolean", typed) => json!(typed.parse::<bool>().map_err(|_| wrong("true or false"))?),
        (_, typed) => json!(typed),
    };
    let mut at = values;
    for part in pointer.split('/').skip(1).take(MAX_DEPTH + 1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else {
            return Ok(());
        };
        let part = part.replace("~1", "/").replace("~0", "~");
        at = fields.entry(part).or_insert(Value::Null);
    }
    if at.is_null() {
        *at = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "definitions": {"loop": {"properties": {"again": {"$ref": "#/definitions/loop"}, "name": {"type": "string"}}}},
            "properties": {
                "image": {"properties": {
                    "tag": {"type": "string", "description": "Tag of the image."},
                    "pullPolicy": {"enum": ["Always", "Never"]},
                }},
                "replicas": {"type": "integer"},
                "a/b": {"type": ["boolean", "null"]},
                "list": {"type": "array"},
                "either": {"type": ["string", "integer"]},
                "loop": {"$ref": "#/definitions/loop"},
                "away": {"$ref": "https://example.com/schema.json"},
            },
        })
    }

    #[test]
    fn fields_are_those_of_the_schema() {
        let found = fields(Some(&schema()), &json!({"replicas": 2.0, "image": {"tag": "v1"}}));
        let of = |path: &str| found.iter().find(|one| one.path() == path);
        assert_eq!(
            of("image.tag").unwrap().hint,
            "Tag of the image (default: \"v1\")"
        );
        assert_eq!(
            of("image.pullPolicy").unwrap().kind,
            Kind::Choice(vec!["Always".to_owned(), "Never".to_owned()])
        );
        assert_eq!(of("replicas").unwrap().hint, "default: 2");
        assert_eq!(of("a/b").unwrap().name(), "values:boolean:/a~1b");
        assert!(of("list").is_none() && of("either").is_none() && of("away").is_none());
        assert!(of("loop.name").is_some() && found.len() < 20, "{}", found.len());
    }

    #[test]
    fn a_schema_that_explodes_ends() {
        let again: Map<String, Value> = (0..500)
            .map(|at| (format!("p{at}"), json!({"$ref": "#/definitions/again"})))
            .collect();
        let bomb = json!({"definitions": {"again": {"properties": again}}, "$ref": "#/definitions/again"});
        assert_eq!(fields(Some(&bomb), &Value::Null), []);
    }

    #[test]
    fn without_a_schema_they_are_those_of_the_defaults() {
        let found = fields(
            None,
            &json!({"a": {"b": true}, "c": "x", "d": [1], "e": null, "f": 1.5}),
        );
        let names: Vec<String> = found.iter().map(ChartValue::name).collect();
        assert_eq!(
            names,
            ["values:boolean:/a/b", "values:string:/c", "values:number:/f"]
        );
    }

    #[test]
    fn what_is_typed_is_of_the_type_of_its_field() {
        let mut values = json!({"kept": {"a": 1}});
        for (name, typed) in [
            ("values:integer:/replicas", "3"),
            ("values:number:/ratio", "0.5"),
            ("values:number:/whole", "2"),
            ("values:boolean:/a~1b", "true"),
            ("values:string:/image/tag", "1.10"),
            ("values:string:/empty", ""),
            ("values:integer:/kept/a", "7"),
            ("name", "web"),
        ] {
            put(&mut values, name, typed).unwrap();
        }
        assert_eq!(
            values,
            json!({"kept": {"a": 1}, "replicas": 3, "ratio": 0.5, "whole": 2, "a/b": true, "image": {"tag": "1.10"}})
        );
        let error = put(&mut values, "values:integer:/a/b", "x");
        assert_eq!(error, Err("values.a.b: it must be a whole number".to_owned()));
        put(
            &mut values,
            &format!("values:string:{}", "/x".repeat(10_000)),
            "deep",
        )
        .unwrap();
    }
}
