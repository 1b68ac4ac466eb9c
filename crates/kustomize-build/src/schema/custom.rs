//! A schema that a kustomization brings along (`openapi.path`): OpenAPI definitions as JSON or YAML, read when the
//! build runs.
//!
//! Kept is what kustomize asks for: fields, elements, merge keys, and from `paths` which types have a namespace.

use std::collections::HashMap;

use serde_json::Value;

/// The place of a schema in its file.
pub(super) type Index = usize;

/// How many references may lead to each other; kustomize follows a cycle for ever.
const REFERENCES: usize = 64;

const TYPES: &str = "x-kubernetes-group-version-kind";

/// The definitions of a file.
#[derive(Debug, Default)]
pub(crate) struct Custom {
    schemas: Vec<Schema>,
    definitions: HashMap<String, Index>,
    types: HashMap<(String, String), Index>,
    /// Types that occur in paths, and whether one of the paths has a namespace.
    namespaced: HashMap<(String, String), bool>,
}

#[derive(Debug, Default)]
struct Schema {
    reference: Option<String>,
    properties: HashMap<String, Index>,
    additional: Option<Index>,
    items: Option<Index>,
    /// The keys by which the list is merged; None for one that is replaced.
    merge_keys: Option<Vec<String>>,
}

impl Custom {
    /// Takes what is needed out of a file; fails with the reason when it is no OpenAPI document.
    pub(crate) fn from_json(document: &Value) -> Result<Self, String> {
        let mut custom = Self::default();
        let document = document.as_object().ok_or("it is not an object")?;
        let section = |name: &str| match document.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_object()
                .map(Some)
                .ok_or_else(|| format!("'{name}' is not an object")),
        };
        for (name, definition) in section("definitions")?.into_iter().flatten() {
            let index = custom.add(definition);
            custom.definitions.insert(name.clone(), index);
            for of in definition
                .get(TYPES)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                custom.types.insert(type_of(of), index);
            }
        }
        for (path, operations) in section("paths")?.into_iter().flatten() {
            if let Some(of) = operations.get("get").and_then(|get| get.get(TYPES)) {
                let namespaced = path.contains("namespaces/{namespace}");
                *custom.namespaced.entry(type_of(of)).or_default() |= namespaced;
            }
        }
        Ok(custom)
    }

    fn add(&mut self, value: &Value) -> Index {
        let index = self.schemas.len();
        self.schemas.push(Schema::default());
        let mut properties = HashMap::new();
        for (name, property) in value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            properties.insert(name.clone(), self.add(property));
        }
        let mut below = |name: &str| {
            let value = value.get(name).filter(|value| value.is_object())?;
            Some(self.add(value))
        };
        let schema = Schema {
            reference: value.get("$ref").and_then(Value::as_str).map(str::to_owned),
            additional: below("additionalProperties"),
            items: below("items").filter(|_| is_list(value)),
            merge_keys: merge_keys(value),
            properties,
        };
        self.schemas[index] = schema;
        index
    }

    /// Finds the schema of a type.
    pub(super) fn of_type(&self, api_version: &str, kind: &str) -> Option<Index> {
        self.types
            .get(&(api_version.to_owned(), kind.to_owned()))
            .copied()
    }

    /// Returns whether objects of a type have a namespace; None when no path says it.
    pub(super) fn is_namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self.namespaced
            .get(&(api_version.to_owned(), kind.to_owned()))
            .copied()
    }

    pub(super) fn field(&self, of: Index, name: &str) -> Option<Index> {
        let schema = &self.schemas[of];
        let field = schema.properties.get(name).copied().or(schema.additional)?;
        self.resolve(field)
    }

    pub(super) fn elements(&self, of: Index) -> Option<Index> {
        self.resolve(self.schemas[of].items?)
    }

    pub(super) fn merge_keys(&self, of: Index) -> Option<&[String]> {
        self.schemas[of].merge_keys.as_deref()
    }

    fn resolve(&self, mut index: Index) -> Option<Index> {
        for _ in 0..REFERENCES {
            match &self.schemas[index].reference {
                Some(reference) => index = self.find(reference)?,
                None => return Some(index),
            }
        }
        None
    }

    /// Follows a JSON pointer, `#/definitions/Name` or one that goes on from there.
    fn find(&self, reference: &str) -> Option<Index> {
        let mut parts = reference.strip_prefix("#/definitions/")?.split('/').map(unescape);
        let mut at = *self.definitions.get(&parts.next()?)?;
        while let Some(part) = parts.next() {
            let schema = &self.schemas[at];
            at = match part.as_str() {
                "properties" => *schema.properties.get(&parts.next()?)?,
                "additionalProperties" => schema.additional?,
                "items" => schema.items?,
                _ => return None,
            };
        }
        Some(at)
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

fn type_of(value: &Value) -> (String, String) {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = match (text("group"), text("version")) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    (api_version, text("kind").to_owned())
}

fn is_list(value: &Value) -> bool {
    match value.get("type") {
        Some(Value::String(one)) => one == "array",
        Some(Value::Array(several)) => several.len() == 1 && several[0] == "array",
        _ => false,
    }
}

fn merge_keys(value: &Value) -> Option<Vec<String>> {
    let strategy = value.get("x-kubernetes-patch-strategy").and_then(Value::as_str)?;
    if !strategy.split(',').any(|one| one == "merge") {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(keys) = value.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
        return Some(keys.iter().filter_map(text).collect());
    }
    let key = value.get("x-kubernetes-patch-merge-key").and_then(text);
    Some(key.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn example() -> Custom {
        Custom::from_json(&json!({
            "definitions": {
                "Park": {
                    "type": "object",
                    "properties": {
                        "spec": {"$ref": "#/definitions/Spec"},
                        "loop": {"$ref": "#/definitions/Loop"},
                        "swings": {"$ref": "#/definitions/Spec/properties/swings"}
                    },
                    "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Park"}]
                },
                "Spec": {"properties": {
                    "swings": {
                        "type": "array",
                        "items": {"$ref": "#/definitions/Swing"},
                        "x-kubernetes-patch-strategy": "merge,retainKeys",
                        "x-kubernetes-patch-merge-key": "name"
                    },
                    "replaced": {"type": "array", "x-kubernetes-patch-merge-key": "name"}
                }},
                "Swing": {"additionalProperties": {"$ref": "#/definitions/Spec"}},
                "Loop": {"$ref": "#/definitions/Loop"}
            },
            "paths": {
                "/apis/example.com/v1/parks": {
                    "get": {"x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Park"}}
                },
                "/api/v1/rides": {"get": {"x-kubernetes-group-version-kind": {"version": "v1", "kind": "Ride"}}},
                "/api/v1/namespaces/{namespace}/rides": {
                    "get": {"x-kubernetes-group-version-kind": {"version": "v1", "kind": "Ride"}}
                }
            }
        }))
        .unwrap()
    }

    #[test]
    fn references_are_followed_and_cycles_lead_nowhere() {
        let custom = example();
        let park = custom.of_type("example.com/v1", "Park").unwrap();
        let swings = custom
            .field(park, "spec")
            .and_then(|spec| custom.field(spec, "swings"));
        let keys = swings.and_then(|swings| custom.merge_keys(swings)).unwrap();
        assert_eq!(keys, ["name"]);
        assert_eq!(custom.field(park, "swings"), swings);
        let any = swings.and_then(|swings| custom.elements(swings)).unwrap();
        assert_eq!(custom.field(any, "whatever"), custom.field(park, "spec"));
        assert_eq!(custom.field(park, "loop"), None);
    }

    #[test]
    fn a_merge_key_without_the_strategy_says_nothing() {
        let custom = example();
        let spec = custom.find("#/definitions/Spec").unwrap();
        assert!(
            custom
                .merge_keys(custom.field(spec, "replaced").unwrap())
                .is_none()
        );
    }

    #[test]
    fn one_path_with_a_namespace_makes_a_type_namespaced() {
        let custom = example();
        assert_eq!(custom.is_namespaced("example.com/v1", "Park"), Some(false));
        assert_eq!(custom.is_namespaced("v1", "Ride"), Some(true));
        assert_eq!(custom.is_namespaced("v1", "Other"), None);
    }
}
