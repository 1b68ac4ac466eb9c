//! The values of a release: those of ConfigMaps and Secrets in their order, then those of the spec, in the order and words
//! of Flux (fluxcd/pkg `chartutil`). Who reads them hands them in.

mod target_path;

use std::collections::{BTreeMap, HashMap};

use api::helm::HelmRelease;
use api::meta::{ValuesKind, ValuesReference};
use helm_chart::{Helm, set_values};
use serde_json::{Map, Value};

/// A reference that cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("could not resolve{} {kind:?} chart values reference '{namespace}/{name}' with key '{key}': {problem}",
        if *.optional { " optional" } else { "" })]
pub struct Error {
    /// ConfigMap or Secret.
    pub kind: ValuesKind,
    /// The namespace of the object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key in it.
    pub key: String,
    /// It may be missing.
    pub optional: bool,
    /// The problem.
    pub problem: String,
}

/// Data of the reference, or why there is none.
pub type Found = Result<BTreeMap<String, Vec<u8>>, String>;

/// The ConfigMaps and Secrets that an object refers to.
#[derive(Debug, Default)]
pub struct Resources(HashMap<(ValuesKind, String), Found>);

impl FromIterator<((ValuesKind, String), Found)> for Resources {
    fn from_iter<I: IntoIterator<Item = ((ValuesKind, String), Found)>>(found: I) -> Self {
        Self(found.into_iter().collect())
    }
}

/// Composes the values of an object.
pub fn compose(object: &HelmRelease, resources: &Resources) -> Result<Map<String, Value>, Error> {
    let mut inline = inline(object);
    let mut composed = Map::new();
    for reference in &object.spec.values_from {
        let fail = |problem: String| Error {
            kind: reference.kind,
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: reference.name.clone(),
            key: reference.key().to_owned(),
            optional: reference.optional,
            problem,
        };
        let data = match resources.lookup(reference) {
            Ok(data) => data,
            Err(problem) if reference.optional => {
                tracing::info!("{}", fail(problem));
                continue;
            }
            Err(problem) => return Err(fail(problem)),
        };
        match reference.target_path.as_deref().filter(|path| !path.is_empty()) {
            Some(path) => {
                let text = String::from_utf8_lossy(data);
                put(&mut composed, &mut inline, path, &text, reference.literal).map_err(fail)?;
            }
            None => {
                let read = helm_chart::values::read(data, Helm::V4).map_err(fail)?;
                helm_chart::values::merge(&mut composed, read);
            }
        }
    }
    helm_chart::values::merge(&mut composed, inline);
    Ok(composed)
}

impl Resources {
    fn lookup(&self, reference: &ValuesReference) -> Result<&[u8], String> {
        let key = (reference.kind, reference.name.clone());
        let data = match self.0.get(&key) {
            Some(Ok(data)) => data,
            Some(Err(problem)) => return Err(problem.clone()),
            None => return Err("resource not found".to_owned()),
        };
        let value = data.get(reference.key());
        value.map(Vec::as_slice).ok_or_else(|| "key not found".to_owned())
    }
}

/// The values of the spec, whose numbers are floats as those of files are.
fn inline(object: &HelmRelease) -> Map<String, Value> {
    let Some(given @ Value::Object(_)) = &object.spec.values else {
        return Map::new();
    };
    let text = serde_json::to_vec(given).unwrap_or_default();
    helm_chart::values::read(&text, Helm::V4).unwrap_or_default()
}

/// Puts one value at a path, over the values of the spec.
///
/// Flux lays those over what is composed so far before it does that, and once more at the very end. Its maps may be the same
/// ones on both sides; where they are, the value is in the spec's too, and stays.
fn put(
    composed: &mut Map<String, Value>,
    inline: &mut Map<String, Value>,
    path: &str,
    value: &str,
    literal: bool,
) -> Result<(), String> {
    let shared = target_path::is_shared(path, composed, inline);
    helm_chart::values::merge(composed, inline.clone());
    set(composed, path, value, literal).map_err(|error| error.to_string())?;
    if shared {
        set(inline, path, value, literal).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn set(
    target: &mut Map<String, Value>,
    path: &str,
    value: &str,
    literal: bool,
) -> Result<(), set_values::Error> {
    if literal {
        return set_values::string(
            target,
            &format!("{path}={}", target_path::escaped(value)),
            Helm::V4,
        );
    }
    let is_quoted = |quote: char| value.starts_with(quote) && value.ends_with(quote);
    if is_quoted('\'') || is_quoted('"') {
        let value = value.trim_matches(['\'', '"']);
        return set_values::string(target, &format!("{path}={value}"), Helm::V4);
    }
    set_values::parse_into(target, &format!("{path}={value}"), Helm::V4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(values: Value, references: Value) -> HelmRelease {
        serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "apps"},
            "spec": {"interval": "1m", "values": values, "valuesFrom": references},
        }))
        .unwrap()
    }

    fn composed(
        values: Value,
        references: Value,
        found: &[(ValuesKind, &str, Value)],
    ) -> Result<Value, String> {
        let resources = found.iter().map(|(kind, name, data)| {
            let data: BTreeMap<String, String> = serde_json::from_value(data.clone()).unwrap();
            let data = data.into_iter().map(|(key, value)| (key, value.into_bytes()));
            ((*kind, (*name).to_owned()), Ok(data.collect()))
        });
        let composed = compose(&object(values, references), &resources.collect());
        composed.map(Value::Object).map_err(|error| error.to_string())
    }

    const MAP: ValuesKind = ValuesKind::ConfigMap;
    const SECRET: ValuesKind = ValuesKind::Secret;

    #[test]
    fn later_references_go_before_earlier_ones_and_the_spec_before_all() {
        let found = [
            (MAP, "a", json!({"values.yaml": "x: 1\nw: {a: 1, b: 1}\nz: 1"})),
            (SECRET, "b", json!({"more": "w: {b: 2}\nz: 2"})),
        ];
        let references = json!([
            {"kind": "ConfigMap", "name": "a"},
            {"kind": "Secret", "name": "b", "valuesKey": "more"},
        ]);
        assert_eq!(
            composed(json!({"z": 3, "n": null}), references, &found).unwrap(),
            json!({"x": 1.0, "w": {"a": 1.0, "b": 2.0}, "z": 3.0, "n": null})
        );
        assert_eq!(composed(Value::Null, json!([]), &[]).unwrap(), json!({}));
    }

    #[test]
    fn a_value_at_a_path_is_read_as_set_does_unless_it_is_quoted_or_literal() {
        let reference = |key: &str, path: &str, literal: bool| json!({"kind": "Secret", "name": "s", "valuesKey": key, "targetPath": path, "literal": literal});
        let data = json!({"n": "5", "q": "'5'", "l": "a,b={c}[0]\\d\n", "e": "1,2"});
        let found = [(SECRET, "s", data)];
        let one = |reference: Value| composed(Value::Null, json!([reference]), &found);
        assert_eq!(one(reference("n", "a.b", false)).unwrap(), json!({"a": {"b": 5}}));
        assert_eq!(
            one(reference("q", "a.b", false)).unwrap(),
            json!({"a": {"b": "5"}})
        );
        assert_eq!(
            one(reference("l", r"a\.b[1].c", true)).unwrap(),
            json!({"a.b": [null, {"c": "a,b={c}[0]\\d\n"}]})
        );
        let error = one(reference("e", "a", false)).unwrap_err();
        assert!(
            error.starts_with("could not resolve Secret chart values reference 'apps/s' with key 'e': "),
            "{error}"
        );
    }

    #[test]
    fn a_path_goes_before_the_spec_where_fluxs_maps_are_shared() {
        let references = json!([{"kind": "ConfigMap", "name": "m", "valuesKey": "v", "targetPath": "a.b"}]);
        let found = [(MAP, "m", json!({"v": "new"}))];
        let nested = composed(json!({"a": {"b": "old", "c": 1}}), references.clone(), &found);
        assert_eq!(nested.unwrap(), json!({"a": {"b": "new", "c": 1.0}}));
        let top = json!([{"kind": "ConfigMap", "name": "m", "valuesKey": "v", "targetPath": "a"}]);
        assert_eq!(
            composed(json!({"a": "old"}), top, &found).unwrap(),
            json!({"a": "old"})
        );
        let with_file = json!([{"kind": "ConfigMap", "name": "f"}, references[0].clone()]);
        let found = [
            found[0].clone(),
            (MAP, "f", json!({"values.yaml": "a: {b: file}"})),
        ];
        let merged = composed(json!({"a": {"b": "old"}}), with_file, &found);
        assert_eq!(merged.unwrap(), json!({"a": {"b": "old"}}));
    }

    #[test]
    fn what_is_missing_is_named_unless_it_may_be() {
        let data = [(MAP, "m", json!({"other": "x"}))];
        let reference =
            |name: &str, optional: bool| json!([{"kind": "ConfigMap", "name": name, "optional": optional}]);
        assert_eq!(
            composed(Value::Null, reference("m", false), &data).unwrap_err(),
            "could not resolve ConfigMap chart values reference 'apps/m' with key 'values.yaml': key not found"
        );
        assert_eq!(
            composed(Value::Null, reference("m", true), &data).unwrap(),
            json!({})
        );
        assert_eq!(
            composed(Value::Null, reference("gone", true), &data).unwrap(),
            json!({})
        );
        let malformed = [(MAP, "m", json!({"values.yaml": "a: ["}))];
        assert!(composed(Value::Null, reference("m", true), &malformed).is_err());
    }
}
