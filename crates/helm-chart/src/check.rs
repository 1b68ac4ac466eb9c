//! Checks that `helm install` and `helm template` make of a loaded chart before they render it.

use super::error::{Error, ErrorKind};
use super::metadata::Dependency;
use crate::Warning;
use crate::chart::{Chart, Helm};

/// Asks everything in Helm's order: is it an application, is it deprecated, are its dependencies there, can it be rendered.
pub fn check(chart: &Chart, helm: Helm, warnings: &mut Vec<Warning>) -> Result<(), Error> {
    check_installable(chart)?;
    warnings.extend(deprecation(chart, helm));
    check_dependencies(chart, helm)?;
    if helm == Helm::V4 && chart.metadata.api_version == "v3" {
        // Helm 4 can load such charts already, and only that.
        return Err(Error::new(ErrorKind::Refused, "invalid chart apiVersion"));
    }
    Ok(())
}

/// Refuses library charts.
fn check_installable(chart: &Chart) -> Result<(), Error> {
    match chart.metadata.kind.as_str() {
        "" | "application" => Ok(()),
        kind => Err(Error::new(
            ErrorKind::Refused,
            format!("{kind} charts are not installable"),
        )),
    }
}

/// Warns of a chart that calls itself deprecated.
fn deprecation(chart: &Chart, helm: Helm) -> Option<Warning> {
    let text = match helm {
        Helm::V3 => "WARNING: This chart is deprecated",
        Helm::V4 => "this chart is deprecated",
    };
    chart.metadata.deprecated.then(|| Warning::new(text))
}

/// Refuses a chart that names dependencies in Chart.yaml which charts/ does not hold.
///
/// Only names count here: whether the version is right is seen when the dependencies are processed.
fn check_dependencies(chart: &Chart, helm: Helm) -> Result<(), Error> {
    let is_missing = |dependency: &&Dependency| {
        chart
            .dependencies
            .iter()
            .all(|held| held.name() != dependency.name)
    };
    let named = chart.metadata.dependencies.iter().flatten();
    let missing: Vec<&str> = named
        .filter(is_missing)
        .map(|dependency| dependency.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let context = match helm {
        Helm::V3 => {
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies"
        }
        Helm::V4 => {
            "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies"
        }
    };
    let text = format!(
        "found in Chart.yaml, but missing in charts/ directory: {}",
        missing.join(", ")
    );
    Err(Error::new(ErrorKind::Refused, text).within(context))
}
