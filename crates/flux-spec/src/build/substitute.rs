//! `spec.postBuild`: variables in the built objects, replaced by their values.
//!
//! After the build and before the apply, as fluxcd/pkg/kustomize `SubstituteVariables` does: each object is written as
//! YAML, the text is expanded, and what comes out is read as YAML again. So a value may change a field's type, add
//! fields, or break the object. Objects with the label or annotation that disables it are left alone. Who reads
//! ConfigMaps and Secrets gives their data; nothing here knows a cluster.

use std::collections::{BTreeMap, BTreeSet};

use api::kustomize::{PostBuild, SubstituteReference, SubstituteStrategy};
use manifest::substitute::{self as engine, Mode};
use manifest::yaml::{self, Dialect, Nodes};
use manifest::{GroupVersionKind, Object, json};
use serde_json::{Map, Value};

use crate::build::error::Error;
use crate::build::objects::incomplete;

pub use super::error::SubstituteError;

/// Label and annotation that switch the substitution off for an object.
const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
const DISABLED: &str = "disabled";

/// The data of a ConfigMap or Secret; None if there is no such object.
pub type Data = Option<BTreeMap<String, Vec<u8>>>;

/// Substitutes in place. `data` gives what a reference refers to; it is only asked if an object wants variables.
pub fn substitute(
    objects: &mut [Object],
    post_build: &PostBuild,
    mode: Mode,
    data: &dyn Fn(&SubstituteReference) -> Data,
) -> Result<(), Error> {
    let mut variables = None;
    let mut room = Room::default();
    for object in objects.iter_mut().filter(|object| !is_disabled(object)) {
        let variables = match &mut variables {
            Some(variables) => variables,
            none => none.insert(load(post_build, data).map_err(|source| failed(object, source))?),
        };
        if variables.is_empty() && post_build.substitute_strategy != Some(SubstituteStrategy::Always) {
            return Ok(());
        }
        let value = expand(object, variables, mode, &mut room).map_err(|source| failed(object, source))?;
        *object.value_mut() = value;
        if let Some(error) = incomplete(object) {
            return Err(error);
        }
    }
    refuse_duplicates(objects)
}

fn is_disabled(object: &Object) -> bool {
    object.label(SUBSTITUTE) == Some(DISABLED) || object.annotation(SUBSTITUTE) == Some(DISABLED)
}

/// Collects the variables: later references before earlier ones, and those of the spec before all. A value loses its
/// line breaks, so that it stays within the line that names it.
fn load(
    post_build: &PostBuild,
    data: &dyn Fn(&SubstituteReference) -> Data,
) -> Result<BTreeMap<String, Vec<u8>>, SubstituteError> {
    let mut variables = BTreeMap::new();
    for reference in &post_build.substitute_from {
        match data(reference) {
            Some(found) => variables.extend(found),
            None if reference.optional => {}
            None => {
                return Err(SubstituteError::Missing {
                    kind: format!("{:?}", reference.kind),
                    name: reference.name.clone(),
                });
            }
        }
    }
    let inline = post_build.substitute.iter();
    variables.extend(inline.map(|(name, value)| (name.clone(), value.clone().into_bytes())));
    for value in variables.values_mut() {
        value.retain(|byte| *byte != b'\n');
    }
    Ok(variables)
}

/// Maximum number of YAML values in all objects after the substitution.
const MAXIMUM_VALUES: usize = 1_000_000;

/// Remaining limits of a substitution, across all objects.
struct Room {
    bytes: usize,
    values: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: engine::MAXIMUM_BYTES,
            values: MAXIMUM_VALUES,
        }
    }
}

fn expand(
    object: &Object,
    variables: &BTreeMap<String, Vec<u8>>,
    mode: Mode,
    room: &mut Room,
) -> Result<Map<String, Value>, SubstituteError> {
    for name in variables.keys() {
        engine::check_name(name).map_err(SubstituteError::Name)?;
    }
    let text = yaml::write(&Value::Object(object.value().clone()))
        .map_err(|error| SubstituteError::Read(error.to_string()))?;
    let lookup = |name: &str| variables.get(name).map(Vec::as_slice);
    let expanded = engine::substitute(&text, &lookup, mode).map_err(SubstituteError::Expand)?;
    let made = expanded.len().saturating_sub(text.len());
    let left = room.bytes.checked_sub(made);
    room.bytes = left.ok_or(SubstituteError::Expand(engine::Error::TooLarge))?;
    read(&expanded, room)
}

fn read(text: &str, room: &mut Room) -> Result<Map<String, Value>, SubstituteError> {
    // Keys are nodes, too.
    let mut nodes = Nodes::with_limit(2 * room.values);
    let refused = |problem: yaml::Problem| SubstituteError::Read(problem.to_string());
    let root = yaml::compose_first(text, &mut nodes, Dialect::Sigs).map_err(refused)?;
    let value = root.map_or(Ok(Value::Null), |root| yaml::json::decode(&nodes, root));
    let value = value.map_err(refused)?;
    let left = room.values.checked_sub(json::count(&value));
    room.values = left.ok_or_else(|| {
        SubstituteError::Read(format!("the objects have more than {MAXIMUM_VALUES} values"))
    })?;
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(SubstituteError::Read("the result is no mapping".to_owned())),
    }
}

/// Two objects can get one name only here: kustomize has refused those that had it before. Objects that differ in the
/// version of their kind are two to kustomize.
fn refuse_duplicates(objects: &[Object]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    let mut is_new = |object: &&Object| seen.insert((object.id().to_string(), object.gvk().version));
    match objects
        .iter()
        .map(|object| (object, is_new(&object)))
        .find(|(_, new)| !new)
    {
        Some((object, _)) => Err(Error::Duplicate(object.id().to_string())),
        None => Ok(()),
    }
}

fn failed(object: &Object, source: SubstituteError) -> Error {
    Error::PostBuild {
        object: resource_name(object),
        at: match source {
            SubstituteError::Expand(_) => place(object),
            _ => String::new(),
        },
        source,
    }
}

/// Where the expression is that cannot be expanded: ` (deploy/a.yaml:1: "${not valid}")`. What a Secret holds is not quoted.
fn place(object: &Object) -> String {
    let gvk = object.gvk();
    let is_secret = gvk.group.is_empty() && gvk.kind == "Secret";
    let text = yaml::write(&Value::Object(object.value().clone())).unwrap_or_default();
    let expression = engine::malformed(&text).filter(|_| !is_secret);
    let expression = expression.map(|expression| format!("{expression:?}"));
    let origin = object.origin().map(ToString::to_string);
    let known: Vec<String> = origin.into_iter().chain(expression).collect();
    match known.is_empty() {
        true => String::new(),
        false => format!(" ({})", known.join(": ")),
    }
}

/// Names an object as kustomize does in messages: `Secret.v1.[noGrp]/app`.
#[must_use]
pub fn resource_name(object: &Object) -> String {
    let GroupVersionKind { group, version, kind } = object.gvk();
    let group = if group.is_empty() { "[noGrp]" } else { &group };
    format!("{kind}.{version}.{group}/{}", object.name())
}
