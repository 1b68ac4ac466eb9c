//! The HelmChart that a HelmRelease describes.

use api::helm::HelmRelease;
use api::source::{ChartVerification, HelmChartSpec, LocalHelmChartSourceReference};

/// The spec of the HelmChart that an object describes; None if it refers to one, or to an OCIRepository.
pub fn chart_spec(object: &HelmRelease) -> Option<HelmChartSpec> {
    let spec = &object.spec.chart.as_ref()?.spec;
    Some(HelmChartSpec {
        chart: spec.chart.clone(),
        version: spec.version.clone(),
        source_ref: LocalHelmChartSourceReference {
            api_version: None,
            kind: spec.source_ref.kind,
            name: spec.source_ref.name.clone(),
        },
        interval: spec.interval.unwrap_or(object.spec.interval),
        reconcile_strategy: spec.reconcile_strategy,
        values_files: spec.values_files.clone(),
        ignore_missing_values_files: spec.ignore_missing_values_files,
        verification: spec.verification.as_ref().map(|verification| ChartVerification {
            provider: verification.provider,
            secret_ref: verification.secret_ref.clone(),
            ..ChartVerification::default()
        }),
        ..HelmChartSpec::default()
    })
}
