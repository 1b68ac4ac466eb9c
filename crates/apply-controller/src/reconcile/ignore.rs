//! The rules of `spec.ignore`, in the words of the apply engine. Pure.

use api::kustomize::Kustomization;
use api::meta::IgnoreRule as Rule;
use flux_spec::selectors;
use kube_apply::{IgnoreError, IgnoreRule, IgnoreRules};

/// Reads the rules of an object.
pub(super) fn rules(object: &Kustomization) -> Result<IgnoreRules, IgnoreError> {
    let rules: Vec<_> = object.spec.ignore.iter().map(rule).collect();
    IgnoreRules::compile(&rules)
}

fn rule(rule: &Rule) -> IgnoreRule {
    IgnoreRule {
        paths: rule.paths.clone(),
        target: rule.target.as_ref().map(selectors::object_selector),
    }
}
