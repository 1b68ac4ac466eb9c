//! The rules of `spec.driftDetection.ignore`, in the words of the apply engine. Pure.

use api::helm::{DriftDetectionMode, HelmRelease};
use api::meta::{IgnoreRule as Rule, Selector};
use kube_apply::{IgnoreError, IgnoreRule, IgnoreRules, IgnoreTarget};

/// Whether an object asks to have its release compared with the cluster.
pub fn is_on(object: &HelmRelease) -> bool {
    let detection = object.spec.drift_detection.as_ref();
    detection.is_some_and(|detection| detection.mode() != DriftDetectionMode::Disabled)
}

/// Reads the rules of an object that are about fields.
pub fn of(object: &HelmRelease) -> Result<IgnoreRules, IgnoreError> {
    let rules = rules(object).map(|rule| IgnoreRule {
        paths: rule
            .paths
            .iter()
            .filter(|path| !path.is_empty())
            .cloned()
            .collect(),
        target: rule.target.as_ref().map(target),
    });
    let rules: Vec<_> = rules.filter(|rule| !rule.paths.is_empty()).collect();
    IgnoreRules::compile(&rules)
}

/// Reads the rules of an object that leave whole objects alone: those with an empty path.
pub fn of_whole_objects(object: &HelmRelease) -> Result<IgnoreRules, IgnoreError> {
    let rules = rules(object).filter(|rule| rule.paths.iter().any(String::is_empty));
    let rules: Vec<_> = rules
        .map(|rule| IgnoreRule {
            paths: Vec::new(),
            target: rule.target.as_ref().map(target),
        })
        .collect();
    IgnoreRules::compile(&rules)
}

fn rules(object: &HelmRelease) -> impl Iterator<Item = &Rule> {
    let detection = object.spec.drift_detection.as_ref();
    detection.into_iter().flat_map(|detection| &detection.ignore)
}

/// Reads what a selector selects.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_path_is_a_rule_about_whole_objects() {
        let object: HelmRelease = serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web"},
            "spec": {"interval": "1m", "driftDetection": {"mode": "warn", "ignore": [
                {"paths": ["", "/spec/replicas"], "target": {"kind": "Deployment"}},
                {"paths": ["/data"]},
            ]}},
        }))
        .unwrap();
        let read = |kind: &str| {
            let text = format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a, namespace: b}}\n");
            manifest::read_objects(&text, "file").unwrap().remove(0)
        };
        let whole = of_whole_objects(&object).unwrap();
        assert!(whole.names(&read("Deployment")) && !whole.names(&read("ConfigMap")));
        let fields = of(&object).unwrap();
        assert!(fields.names(&read("ConfigMap")) && is_on(&object));
    }
}
