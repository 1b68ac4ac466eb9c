//! Which policies an automation follows, and what they have chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::image::{ImagePolicy, ImageRef, ImageUpdateAutomation};
use controller_kit::{ObjectKey, access_from};
use kube::ResourceExt as _;
use kube::core::Selector;

use super::error::Error;
use crate::context::Context;

/// Annotation with the namespaces, separated by commas, whose policies the automation follows besides those of its own.
pub(crate) const NAMESPACES: &str = "windlass.dev/policy-namespaces";
/// Namespaces of one automation.
const MAX_NAMESPACES: usize = 50;

/// Why the policies of other namespaces are not followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Namespaces {
    /// The annotation cannot be read.
    #[error("the annotation {NAMESPACES} must list at most {MAX_NAMESPACES} namespaces, separated by commas")]
    Invalid,
    /// References between namespaces are locked.
    #[error(
        "can't access the ImagePolicies of namespace '{0}', cross-namespace references have been blocked"
    )]
    Blocked(String),
}

/// What the policies of an automation have chosen.
pub(super) struct Chosen {
    /// Those that have chosen an image.
    pub(super) policies: Vec<Arc<ImagePolicy>>,
    /// No policy is without a choice.
    pub(super) is_settled: bool,
}

/// The policies of the namespace, and of those that it names and whose owners agree, by the selector.
pub(super) fn policies(object: &ImageUpdateAutomation, context: &Context) -> Result<Chosen, Error> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let others = other_namespaces(object)?;
    if let Some(other) = others.first().filter(|_| context.no_cross_namespace_refs) {
        return Err(Namespaces::Blocked((*other).to_owned()).into());
    }
    let selector = selector(object)?;
    let all = context.policies.cache.store().state().into_iter();
    // What was written a moment ago may not be in the store yet.
    let newest = all.filter_map(|policy| {
        context
            .policies
            .cache
            .get(&ObjectKey::from_object(&*policy).object_ref())
    });
    let selected = newest
        .filter(|policy| is_own(policy, own) || others.iter().any(|other| is_shared(policy, other, own)))
        .filter(|policy| {
            let labels = policy.metadata.labels.as_ref();
            selector.as_ref().is_none_or(|selector| match labels {
                Some(labels) => kube::core::SelectorExt::matches(selector, labels),
                None => kube::core::SelectorExt::matches(selector, &BTreeMap::new()),
            })
        });
    let (mut policies, without): (Vec<_>, Vec<_>) = selected.partition(|policy| {
        let status = policy.status.as_ref();
        status.is_some_and(|status| status.latest_ref.is_some())
    });
    policies.sort_by_key(|policy| (!is_own(policy, own), policy.namespace(), policy.name_any()));
    Ok(Chosen {
        policies,
        is_settled: without.is_empty(),
    })
}

/// Returns whether the automation follows policies of a namespace, as far as it is concerned.
pub(crate) fn follows(object: &ImageUpdateAutomation, namespace: &str) -> bool {
    let is_own = object.metadata.namespace.as_deref() == Some(namespace);
    is_own || other_namespaces(object).is_ok_and(|others| others.contains(namespace))
}

/// The namespaces that the automation names besides its own.
fn other_namespaces(object: &ImageUpdateAutomation) -> Result<BTreeSet<&str>, Namespaces> {
    let list = object.annotations().get(NAMESPACES).map(String::as_str);
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let names = list.unwrap_or_default().split(',').map(str::trim);
    let names: BTreeSet<_> = names.filter(|name| !name.is_empty() && *name != own).collect();
    let is_name = |name: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        name.len() <= 63 && name.bytes().all(is_plain)
    };
    if names.len() > MAX_NAMESPACES || !names.iter().all(is_name) {
        return Err(Namespaces::Invalid);
    }
    Ok(names)
}

fn is_own(policy: &ImagePolicy, own: &str) -> bool {
    policy.metadata.namespace.as_deref() == Some(own)
}

/// Returns whether a policy is in `namespace` and its owner lets automations of `own` follow it. Flux has no such access, so
/// without the annotation it is denied.
fn is_shared(policy: &ImagePolicy, namespace: &str, own: &str) -> bool {
    let allowed = policy.annotations().get(access_from::ANNOTATION);
    is_own(policy, namespace)
        && allowed.is_some_and(|list| access_from::check(Some(list), own, namespace).is_ok())
}

/// The name of a policy for an automation of the namespace `own`, with its namespace if that is another one.
pub(super) fn name(policy: &ImagePolicy, own: &str, between: char) -> String {
    let name = policy.name_any();
    match policy.metadata.namespace.as_deref() {
        Some(namespace) if namespace != own => format!("{namespace}{between}{name}"),
        _ => name,
    }
}

fn selector(object: &ImageUpdateAutomation) -> Result<Option<Selector>, Error> {
    let Some(selector) = &object.spec.policy_selector else {
        return Ok(None);
    };
    let failed = |error: &dyn std::fmt::Display| Error::Selector(error.to_string());
    Selector::try_from(selector.of_kubernetes())
        .map(Some)
        .map_err(|error| failed(&error))
}

/// The choices as the status has them, by the name of the policy: `namespace/name` for those of other namespaces.
pub(super) fn observed(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
) -> BTreeMap<String, ImageRef> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let entry = |policy: &Arc<ImagePolicy>| {
        let image = policy.status.as_ref()?.latest_ref.clone()?;
        Some((name(policy, own, '/'), image))
    };
    policies.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn automation(namespaces: &str) -> ImageUpdateAutomation {
        let object = json!({
            "metadata": {"name": "app", "namespace": "shop", "annotations": {NAMESPACES: namespaces}},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h"},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn namespaces_are_names() {
        let object = automation("tools, shop,,web");
        assert_eq!(
            Vec::from_iter(other_namespaces(&object).unwrap()),
            ["tools", "web"]
        );
        assert!(follows(&object, "shop") && follows(&object, "web") && !follows(&object, "we"));
        let many: Vec<_> = (0..=MAX_NAMESPACES).map(|number| format!("n{number}")).collect();
        for list in ["*", "Tools", "a/b", &many.join(",")] {
            assert!(other_namespaces(&automation(list)).is_err(), "{list}");
            assert!(!follows(&automation(list), "tools"), "{list}");
        }
    }

    #[test]
    fn a_policy_is_shared_by_its_owner_only() {
        let policy = |annotations: Value| -> ImagePolicy {
            serde_json::from_value(json!({
                "metadata": {"name": "web", "namespace": "tools", "annotations": annotations},
                "spec": {"imageRepositoryRef": {"name": "web"}, "policy": {}},
            }))
            .unwrap()
        };
        for (annotations, expected) in [
            (json!({}), false),
            (json!({access_from::ANNOTATION: ""}), false),
            (json!({access_from::ANNOTATION: "web"}), false),
            (json!({access_from::ANNOTATION: "shop"}), true),
            (json!({access_from::ANNOTATION: "*"}), true),
            (json!({access_from::ANNOTATION: "shop, {}"}), false),
        ] {
            assert_eq!(
                is_shared(&policy(annotations.clone()), "tools", "shop"),
                expected,
                "{annotations}"
            );
        }
        let shared = policy(json!({access_from::ANNOTATION: "shop"}));
        assert!(!is_shared(&shared, "web", "shop"));
        assert_eq!(name(&shared, "shop", '/'), "tools/web");
        assert_eq!(name(&shared, "tools", '/'), "web");
    }
}
