//! The rules of `spec.ignore`, in the words of the apply engine. Pure.

use api::kustomize::Kustomization;
use api::meta::{IgnoreRule as Rule, Selector};
use kube_apply::{IgnoreError, IgnoreRule, IgnoreRules, IgnoreTarget};

/// Reads the rules of an object.
pub(super) fn rules(object: &Kustomization) -> Result<IgnoreRules, IgnoreError> {
    let rules: Vec<_> = object.spec.ignore.iter().map(rule).collect();
    IgnoreRules::compile(&rules)
}

fn rule(rule: &Rule) -> IgnoreRule {
    IgnoreRule {
        paths: rule.paths.clone(),
        target: rule.target.as_ref().map(target),
    }
}

fn target(selector: &Selector) -> IgnoreTarget {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    IgnoreTarget {
        group: text(&selector.group),
        version: text(&selector.version),
        kind: text(&selector.kind),
        name: text(&selector.name),
        namespace: text(&selector.namespace),
        annotation_selector: text(&selector.annotation_selector),
        label_selector: text(&selector.label_selector),
    }
}
