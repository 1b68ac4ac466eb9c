//! `spec.dependsOn`: which objects must be ready first, whether they are, and those that wait for each other. Pure.

use std::collections::{HashSet, VecDeque};

use api::meta::{Delivers, DependencyReference, HasConditions, StatusObject, condition_types};
use cel_expression::Expression;
use controller_kit::ObjectKey;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::{ObjectRef, Store};
use serde::Serialize;
use serde_json::{Value, json};

/// At most so many objects are looked at: a cycle that people make by mistake is short.
const LOOKED_AT: usize = 256;

/// One entry of `spec.dependsOn`. `D` is what else of the other object matters to the kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependency<D = ()> {
    /// As messages name it: `flux-system/base`.
    pub name: String,
    /// None if there is no such object.
    pub found: Option<State<D>>,
}

/// The state of a dependency.
#[derive(Debug, Clone, PartialEq)]
pub struct State<D = ()> {
    /// Ready, for its newest generation.
    pub ready: bool,
    /// The result of `readyExpr`, if there is one.
    pub expression: Option<Result<bool, cel_expression::Error>>,
    /// Says so if it waits for us in turn.
    pub cycle: Option<String>,
    /// Further facts that concern the kind.
    pub detail: D,
}

/// How a dependency is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It is ready; a kind may want more than that.
    Ready,
    /// Its expression is true, which replaces all other conditions.
    ByExpression,
}

/// Why a dependency is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// There is no such object.
    Missing,
    /// It is not ready yet, for this reason.
    NotYet(String),
    /// The expression can never be evaluated.
    Invalid(String),
}

impl<D> Dependency<D> {
    /// Returns whether it is met, in Flux's words. With `additive`, an expression adds to the other conditions.
    pub fn check(&self, additive: bool) -> Result<Met, Unmet> {
        let Self { name, found } = self;
        let found = found.as_ref().ok_or(Unmet::Missing)?;
        match &found.expression {
            None => {}
            Some(Ok(true)) if additive => {}
            Some(Ok(true)) => return Ok(Met::ByExpression),
            Some(Ok(false)) => {
                return Err(Unmet::NotYet(format!(
                    "dependency '{name}' is not ready according to readyExpr eval"
                )));
            }
            Some(Err(error)) => {
                let message = format!("failed to evaluate dependency {name}: {error}");
                return Err(match error {
                    // Only another text can help.
                    cel_expression::Error::Parse { .. } => Unmet::Invalid(message),
                    _ => Unmet::NotYet(message),
                });
            }
        }
        if found.ready {
            return Ok(Met::Ready);
        }
        let cycle = found.cycle.as_ref().map(|cycle| format!(": {cycle}"));
        Err(Unmet::NotYet(format!(
            "dependency '{name}' is not ready{}",
            cycle.unwrap_or_default()
        )))
    }
}

/// Reads the dependencies of an object, in the order of its spec.
///
/// With `locked`, an expression sees of objects in other namespaces only who they are and how they are.
pub fn observe<K, D>(
    store: &Store<K>,
    object: &K,
    locked: bool,
    detail: impl Fn(&K) -> D,
) -> Vec<Dependency<D>>
where
    K: Delivers + kube::Resource<Scope = NamespaceResourceScope> + Clone + Serialize + 'static,
{
    let mut own = None;
    let mut expression = |reference: &DependencyReference, other: &K| {
        let text = reference.ready_expr.as_deref().filter(|text| !text.is_empty())?;
        let own = own.get_or_insert_with(|| serde_json::to_value(object).unwrap_or_default());
        let dep = serde_json::to_value(other).unwrap_or_default();
        let is_foreign = other.meta().namespace != object.meta().namespace;
        let dep = if locked && is_foreign { glimpse(&dep) } else { dep };
        let variables = json!({"self": own, "dep": dep});
        let parsed = Expression::parse_with_variables(text, &["dep", "self"]);
        Some(parsed.and_then(|parsed| parsed.evaluate_boolean(&variables)))
    };
    let of = |key: &ObjectKey| -> Vec<ObjectKey> {
        let found = store.get(&key.object_ref());
        found.map_or_else(Vec::new, |object| {
            object
                .depends_on()
                .iter()
                .map(|reference| key_of(&*object, reference))
                .collect()
        })
    };
    let mut dependencies = Vec::new();
    for reference in object.depends_on() {
        let key = key_of(object, reference);
        let found = store.get(&ObjectRef::new(&key.name).within(&key.namespace));
        let found = found.map(|other| {
            let ready = is_ready(&*other);
            let way = if ready {
                None
            } else {
                cycle(&ObjectKey::from_object(object), &key, of)
            };
            State {
                ready,
                cycle: way.map(|way| circle_message(&way)),
                expression: expression(reference, &other),
                detail: detail(&other),
            }
        });
        dependencies.push(Dependency {
            name: key.to_string(),
            found,
        });
    }
    dependencies
}

/// Returns whether a change of another object concerns one that depends on it. `ready` says that the change matters to those that
/// only ask whether it is ready; expressions may look at anything.
pub fn is_concerned<K: Delivers>(object: &K, changed: &ObjectKey, ready: bool) -> bool {
    object
        .depends_on()
        .iter()
        .any(|reference| (ready || reference.ready_expr.is_some()) && key_of(object, reference) == *changed)
}

/// The objects that an object depends on.
pub fn keys<K: Delivers>(object: &K) -> impl Iterator<Item = ObjectKey> {
    object
        .depends_on()
        .iter()
        .map(|reference| key_of(object, reference))
}

/// Returns whether an object is ready, for its newest generation.
pub fn is_ready<K: StatusObject>(object: &K) -> bool {
    let observed = object.status().and_then(HasConditions::observed_generation);
    let ready = object.condition(condition_types::READY);
    observed == object.meta().generation && ready.is_some_and(|ready| ready.status == "True")
}

/// The object that a reference names: in its own namespace, unless it says another.
fn key_of<K: Delivers>(object: &K, reference: &DependencyReference) -> ObjectKey {
    let own = object.meta().namespace.as_deref().unwrap_or_default();
    let named = reference.namespace.as_deref();
    ObjectKey::new(
        named.filter(|namespace| !namespace.is_empty()).unwrap_or(own),
        &reference.name,
    )
}

/// Finds the shortest way from `start` over one of its dependencies back to itself, both ends included. `of` gives the
/// dependencies of an object.
fn cycle(
    start: &ObjectKey,
    first: &ObjectKey,
    of: impl Fn(&ObjectKey) -> Vec<ObjectKey>,
) -> Option<Vec<ObjectKey>> {
    let mut ways = VecDeque::from([vec![start.clone(), first.clone()]]);
    let mut seen = HashSet::from([first.clone()]);
    while let Some(way) = ways.pop_front() {
        let last = way.last()?;
        if last == start {
            return Some(way);
        }
        for next in of(last) {
            if seen.len() < LOOKED_AT && seen.insert(next.clone()) {
                ways.push_back([way.as_slice(), &[next]].concat());
            }
        }
    }
    None
}

/// Says that objects wait for each other. Those of namespaces that the first one does not name itself are not named.
fn circle_message(way: &[ObjectKey]) -> String {
    let named = |index: usize, key: &ObjectKey| {
        let is_known = index < 2 || way.first().is_some_and(|start| start.namespace == key.namespace);
        if is_known {
            key.to_string()
        } else {
            "(one in another namespace)".to_owned()
        }
    };
    let names: Vec<String> = way
        .iter()
        .enumerate()
        .map(|(index, key)| named(index, key))
        .collect();
    format!("they wait for each other: {}", names.join(" → "))
}

/// Reduces an object in another namespace to what an expression may see where references between namespaces
/// are locked: its identity and its conditions, nothing of its content.
pub(crate) fn glimpse(object: &Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let conditions: Vec<Value> = conditions
        .into_iter()
        .flatten()
        .map(|condition| {
            // Messages quote what others wrote.
            let mut condition = condition.clone();
            condition.as_object_mut().map(|fields| fields.remove("message"));
            condition
        })
        .collect();
    json!({
        "apiVersion": part("/apiVersion"), "kind": part("/kind"),
        "metadata": {
            "name": part("/metadata/name"), "namespace": part("/metadata/namespace"),
            "generation": part("/metadata/generation"),
        },
        "status": {"observedGeneration": part("/status/observedGeneration"), "conditions": conditions},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_object_elsewhere_only_its_name_and_state_are_seen() {
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "namespace": "b", "generation": 2,
            "annotations": {"secret": "1"}}, "spec": {"secret": "2"}, "status": {"observedGeneration": 2, "inventory": "3",
            "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "4"}]}});
        let expected = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "namespace": "b", "generation": 2},
            "status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "reason": "R"}]}});
        assert_eq!(glimpse(&object), expected);
    }

    fn key(name: &str) -> ObjectKey {
        let (namespace, name) = name.split_once('/').unwrap_or(("ns", name));
        ObjectKey::new(namespace, name)
    }

    fn found(start: &str, first: &str) -> Option<String> {
        let of = |object: &ObjectKey| match (object.namespace.as_str(), object.name.as_str()) {
            ("ns", "a") => vec![key("b"), key("x/y")],
            ("ns", "b") => vec![key("c")],
            ("ns", "c") => vec![key("d"), key("a")],
            ("ns", "self") => vec![key("self")],
            ("x", "y") => vec![key("z/z")],
            ("z", "z") => vec![key("a")],
            _ => vec![],
        };
        cycle(&key(start), &key(first), of).map(|way| circle_message(&way))
    }

    #[test]
    fn a_cycle_is_found_and_others_are_not_named() {
        assert_eq!(
            found("a", "b").unwrap(),
            "they wait for each other: ns/a → ns/b → ns/c → ns/a"
        );
        assert_eq!(
            found("self", "self").unwrap(),
            "they wait for each other: ns/self → ns/self"
        );
        assert_eq!(
            found("a", "x/y").unwrap(),
            "they wait for each other: ns/a → x/y → (one in another namespace) → ns/a"
        );
        assert_eq!(found("c", "d"), None);
    }
}
