//! The HelmChart that is made for a release whose spec describes one: what it should look like, and what has to be done.
//! Pure; `reconcile/template.rs` sends it.

use std::collections::BTreeMap;

use api::helm::{ChartTemplate, HelmRelease};
use api::meta::HELM_GROUP;
use api::source::{HelmChart, HelmChartSpec};
use controller_kit::ObjectKey;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

/// Version that the API server fills in where the spec names none.
const ANY_VERSION: &str = "*";
/// How the annotations begin that Windlass itself reads.
const OWN_PREFIX: &str = "windlass.dev/";

/// The name and place of an object's HelmChart; None if its spec describes none.
pub fn key(object: &HelmRelease) -> Option<ObjectKey> {
    let template = object.spec.chart.as_ref()?;
    Some(ObjectKey::new(namespace(object, template), name(object)))
}

fn name(object: &HelmRelease) -> String {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}-{}", object.name_any())
}

fn namespace(object: &HelmRelease, template: &ChartTemplate) -> String {
    let named = template.spec.source_ref.namespace.clone();
    let named = named.filter(|namespace| !namespace.is_empty());
    named.unwrap_or_else(|| object.metadata.namespace.clone().unwrap_or_default())
}

/// The HelmChart that an object's spec describes.
pub fn desired(object: &HelmRelease) -> Option<HelmChart> {
    let template = object.spec.chart.as_ref()?;
    let mut metadata = template.metadata.clone().unwrap_or_default();
    // The HelmChart may be in another namespace, where ours are for its owner to set.
    metadata.annotations.retain(|key, _| !key.starts_with(OWN_PREFIX));
    let mut labels = metadata.labels;
    labels.extend(owner_labels(object));
    let chart = flux_spec::release::chart_spec(object)?;
    Some(HelmChart {
        metadata: ObjectMeta {
            name: Some(name(object)),
            namespace: Some(namespace(object, template)),
            labels: Some(labels),
            annotations: (!metadata.annotations.is_empty()).then_some(metadata.annotations),
            ..ObjectMeta::default()
        },
        spec: chart,
        status: None,
    })
}

/// The labels by which a HelmChart is known to be of an object.
fn owner_labels(object: &HelmRelease) -> BTreeMap<String, String> {
    [
        (format!("{HELM_GROUP}/name"), object.name_any()),
        (
            format!("{HELM_GROUP}/namespace"),
            object.metadata.namespace.clone().unwrap_or_default(),
        ),
    ]
    .into()
}

/// Returns whether a HelmChart was made for an object.
pub fn is_of(chart: &HelmChart, object: &HelmRelease) -> bool {
    let labels = chart.labels();
    owner_labels(object)
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

/// Returns the HelmRelease that owns a HelmChart, by its labels.
pub fn owner(chart: &HelmChart) -> Option<ObjectKey> {
    let label = |name: &str| chart.labels().get(&format!("{HELM_GROUP}/{name}")).cloned();
    Some(ObjectKey::new(label("namespace")?, label("name")?))
}

/// Returns whether a HelmChart is as the spec describes it. Labels and annotations of others do not matter.
pub fn is_current(chart: &HelmChart, desired: &HelmChart) -> bool {
    let holds = |have: &BTreeMap<String, String>, want: &BTreeMap<String, String>| {
        want.iter().all(|(key, value)| have.get(key) == Some(value))
    };
    chart.metadata.deletion_timestamp.is_none()
        && settled(&chart.spec) == settled(&desired.spec)
        && holds(chart.labels(), desired.labels())
        && holds(chart.annotations(), desired.annotations())
}

/// A spec with the defaults that the API server fills in.
fn settled(spec: &HelmChartSpec) -> HelmChartSpec {
    HelmChartSpec {
        version: Some(spec.version.clone().unwrap_or_else(|| ANY_VERSION.to_owned())),
        reconcile_strategy: Some(spec.reconcile_strategy.unwrap_or_default()),
        // Not ours to say.
        suspend: false,
        ..spec.clone()
    }
}

/// The HelmChart that the status names, which is to be deleted: the spec describes another, or none.
pub fn outdated(object: &HelmRelease) -> Option<ObjectKey> {
    let named = object.status.as_ref()?.helm_chart.as_deref()?;
    let (namespace, name) = named.split_once('/')?;
    let named = ObjectKey::new(namespace, name);
    (key(object).as_ref() != Some(&named)).then_some(named)
}

#[cfg(test)]
mod tests {
    use api::helm::HelmReleaseStatus;
    use serde_json::json;

    use super::*;

    fn object(spec: serde_json::Value) -> HelmRelease {
        serde_json::from_value(json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": "apps"}, "spec": spec,
        }))
        .unwrap()
    }

    fn template() -> serde_json::Value {
        json!({"interval": "10m", "chart": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b", "windlass.dev/access-from": "*"}},
            "spec": {
                "chart": "podinfo", "version": "6.x", "valuesFiles": ["a.yaml"], "ignoreMissingValuesFiles": true,
                "sourceRef": {"kind": "HelmRepository", "name": "podinfo", "namespace": "sources"},
                "verify": {"provider": "cosign", "secretRef": {"name": "keys"}},
            },
        }})
    }

    #[test]
    fn a_template_becomes_a_helm_chart_beside_its_source() {
        let object = object(template());
        assert_eq!(key(&object), Some(ObjectKey::new("sources", "apps-web")));
        let chart = serde_json::to_value(desired(&object)).unwrap();
        assert_eq!(
            chart,
            json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
                "metadata": {
                    "name": "apps-web", "namespace": "sources", "annotations": {"note": "b"},
                    "labels": {
                        "team": "a", "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "apps",
                    },
                },
                "spec": {
                    "chart": "podinfo", "version": "6.x", "interval": "10m0s", "valuesFiles": ["a.yaml"],
                    "ignoreMissingValuesFiles": true, "sourceRef": {"kind": "HelmRepository", "name": "podinfo"},
                    "verify": {"provider": "cosign", "secretRef": {"name": "keys"}},
                },
            })
        );
    }

    #[test]
    fn a_helm_chart_is_left_alone_as_long_as_it_is_as_described() {
        let object = object(json!({"interval": "10m", "chart": {"spec": {
            "chart": "podinfo", "sourceRef": {"kind": "HelmRepository", "name": "podinfo"},
        }}}));
        let desired = desired(&object).unwrap();
        let mut served = desired.clone();
        served.spec.version = Some("*".to_owned());
        served.spec.reconcile_strategy = Some(api::source::ReconcileStrategy::ChartVersion);
        served.labels_mut().insert("other".to_owned(), "label".to_owned());
        assert!(is_current(&served, &desired) && is_of(&served, &object));
        let mut other = served.clone();
        other.spec.version = Some("1.x".to_owned());
        assert!(!is_current(&other, &desired));
        let mut unowned = served.clone();
        unowned.labels_mut().clear();
        assert!(!is_current(&unowned, &desired) && !is_of(&unowned, &object));
    }

    #[test]
    fn what_the_status_names_goes_when_the_spec_describes_another() {
        let named = |spec, chart: &str| {
            let mut object = object(spec);
            object.status = Some(HelmReleaseStatus {
                helm_chart: Some(chart.to_owned()),
                ..HelmReleaseStatus::default()
            });
            outdated(&object)
        };
        assert_eq!(named(template(), "sources/apps-web"), None);
        let old = Some(ObjectKey::new("apps", "apps-web"));
        assert_eq!(named(template(), "apps/apps-web"), old);
        let by_reference =
            json!({"interval": "1m", "chartRef": {"kind": "OCIRepository", "name": "podinfo"}});
        assert_eq!(named(by_reference, "apps/apps-web"), old);
    }
}
