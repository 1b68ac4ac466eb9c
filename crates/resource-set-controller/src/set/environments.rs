//! What a run makes for each pull request, remembered for EnvironmentPolicies.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use api::flux_operator::AnyMap;
use manifest::{Object, ObjectId};
use resource_set::environment::Request;
use resource_set::{Export, Objects};
use serde_json::Value;

use super::Pass;
use crate::context::Made;

/// The environment of a pull request, and with which step it is complete.
struct Planned {
    request: Request,
    last_step: usize,
    made: Arc<Made>,
}

/// The environments that a run makes.
pub(super) struct Environments(Vec<Planned>);

impl Environments {
    /// Finds out what belongs to which pull request. `sets` are those of which `steps` were rendered.
    pub(super) fn new(exports: &[Export], sets: &[AnyMap], steps: &[Objects]) -> Self {
        let providers: HashSet<&str> = exports
            .iter()
            .filter(|export| export.is_of_requests)
            .map(|export| export.name.as_str())
            .collect();
        // What each set made, by its place: sets and objects may be many.
        let mut makes: HashMap<usize, Vec<(usize, &Object)>> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            let ids = step.objects.iter().map(|object| (object.id(), object));
            let by_id: HashMap<ObjectId, &Object> = ids.collect();
            for (place, id) in &step.makers {
                if let Some(object) = by_id.get(id) {
                    makes.entry(*place).or_default().push((index, object));
                }
            }
        }
        let mut all = Vec::new();
        for (place, set) in sets.iter().enumerate() {
            let provider = set.get("provider").and_then(|provider| provider["name"].as_str());
            let provider = provider.filter(|provider| providers.contains(provider));
            if let Some(request) = provider.and_then(|provider| Request::of(provider, set)) {
                all.extend(planned(request, makes.get(&place).map_or(&[], Vec::as_slice)));
            }
        }
        Self(all)
    }

    /// Remembers the environments that are complete with this step.
    pub(super) fn applied(&self, step: usize, pass: &Pass<'_>) {
        let complete = self.0.iter().filter(|planned| planned.last_step == step);
        let made: Vec<_> = complete
            .map(|planned| (planned.request.clone(), Arc::clone(&planned.made)))
            .collect();
        if !made.is_empty() {
            pass.context.memory.made(pass.key, made);
            pass.context.wake_policies(pass.key);
        }
    }
}

/// What was made for a pull request, each with its step; None if that is nothing.
fn planned(request: Request, makes: &[(usize, &Object)]) -> Option<Planned> {
    let last_step = makes.iter().map(|(step, _)| *step).max()?;
    let mut hasher = DefaultHasher::new();
    for (_, object) in makes {
        let text = serde_json::to_string(object.value()).unwrap_or_default();
        text.hash(&mut hasher);
    }
    let objects: Vec<&Object> = makes.iter().map(|(_, object)| *object).collect();
    let sources: HashSet<(String, String)> = objects
        .iter()
        .filter(|object| object.gvk().kind == "GitRepository")
        .filter(|object| spec(object)["ref"]["commit"] == *request.commit)
        .map(|object| (object.namespace().to_owned(), object.name().to_owned()))
        .collect();
    let follows = objects.iter().filter(|object| is_of(object, &sources));
    let made = Made {
        commit: request.commit.clone(),
        digest: hasher.finish(),
        followers: follows.map(|object| object.id()).collect(),
        objects: objects
            .iter()
            .map(|object| (object.id(), object.gvk().version))
            .collect(),
    };
    Some(Planned {
        request,
        last_step,
        made: Arc::new(made),
    })
}

/// Returns whether it is a Kustomization of one of these GitRepositories.
fn is_of(object: &Object, sources: &HashSet<(String, String)>) -> bool {
    let source = &spec(object)["sourceRef"];
    let namespace = source["namespace"].as_str().unwrap_or(object.namespace());
    object.gvk().kind == "Kustomization"
        && source["kind"] == "GitRepository"
        && source["name"]
            .as_str()
            .is_some_and(|name| sources.contains(&(namespace.to_owned(), name.to_owned())))
}

/// The spec; Null without one.
fn spec(object: &Object) -> &Value {
    object.value().get("spec").unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use manifest::read_objects;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_environment_is_what_was_made_of_its_inputs() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: a}\n---\n\
            apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: pr, namespace: a}\n\
            spec: {ref: {commit: abc}}\n---\n\
            apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: pr, namespace: a}\n\
            spec: {sourceRef: {kind: GitRepository, name: pr}}\n---\n\
            apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: other, namespace: a}\n";
        let objects = read_objects(text, "test").unwrap();
        let ids: Vec<_> = objects.iter().map(Object::id).collect();
        let step = Objects {
            step: String::new(),
            makers: vec![
                (0, ids[0].clone()),
                (1, ids[0].clone()),
                (1, ids[1].clone()),
                (1, ids[2].clone()),
                (1, ids[3].clone()),
            ],
            objects,
        };
        let set = |id: &str| match json!({"id": id, "sha": "abc", "provider": {"name": "requests"}}) {
            Value::Object(set) => set,
            _ => AnyMap::new(),
        };
        let export = Export {
            kind: "ResourceSetInputProvider",
            name: "requests".to_owned(),
            namespace: "a".to_owned(),
            is_of_requests: true,
            sets: Vec::new(),
        };
        let made = Environments::new(&[export], &[set("1"), set("2")], &[step]).0;
        let counts: Vec<_> = made
            .iter()
            .map(|planned| (planned.request.number, planned.made.objects.len()))
            .collect();
        assert_eq!(counts, [(1, 1), (2, 4)]);
        assert_eq!(made[1].made.followers, [ids[2].clone()]);
    }
}
