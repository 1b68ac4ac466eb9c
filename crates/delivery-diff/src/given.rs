//! The values of a HelmRelease (without the defaults of its chart) or the variables of a Kustomization, with the origin of each. References
//! are read with the rights of the reader; values from Secrets are masked.

use std::collections::BTreeMap;

use api::helm::HelmRelease;
use api::kustomize::Kustomization;
use api::meta::ValuesKind;
use delivery_graph::object::text;
use delivery_graph::one_line;
use flux_spec::release::values::{self, Resources};
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use crate::content::Nothing;
use crate::reader::Reader;
use crate::report::WITHHELD;
use crate::world::World;

/// In place of what is from a Secret.
const MASKED: &str = "(from a Secret)";
/// References of one object that are read.
const MAX_REFERENCES: usize = 50;
/// Values that are told, and characters of one.
const MAX_VALUES: usize = 2000;
const MAX_TEXT: usize = 500;
/// Whole numbers that a float tells apart.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
/// Levels of values.
const MAX_DEPTH: usize = 64;

/// Where values are from, whether that is a Secret, and all values when it was laid over those before.
type Layer = (String, bool, BTreeMap<String, String>);

/// What an object is built with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The values, by their path.
    pub values: Vec<GivenValue>,
    /// References that could not be read, and why.
    pub notes: Vec<String>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenValue {
    /// Its path, such as `image.tag`; a list is one value, as later ones replace it as a whole.
    pub path: String,
    /// As JSON.
    pub value: String,
    /// The source that set it last: `spec.values`, or `ConfigMap/name: key`.
    pub origin: String,
}

/// Finds out what an object is built with.
///
/// # Errors
/// When it cannot be read, or what it refers to is missing.
pub async fn given(reader: Reader, object: &Value) -> Result<Given, String> {
    let world = World::new(reader, Box::new(Nothing));
    match text(object, "/kind") {
        "HelmRelease" => of_release(&world, object).await,
        "Kustomization" => of_kustomization(&world, object).await,
        _ => Err("only HelmReleases and Kustomizations are built with values".to_owned()),
    }
}

/// Reads what a reference names; None, with a note, if the reader may not or it is not there.
async fn data(
    world: &World,
    namespace: &str,
    (kind, name, optional): (ValuesKind, &str, bool),
    notes: &mut Vec<String>,
) -> Option<BTreeMap<String, Vec<u8>>> {
    let called = format!("{kind:?}/{name}");
    match world.data(kind, namespace, name).await {
        Ok(Some(data)) => return Some(data),
        Ok(None) if optional => notes.push(format!("{called} is not there, and may be missing")),
        Ok(None) => notes.push(format!("{called} is not there")),
        Err(error) => notes.push(format!("{called} is left out: {error}")),
    }
    None
}

async fn of_release(world: &World, object: &Value) -> Result<Given, String> {
    let object: HelmRelease =
        serde_json::from_value(object.clone()).map_err(|error| format!("it cannot be read: {error}"))?;
    let namespace = object.namespace().unwrap_or_default();
    let mut given = Given::default();
    if object.spec.values_from.len() > MAX_REFERENCES {
        return Err(format!("it has more than {MAX_REFERENCES} references to values"));
    }
    let mut found = Vec::new();
    for reference in &object.spec.values_from {
        let wanted = (reference.kind, reference.name.as_str(), reference.optional);
        let data = data(world, &namespace, wanted, &mut given.notes).await;
        let missing = || "it is left out".to_owned();
        found.push(((reference.kind, reference.name.clone()), data.ok_or_else(missing)));
    }
    let resources: Resources = found.into_iter().collect();
    // What cannot be read was noted.
    let mut partial = object.clone();
    partial
        .spec
        .values_from
        .iter_mut()
        .for_each(|one| one.optional = true);
    let compose = |partial: &HelmRelease| {
        let composed = values::compose(partial, &resources).map_err(|error| match error.kind {
            // What is there and cannot be read may be quoted.
            ValuesKind::Secret => format!("values of Secret/{}: {WITHHELD}", error.name),
            ValuesKind::ConfigMap => error.to_string(),
        });
        composed.map(|composed| flat(&composed))
    };
    // One reference after the other, and the spec's own at last: who changed a value last, set it.
    let mut layers: Vec<Layer> = Vec::new();
    for (at, reference) in object.spec.values_from.iter().enumerate() {
        let mut partial = partial.clone();
        partial.spec.values = None;
        partial.spec.values_from.truncate(at + 1);
        let origin = format!("{:?}/{}: {}", reference.kind, reference.name, reference.key());
        layers.push((origin, reference.kind == ValuesKind::Secret, compose(&partial)?));
    }
    layers.push(("spec.values".to_owned(), false, compose(&partial)?));
    given.tell(&layers);
    Ok(given)
}

async fn of_kustomization(world: &World, object: &Value) -> Result<Given, String> {
    let object: Kustomization =
        serde_json::from_value(object.clone()).map_err(|error| format!("it cannot be read: {error}"))?;
    let namespace = object.namespace().unwrap_or_default();
    let mut given = Given::default();
    let Some(post_build) = &object.spec.post_build else {
        return Ok(given);
    };
    if post_build.substitute_from.len() > MAX_REFERENCES {
        return Err(format!(
            "it has more than {MAX_REFERENCES} references to variables"
        ));
    }
    let mut layers = Vec::new();
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for reference in &post_build.substitute_from {
        let wanted = (reference.kind, reference.name.as_str(), reference.optional);
        let data = data(world, &namespace, wanted, &mut given.notes)
            .await
            .unwrap_or_default();
        let text = |value: Vec<u8>| Value::from(String::from_utf8_lossy(&value).into_owned()).to_string();
        all.extend(data.into_iter().map(|(name, value)| (name, text(value))));
        let origin = format!("{:?}/{}", reference.kind, reference.name);
        layers.push((origin, reference.kind == ValuesKind::Secret, all.clone()));
    }
    let inline = post_build.substitute.iter();
    all.extend(inline.map(|(name, value)| (name.clone(), Value::from(value.clone()).to_string())));
    layers.push(("spec.postBuild.substitute".to_owned(), false, all));
    given.tell(&layers);
    Ok(given)
}

impl Given {
    /// Tells the values of the last layer, each with the layer since which it is so.
    fn tell(&mut self, layers: &[Layer]) {
        let Some((_, _, last)) = layers.last() else {
            return;
        };
        // What was in a Secret once stays untold, also where another layer repeats it.
        let was_secret = |path: &String, value: &String| {
            layers.iter().enumerate().any(|(at, (_, is_secret, values))| {
                let before = at.checked_sub(1).and_then(|before| layers[before].2.get(path));
                *is_secret && values.get(path) == Some(value) && before != Some(value)
            })
        };
        for (path, value) in last.iter().take(MAX_VALUES) {
            let mut origin = layers.len() - 1;
            while origin > 0 && layers[origin - 1].2.get(path) == Some(value) {
                origin -= 1;
            }
            let text = match was_secret(path, value) {
                true => MASKED.to_owned(),
                false => value.chars().take(MAX_TEXT).collect(),
            };
            self.values.push(GivenValue {
                path: one_line(path),
                value: text,
                origin: one_line(&layers[origin].0),
            });
        }
        if last.len() > MAX_VALUES {
            self.notes
                .push(format!("{} more values are not shown", last.len() - MAX_VALUES));
        }
    }
}

/// Values by their path.
fn flat(values: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    flatten("", values, 0, &mut found);
    found
}

fn flatten(prefix: &str, values: &Map<String, Value>, depth: usize, found: &mut BTreeMap<String, String>) {
    for (key, value) in values {
        // As Helm's own paths have it.
        let key = key.replace('\\', "\\\\").replace('.', "\\.");
        let path = match prefix {
            "" => key,
            prefix => format!("{prefix}.{key}"),
        };
        match value {
            Value::Object(map) if !map.is_empty() && depth < MAX_DEPTH => {
                flatten(&path, map, depth + 1, found);
            }
            value => drop(found.insert(path, whole(value).to_string())),
        }
    }
}

/// Helm reads all numbers as floats; people wrote whole ones without a point.
fn whole(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let float = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < MAX_WHOLE);
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            float.map_or_else(|| value.clone(), |float| Value::from(float as i64))
        }
        Value::Array(values) => values.iter().map(whole).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), whole(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(origin: &str, is_secret: bool, values: Value) -> Layer {
        let Value::Object(map) = values else {
            panic!("no object")
        };
        (origin.to_owned(), is_secret, flat(&map))
    }

    fn told(layers: &[Layer]) -> Vec<(String, String, String)> {
        let mut given = Given::default();
        given.tell(layers);
        let values = given.values.into_iter();
        values.map(|one| (one.path, one.value, one.origin)).collect()
    }

    #[test]
    fn the_origin_of_a_value_is_who_set_it_last() {
        let layers = [
            layer(
                "a",
                false,
                json!({"image": {"tag": "v1", "name": "web"}, "list": [1, 2]}),
            ),
            layer(
                "b",
                false,
                json!({"image": {"tag": "v2", "name": "web"}, "list": [1, 2], "a.b": true}),
            ),
            layer(
                "c",
                false,
                json!({"image": {"tag": "v2", "name": "shop"}, "list": [3.0, 0.5], "a.b": true}),
            ),
        ];
        let expected = [
            ("a\\.b", "true", "b"),
            ("image.name", "\"shop\"", "c"),
            ("image.tag", "\"v2\"", "b"),
            ("list", "[3,0.5]", "c"),
        ];
        let expected =
            expected.map(|(path, value, origin)| (path.to_owned(), value.to_owned(), origin.to_owned()));
        assert_eq!(told(&layers), expected);
    }

    #[test]
    fn no_key_writes_to_a_terminal() {
        let layers = [layer(
            "ConfigMap/a: \u{1b}[2Jkey",
            false,
            json!({"a\u{1b}]0;b\nc": "\u{1b}"}),
        )];
        let told = format!(
            "{:?}",
            told(&layers)
                .into_iter()
                .map(|(a, b, c)| a + &b + &c)
                .collect::<String>()
        );
        assert!(!told.contains("u{1b}") && !told.contains("\\n"), "{told}");
    }

    #[test]
    fn nothing_of_a_secret_is_told() {
        let layers = [
            layer(
                "ConfigMap/a: values.yaml",
                false,
                json!({"user": "ana", "plain": 1}),
            ),
            layer(
                "Secret/b: values.yaml",
                true,
                json!({"user": "ana", "password": "hunter2", "plain": 1, "empty": {}}),
            ),
            // Repeated beside it: still what the Secret has.
            layer(
                "spec.values",
                false,
                json!({"user": "ben", "password": "hunter2", "plain": 1, "empty": {}}),
            ),
        ];
        let told = told(&layers);
        assert!(!format!("{told:?}").contains("hunter2"), "{told:?}");
        let of = |path: &str| told.iter().find(|one| one.0 == path).cloned().unwrap();
        assert_eq!(
            of("password"),
            (
                "password".to_owned(),
                MASKED.to_owned(),
                "Secret/b: values.yaml".to_owned()
            )
        );
        assert_eq!(of("user").1, "\"ben\"");
        assert_eq!(
            of("plain"),
            (
                "plain".to_owned(),
                "1".to_owned(),
                "ConfigMap/a: values.yaml".to_owned()
            )
        );
    }
}
