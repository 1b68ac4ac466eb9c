//! Validates the spec of a generator. Pure; each refusal holds until someone changes the object.

use std::collections::HashSet;

use api::meta::reasons;
use api::source_extensions::ArtifactGeneratorSpec;

use super::names;

pub(super) const VALIDATION_FAILED: &str = "ValidationFailed";

/// Reason and message of a spec that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Checks what the CRD does not, and that no source is in another namespace where that is not allowed.
pub(super) fn validate(
    spec: &ArtifactGeneratorSpec,
    namespace: &str,
    no_cross_namespace_refs: bool,
) -> Result<(), Refusal> {
    let invalid = |message: String| Refusal {
        reason: VALIDATION_FAILED,
        message,
    };
    let mut aliases = HashSet::new();
    for source in &spec.sources {
        if !aliases.insert(source.alias.as_str()) {
            return Err(invalid(format!(
                "duplicate source alias '{}' found",
                source.alias
            )));
        }
        let foreign = source.namespace.as_deref().filter(|other| *other != namespace);
        if let Some(other) = foreign.filter(|_| no_cross_namespace_refs) {
            let (kind, name) = (source.kind, &source.name);
            return Err(Refusal {
                reason: reasons::ACCESS_DENIED,
                message: format!("cross-namespace reference to source {kind}/{other}/{name} is not allowed"),
            });
        }
    }
    let mut known = HashSet::new();
    for output in &spec.artifacts {
        let name = &output.name;
        if !known.insert(name) {
            return Err(invalid(format!("duplicate artifact name '{name}' found")));
        }
        let problem = names::object_name_problem(name).filter(|_| spec.path_pattern.is_none());
        if let Some(problem) = problem {
            return Err(invalid(format!(
                "artifact name {name:?} is not a valid Kubernetes object name: {problem}"
            )));
        }
        let revision = output
            .revision
            .as_deref()
            .map(|alias| alias.strip_prefix('@').unwrap_or(alias));
        if let Some(alias) = revision.filter(|alias| !aliases.contains(alias)) {
            return Err(invalid(format!(
                "artifact {name} revision source alias '{alias}' not found"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(change: serde_json::Value, expected: Result<(), (&str, &str)>) {
        let mut spec = json!({
            "sources": [{"alias": "a", "kind": "GitRepository", "name": "x"}],
            "artifacts": [{"name": "out", "copy": [{"from": "@a/x", "to": "@artifact/"}]}],
        });
        spec.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let spec: ArtifactGeneratorSpec = serde_json::from_value(spec).unwrap();
        let found = validate(&spec, "team", true);
        let found = found.map_err(|refusal| (refusal.reason, refusal.message));
        assert_eq!(
            found
                .as_ref()
                .map_err(|(reason, message)| (*reason, message.as_str())),
            expected
                .as_ref()
                .map_err(|(reason, message)| (*reason, *message))
                .map(|()| &())
        );
    }

    #[test]
    fn what_is_refused_and_why() {
        let source = |alias: &str, namespace: &str| json!({"alias": alias, "kind": "Bucket", "name": "x", "namespace": namespace});
        check(json!({}), Ok(()));
        check(json!({"sources": [source("a", "team")]}), Ok(()));
        check(
            json!({"sources": [source("a", "team"), source("a", "")]}),
            Err((VALIDATION_FAILED, "duplicate source alias 'a' found")),
        );
        check(
            json!({"sources": [source("a", "other")]}),
            Err((
                "AccessDenied",
                "cross-namespace reference to source Bucket/other/x is not allowed",
            )),
        );
        let artifact = json!({"name": "out", "copy": []});
        check(
            json!({"artifacts": [artifact, artifact]}),
            Err((VALIDATION_FAILED, "duplicate artifact name 'out' found")),
        );
        check(
            json!({"artifacts": [{"name": "out", "revision": "@b", "copy": []}]}),
            Err((
                VALIDATION_FAILED,
                "artifact out revision source alias 'b' not found",
            )),
        );
        check(
            json!({"pathPattern": "@a/{x}", "artifacts": [{"name": "A-{x}", "copy": []}]}),
            Ok(()),
        );
    }
}
