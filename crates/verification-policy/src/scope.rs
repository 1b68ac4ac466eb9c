//! Which policies apply to what. Pure.

use std::sync::Arc;

use api::delivery::{PolicyAction, PolicySourceKind, VerificationPolicy};
use kube::ResourceExt as _;
use manifest::pattern::{is_like, is_like_any};

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

/// Returns whether a policy is about the images of a repository.
pub fn is_about(policy: &VerificationPolicy, repository: &str) -> bool {
    let Some(images) = &policy.spec.images else {
        return false;
    };
    let matches = images.matching.is_empty() || is_like_any(&images.matching, repository);
    matches && !is_like_any(&images.except, repository)
}

/// Returns whether a policy lets images of a repository in at all.
pub fn lets_in(policy: &VerificationPolicy, repository: &str) -> bool {
    let from = policy.spec.images.as_ref().map(|images| images.from.as_slice());
    from.is_none_or(|from| from.is_empty() || is_like_any(from, repository))
}

/// Returns whether a policy wants images applied by their digests.
pub fn pins(policy: &VerificationPolicy) -> bool {
    policy.spec.images.as_ref().is_some_and(|images| images.pin)
}

/// Returns whether a policy is about sources of a kind; of any kind, if it is none of those that policies name.
pub fn is_about_sources(policy: &VerificationPolicy, kind: Option<PolicySourceKind>) -> bool {
    let sources = policy.spec.sources.as_ref();
    sources.is_some_and(|sources| {
        let is_listed = |kind| sources.kinds.contains(&kind);
        sources.kinds.is_empty() || kind.is_none_or(is_listed)
    })
}

/// Returns whether a policy is about sources at a place.
pub fn is_about_place(policy: &VerificationPolicy, place: &str) -> bool {
    let Some(sources) = &policy.spec.sources else {
        return false;
    };
    // Most servers ignore case. The writer of the address must not get past the policy by it.
    let folded = place.to_lowercase();
    let is_meant = |pattern: &String| is_like(&pattern.to_lowercase(), &folded);
    let matches = sources.matching.is_empty() || sources.matching.iter().any(is_meant);
    matches && !is_like_any(&sources.except, place)
}

/// Returns whether a policy lets in sources at a place at all.
pub fn lets_in_place(policy: &VerificationPolicy, place: &str) -> bool {
    let from = policy
        .spec
        .sources
        .as_ref()
        .map(|sources| sources.from.as_slice());
    from.is_none_or(|from| from.is_empty() || is_like_any(from, place))
}

/// Returns the policy that a source would get around, if one: it is delivered in a namespace to which a policy about sources applies,
/// from another one to which the policy does not. What lies in the namespace of the controllers is the platform's own.
fn evaded<'p>(
    policies: impl IntoIterator<Item = &'p VerificationPolicy>,
    from: &str,
    (kind, source): (Option<PolicySourceKind>, &str),
    of_controllers: &str,
) -> Option<&'p VerificationPolicy> {
    if source == from || source == of_controllers {
        return None;
    }
    let covers = |policy: &VerificationPolicy, namespace| {
        let way = Way {
            from: namespace,
            to: namespace,
        };
        covers(policy, way, of_controllers)
    };
    let is_evaded = |policy: &&VerificationPolicy| {
        let is_enforced = policy.spec.action.unwrap_or_default() == PolicyAction::Enforce;
        let is_about = is_about_sources(policy, kind);
        is_enforced && is_about && covers(policy, from) && !covers(policy, source)
    };
    policies.into_iter().find(is_evaded)
}

/// Returns why a source of another namespace may not be used in this one, if so.
pub fn refusal_of_elsewhere(
    policies: &[Arc<VerificationPolicy>],
    from: &str,
    (kind, source): (&str, &str),
    of_controllers: &str,
) -> Option<String> {
    // A chart may have been packaged from a source of any kind.
    let known = PolicySourceKind::from_name(kind).filter(|kind| *kind != PolicySourceKind::HelmChart);
    let policies = policies.iter().map(AsRef::as_ref);
    let policy = evaded(policies, from, (known, source), of_controllers)?;
    let why = policy.spec.reason.as_ref();
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    Some(format!(
        "a {kind} of namespace '{source}' is refused by VerificationPolicy {}: it applies to the sources of namespace '{from}', and \
         not to those of '{source}'{why}",
        id(policy)
    ))
}

/// Returns why a build may fetch nothing from elsewhere in this namespace, if so: a policy about its sources could not be held to.
pub fn refusal_of_remote(
    policies: &[Arc<VerificationPolicy>],
    from: &str,
    of_controllers: &str,
) -> Option<String> {
    let way = Way { from, to: from };
    let holds = |policy: &&Arc<VerificationPolicy>| {
        let is_enforced = policy.spec.action.unwrap_or_default() == PolicyAction::Enforce;
        is_enforced && is_about_sources(policy, None) && covers(policy, way, of_controllers)
    };
    let policy = policies.iter().find(holds)?;
    Some(format!(
        "VerificationPolicy {} applies to the sources of namespace '{from}', and what a build fetches is not verified; copy it into \
         the source",
        id(policy)
    ))
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
        let other = policy("a", json!({"sources": {}}));
        assert!(!is_about(&other, "any"));
    }

    #[test]
    fn places_cannot_be_spelled_past_a_policy() {
        let one = policy(
            "a",
            json!({"sources": {"match": ["github.com/Acme/*"], "except": ["github.com/acme/docs"], "from": ["github.com/acme/*"]}}),
        );
        let verdict = |place: &str| (is_about_place(&one, place), lets_in_place(&one, place));
        assert_eq!(verdict("github.com/acme/app"), (true, true));
        assert_eq!(verdict("github.com/ACME/app"), (true, false));
        assert_eq!(verdict("github.com/acme/docs"), (false, true));
        assert_eq!(verdict("github.com/acme/DOCS"), (true, true));
        assert!(!verdict("github.com/acme-2/app").0);
        assert!(!is_about_place(&policy("a", json!({"images": {}})), "any"));
    }

    #[test]
    fn a_policy_is_about_kinds() {
        let git = policy("a", json!({"sources": {"kinds": ["GitRepository"]}}));
        let all = policy("a", json!({"sources": {}}));
        let none = policy("a", json!({"images": {}}));
        for (kind, expected) in [
            (Some(PolicySourceKind::GitRepository), [true, true, false]),
            (Some(PolicySourceKind::Bucket), [false, true, false]),
            (None, [true, true, false]),
        ] {
            assert_eq!(
                [&git, &all, &none].map(|one| is_about_sources(one, kind)),
                expected
            );
        }
    }

    #[test]
    fn where_sources_are_verified_builds_fetch_nothing() {
        let policies = |spec: Value| [Arc::new(policy("platform", spec))];
        let refused =
            |spec: Value, from: &str| refusal_of_remote(&policies(spec), from, "platform").is_some();
        let sources = json!({"namespaces": ["prod-*"], "sources": {"kinds": ["Bucket"]}});
        assert!(refused(sources.clone(), "prod-a"));
        assert!(!refused(sources, "dev"));
        let warns = json!({"namespaces": ["*"], "sources": {}, "action": "Warn"});
        assert!(!refused(warns, "prod-a"));
        assert!(!refused(json!({"namespaces": ["*"], "images": {}}), "prod-a"));
    }

    #[test]
    fn a_source_of_another_namespace_gets_around_what_holds_here() {
        let sources = json!({"namespaces": ["prod-*"], "sources": {"kinds": ["GitRepository"]}});
        let git = Some(PolicySourceKind::GitRepository);
        let platform = policy("platform", sources);
        let ended = policy(
            "platform",
            json!({"namespaces": ["prod-*"], "sources": {}, "suspend": true}),
        );
        for (from, kind, source, expected) in [
            ("prod-a", git, "dev", true),
            ("prod-a", None, "dev", true),
            ("prod-a", Some(PolicySourceKind::Bucket), "dev", false),
            ("prod-a", git, "prod-a", false),
            ("prod-a", git, "prod-b", false),
            ("prod-a", git, "platform", false),
            ("dev", git, "test", false),
        ] {
            let found = evaded([&ended, &platform], from, (kind, source), "platform");
            assert_eq!(found.is_some(), expected, "{from} {kind:?} {source}");
        }
    }
}
