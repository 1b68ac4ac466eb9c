//! `crds`: fields that OpenAPI definitions of custom types mark as names, selectors or annotations.

use serde_json::{Map, Value};

use super::{FieldSpec, NameReference, TransformerConfig, merge_one};
use crate::error::{Error, ErrorKind, Result};
use crate::id::GvkSelector;
use crate::kustomization::decode;

/// How deep references between definitions are followed: kustomize follows circles until its stack ends.
const DEPTH: usize = 64;

/// Reads the fields of all types of a file of definitions.
pub(crate) fn config_of_definitions(value: &Value) -> Result<TransformerConfig> {
    let mut config = TransformerConfig::default();
    let Value::Object(definitions) = value else {
        return match value {
            Value::Null => Ok(config),
            other => Err(wrong_type(other, "Go value", "accumulator.nameToApiMap")),
        };
    };
    let wrong = definitions
        .iter()
        .find(|(_, definition)| !definition.is_object() && !definition.is_null());
    if let Some((name, definition)) = wrong {
        let place = format!("Go struct field .{name}");
        return Err(wrong_type(definition, &place, "accumulator.OpenAPIDefinition"));
    }
    for (name, definition) in definitions {
        let is_type = ["kind", "apiVersion", "metadata"]
            .iter()
            .all(|field| properties(definition).is_some_and(|properties| properties.contains_key(*field)));
        if is_type {
            let kind = name.rsplit('.').next().unwrap_or(name).to_owned();
            let of = GvkSelector {
                kind,
                ..GvkSelector::default()
            };
            Walk {
                definitions,
                of,
                config: &mut config,
            }
            .definition(name, &mut Vec::new())?;
        }
    }
    config.sort();
    Ok(config)
}

fn wrong_type(value: &Value, place: &str, go_type: &str) -> Error {
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        _ => "array",
    };
    decode::in_yaml(Error::invalid(format!(
        "json: cannot unmarshal {found} into {place} of type {go_type}"
    )))
}

/// encoding/json takes field names in any case.
fn properties(definition: &Value) -> Option<&Map<String, Value>> {
    let schema = definition
        .as_object()?
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case("schema"))?
        .1;
    schema.get("properties")?.as_object()
}

struct Walk<'a> {
    definitions: &'a Map<String, Value>,
    of: GvkSelector,
    config: &'a mut TransformerConfig,
}

impl Walk<'_> {
    fn definition(&mut self, name: &str, path: &mut Vec<String>) -> Result<()> {
        if path.len() > DEPTH {
            let message = format!("the definition of {} refers to itself", self.of.kind);
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let Some(properties) = self.definitions.get(name).and_then(properties) else {
            return Ok(());
        };
        for (name, property) in properties {
            path.push(name.clone());
            self.property(property, path)?;
            if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
                self.definition(reference, path)?;
            }
            path.pop();
        }
        Ok(())
    }

    fn property(&mut self, property: &Value, path: &[String]) -> Result<()> {
        let mark = |name: &str| property.get(name).and_then(Value::as_str);
        let spec = |path: String| FieldSpec {
            selector: self.of.clone(),
            path,
            create: false,
        };
        let own = spec(path.join("/"));
        if mark("x-kubernetes-annotation").is_some() {
            merge_one(&mut self.config.common_annotations, &own)?;
        }
        if mark("x-kubernetes-label-selector").is_some() {
            merge_one(&mut self.config.common_labels, &own)?;
        }
        if mark("x-kubernetes-identity").is_some() {
            merge_one(&mut self.config.name_prefix, &own)?;
        }
        let version = mark("x-kubernetes-object-ref-api-version");
        let Some((version, kind)) = version.zip(mark("x-kubernetes-object-ref-kind")) else {
            return Ok(());
        };
        let key = mark("x-kubernetes-object-ref-name-key").unwrap_or("name");
        self.config.merge_reference(&NameReference {
            target: GvkSelector {
                group: String::new(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            },
            referrers: vec![spec(format!("{}/{key}", own.path))],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_to_names_are_found_through_definitions() {
        let config = config_of_definitions(&json!({
            "x.Bee": {"Schema": {"properties": {
                "kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"$ref": "x.BeeSpec"},
            }}},
            "x.BeeSpec": {"Schema": {"properties": {
                "secretRef": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "Secret"},
            }}},
        }))
        .unwrap();
        assert_eq!(config.name_reference[0].target.kind, "Secret");
        assert_eq!(config.name_reference[0].referrers[0].path, "spec/secretRef/name");
        assert_eq!(config.name_reference[0].referrers[0].selector.kind, "Bee");
    }

    #[test]
    fn circles_end() {
        let circle = json!({"Bee": {"schema": {"properties": {
            "kind": {}, "apiVersion": {}, "metadata": {}, "next": {"$ref": "Bee"},
        }}}});
        assert!(config_of_definitions(&circle).is_err());
    }
}
