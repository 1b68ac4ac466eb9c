//! `helmCharts`, `helmGlobals` and what they replaced: read as kustomize reads them, into the configuration that it gives to
//! its plugin.

use serde_json::{Map, Value};

use super::decode::{Decode, Fields, Place};
use crate::error::Result;

/// A chart's fields, those left out that say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HelmChart(Map<String, Value>);

/// Settings that all charts share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HelmGlobals(Map<String, Value>);

/// A chart in the form of `helmChartInflationGenerator`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OldHelmChart(Map<String, Value>);

impl HelmChart {
    /// Returns the configuration of kustomize's plugin; a chart takes the kustomization's namespace if it has none.
    pub(crate) fn configuration(&self, globals: &HelmGlobals, namespace: &str) -> Map<String, Value> {
        let mut fields = globals.0.clone();
        fields.extend(self.0.clone());
        if !namespace.is_empty() {
            fields
                .entry("namespace")
                .or_insert_with(|| Value::from(namespace));
        }
        fields
    }
}

impl OldHelmChart {
    /// Returns the chart in today's form.
    pub(crate) fn chart(&self) -> HelmChart {
        const NAMES: [(&str, &str); 7] = [
            ("chartName", "name"),
            ("chartVersion", "version"),
            ("chartRepoUrl", "repo"),
            ("values", "valuesFile"),
            ("valuesLocal", "valuesInline"),
            ("valuesMerge", "valuesMerge"),
            ("releaseName", "releaseName"),
        ];
        HelmChart(self.renamed(&NAMES))
    }

    /// Takes what charts shared in the old form; the last one counts.
    pub(crate) fn globals(charts: &[Self]) -> HelmGlobals {
        let mut globals = Map::new();
        for chart in charts {
            globals.extend(chart.renamed(&[("helmHome", "configHome"), ("chartHome", "chartHome")]));
        }
        HelmGlobals(globals)
    }

    fn renamed(&self, names: &[(&str, &str)]) -> Map<String, Value> {
        let field = |(old, new): &(&str, &str)| Some(((*new).to_owned(), self.0.get(*old)?.clone()));
        names.iter().filter_map(field).collect()
    }
}

/// Takes fields of one type that say something.
fn take<T>(fields: &mut Fields<'_>, names: &[&str], into: &mut Map<String, Value>)
where
    T: Decode + Default + PartialEq + Into<Value>,
{
    for name in names {
        let mut value = T::default();
        fields.take(name, &mut value);
        if value != T::default() {
            into.insert((*name).to_owned(), value.into());
        }
    }
}

impl Decode for HelmChart {
    fn go_type() -> String {
        "types.HelmChart".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut chart = Map::new();
        let mut fields = Fields::new::<Self>(value, place)?;
        take_chart(&mut fields, &mut chart);
        fields.finish()?;
        Ok(Self(chart))
    }
}

fn take_chart(fields: &mut Fields<'_>, chart: &mut Map<String, Value>) {
    const TEXTS: [&str; 9] = [
        "name",
        "version",
        "repo",
        "releaseName",
        "namespace",
        "valuesFile",
        "valuesMerge",
        "kubeVersion",
        "nameTemplate",
    ];
    take::<String>(fields, &TEXTS, chart);
    take::<Vec<String>>(fields, &["additionalValuesFiles", "apiVersions"], chart);
    let switches = ["includeCRDs", "skipHooks", "skipTests", "debug", "devel"];
    take::<bool>(fields, &switches, chart);
    take::<Map<String, Value>>(fields, &["valuesInline"], chart);
}

const GLOBALS: [&str; 2] = ["chartHome", "configHome"];

/// Takes the fields of a `HelmChartInflationGenerator`: those of a chart, and those that all charts share.
pub(crate) fn chart_fields(fields: &mut Fields<'_>) -> Map<String, Value> {
    let mut chart = Map::new();
    take_chart(fields, &mut chart);
    take::<String>(fields, &GLOBALS, &mut chart);
    chart
}

impl Decode for OldHelmChart {
    fn go_type() -> String {
        "types.HelmChartArgs".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        const TEXTS: [&str; 11] = [
            "chartName",
            "chartVersion",
            "chartRepoUrl",
            "chartHome",
            "chartRepoName",
            "helmBin",
            "helmHome",
            "values",
            "valuesMerge",
            "releaseName",
            "releaseNamespace",
        ];
        let mut chart = Map::new();
        let mut fields = Fields::new::<Self>(value, place)?;
        take::<String>(&mut fields, &TEXTS, &mut chart);
        take::<Vec<String>>(&mut fields, &["extraArgs"], &mut chart);
        take::<Map<String, Value>>(&mut fields, &["valuesLocal"], &mut chart);
        fields.finish()?;
        Ok(Self(chart))
    }
}

impl Decode for HelmGlobals {
    fn go_type() -> String {
        "types.HelmGlobals".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut globals = Map::new();
        let mut fields = Fields::new::<Self>(value, place)?;
        take::<String>(&mut fields, &GLOBALS, &mut globals);
        fields.finish()?;
        Ok(Self(globals))
    }
}
