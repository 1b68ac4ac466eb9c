//! Which policies apply to which images. Pure.

use api::delivery::VerificationPolicy;
use kube::ResourceExt as _;
use manifest::pattern::is_like_any;

/// Where an image goes.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Namespace of the object that delivers it.
    pub from: &'a str,
    /// Namespace of the object that names it; empty if it has none.
    pub to: &'a str,
}

/// Returns whether a policy applies to what goes this way. Only those in the namespace `of_controllers` reach beyond what is delivered
/// from their own.
pub fn covers(policy: &VerificationPolicy, way: Way<'_>, of_controllers: &str) -> bool {
    let (spec, own) = (&policy.spec, namespace(policy));
    let is_meant = |namespace: &str| match spec.namespaces.as_slice() {
        [] => own == namespace,
        patterns => is_like_any(patterns, namespace),
    };
    if spec.suspend {
        return false;
    }
    match own == of_controllers {
        // Who delivers into a namespace from another one does not get around what holds there.
        true => is_meant(way.from) || is_meant(way.to),
        false => own == way.from && is_meant(own),
    }
}

/// Returns whether a policy is about a repository.
pub fn is_about(policy: &VerificationPolicy, repository: &str) -> bool {
    let images = &policy.spec.images;
    let matches = images.matching.is_empty() || is_like_any(&images.matching, repository);
    matches && !is_like_any(&images.except, repository)
}

/// Returns whether a policy lets images of a repository in at all.
pub fn lets_in(policy: &VerificationPolicy, repository: &str) -> bool {
    let from = &policy.spec.images.from;
    from.is_empty() || is_like_any(from, repository)
}

/// Returns how messages name a policy.
pub fn id(policy: &VerificationPolicy) -> String {
    format!("{}/{}", namespace(policy), policy.name_any())
}

/// The namespace of a policy.
pub fn namespace(policy: &VerificationPolicy) -> &str {
    policy.metadata.namespace.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(namespace: &str, spec: Value) -> VerificationPolicy {
        serde_json::from_value(json!({"metadata": {"name": "p", "namespace": namespace}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn the_policies_of_the_controllers_reach_into_namespaces() {
        let platform = policy("platform", json!({"namespaces": ["prod-*"], "images": {}}));
        let own = policy("shop", json!({"images": {}}));
        let wide = policy("shop", json!({"namespaces": ["*"], "images": {}}));
        let elsewhere = policy("shop", json!({"namespaces": ["prod-*"], "images": {}}));
        let ended = policy(
            "platform",
            json!({"namespaces": ["*"], "images": {}, "suspend": true}),
        );
        for (from, to, expected) in [
            ("prod-a", "prod-a", [true, false, false, false, false]),
            ("dev", "prod-a", [true, false, false, false, false]),
            ("prod-a", "dev", [true, false, false, false, false]),
            ("shop", "shop", [false, true, true, false, false]),
            ("shop", "other", [false, true, true, false, false]),
            // A tenant's policy does not stop deliveries into its namespace from outside.
            ("platform", "shop", [false, false, false, false, false]),
        ] {
            let way = Way { from, to };
            let found = [&platform, &own, &wide, &elsewhere, &ended].map(|one| covers(one, way, "platform"));
            assert_eq!(found, expected, "{from} {to}");
        }
    }

    #[test]
    fn repositories_are_matched_as_a_whole() {
        let one = policy(
            "a",
            json!({"images": {"match": ["ghcr.io/org/*"], "except": ["ghcr.io/org/base"], "from": ["ghcr.io/org/app*"]}}),
        );
        let verdict = |repository: &str| (is_about(&one, repository), lets_in(&one, repository));
        assert_eq!(verdict("ghcr.io/org/app"), (true, true));
        assert_eq!(verdict("ghcr.io/org/web"), (true, false));
        assert!(!verdict("ghcr.io/org/base").0);
        assert_eq!(verdict("evil.io/ghcr.io/org/app"), (false, false));
        let all = policy("a", json!({"images": {}}));
        assert!(is_about(&all, "any") && lets_in(&all, "any"));
    }
}
