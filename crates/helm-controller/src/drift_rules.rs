//! The rules of `spec.driftDetection.ignore`, in the words of the apply engine. Pure.

use api::helm::{DriftDetectionMode, HelmRelease};
use api::meta::IgnoreRule as Rule;
use flux_spec::selectors;
use kube_apply::{IgnoreError, IgnoreRule, IgnoreRules};

/// Returns whether an object asks to have its release compared with the cluster.
pub fn is_on(object: &HelmRelease) -> bool {
    let detection = object.spec.drift_detection.as_ref();
    detection.is_some_and(|detection| detection.mode() != DriftDetectionMode::Disabled)
}

/// Reads the rules of an object that are about fields.
pub fn rules_of(object: &HelmRelease) -> Result<IgnoreRules, IgnoreError> {
    let rules = rules(object).map(|rule| IgnoreRule {
        paths: rule
            .paths
            .iter()
            .filter(|path| !path.is_empty())
            .cloned()
            .collect(),
        target: rule.target.as_ref().map(selectors::object_selector),
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
            target: rule.target.as_ref().map(selectors::object_selector),
        })
        .collect();
    IgnoreRules::compile(&rules)
}

fn rules(object: &HelmRelease) -> impl Iterator<Item = &Rule> {
    let detection = object.spec.drift_detection.as_ref();
    detection.into_iter().flat_map(|detection| &detection.ignore)
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
        assert!(whole.select(&read("Deployment")) && !whole.select(&read("ConfigMap")));
        let fields = rules_of(&object).unwrap();
        assert!(fields.select(&read("ConfigMap")) && is_on(&object));
    }

    #[test]
    fn whole_objects_are_selected_by_their_labels_and_annotations_too() {
        let rules = |target: serde_json::Value| {
            let object: HelmRelease = serde_json::from_value(json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web"},
                "spec": {"interval": "1m", "driftDetection": {"ignore": [{"paths": [""], "target": target}]}},
            }))
            .unwrap();
            of_whole_objects(&object).unwrap()
        };
        let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  labels: {app: web}\n  annotations: {by: hand}\n";
        let object = manifest::read_objects(text, "file").unwrap().remove(0);
        for (target, expected) in [
            (json!({"labelSelector": "app=web"}), true),
            (json!({"labelSelector": "app=db"}), false),
            (json!({"annotationSelector": "by in (hand, foot)"}), true),
            (json!({"annotationSelector": "app"}), false),
            (
                json!({"kind": "Secret", "labelSelector": "app", "annotationSelector": "!by"}),
                false,
            ),
        ] {
            assert_eq!(rules(target.clone()).select(&object), expected, "{target}");
        }
    }
}
