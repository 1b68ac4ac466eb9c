//! A chart rendered as `helm template` prints it.

use helm_chart::{File, Helm, IgnoreRules};
use helm_render::capabilities::{Capabilities, KubeVersion};
use helm_render::printed::Shown;
use helm_render::{Options, Release, Renderer, name_from_template};
use kustomize_build::ChartRelease;
use serde_json::Map;

/// The line that is followed.
const HELM: Helm = Helm::V4;
/// The name of a release that was given none, as Helm has it.
const NAME: &str = "release-name";
/// Helm's namespace where nothing names one.
const NAMESPACE: &str = "default";
/// File with patterns of files that are no part of a chart.
const IGNORE: &str = ".helmignore";

/// Renders; the error is in Helm's words.
pub(crate) fn template(release: &ChartRelease) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let name = match (release.name.as_str(), release.name_template.as_str()) {
        ("", "") => NAME.to_owned(),
        ("", template) => name_from_template(template)?,
        (name, "") => name.to_owned(),
        _ => return Err("cannot set --name-template and also specify a name".to_owned()),
    };
    let mut capabilities = Capabilities::offline(HELM);
    if !release.kube_version.is_empty() {
        let version = &release.kube_version;
        capabilities.kube_version = KubeVersion::parse(version, HELM)
            .map_err(|error| format!("invalid kube version '{version}': {error}"))?;
    }
    capabilities
        .api_versions
        .extend(release.api_versions.iter().cloned());
    let mut values = Map::new();
    for file in &release.values {
        let read = helm_chart::values::read(file, HELM);
        let read = read.map_err(|error| format!("failed to parse values: {error}"))?;
        helm_chart::values::merge(&mut values, read);
    }
    let mut warnings = Vec::new();
    let chart = helm_chart::load_files(files(release)?, HELM, &mut warnings).map_err(|error| text(&error))?;
    helm_chart::check(&chart, HELM, &mut warnings).map_err(|error| text(&error))?;
    let namespace = match release.namespace.as_str() {
        "" => NAMESPACE,
        namespace => namespace,
    };
    let options = Options {
        capabilities: Some(capabilities),
        ..Options::new(Release::new(name, namespace))
    };
    let rendered = Renderer::new(chart, HELM)
        .render(&values, &options)
        .map_err(|error| text(&error))?;
    Ok(rendered.printed(Shown {
        crds: release.with_crds,
        hooks: !release.skip_hooks,
        tests: !release.skip_tests,
    }))
}

/// Returns the files that the chart does not ignore.
fn files(release: &ChartRelease) -> Result<Vec<File>, String> {
    let rules = release.files.iter().find(|(path, _)| path == IGNORE);
    let rules = IgnoreRules::new(rules.map(|(_, content)| content.as_slice()));
    let rules = rules.map_err(|error| error.to_string())?;
    let is_ignored = |path: &str| {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        rules.ignore(path, false) || folders.into_iter().any(|folder| rules.ignore(folder, true))
    };
    let kept = release.files.iter().filter(|(path, _)| !is_ignored(path));
    Ok(kept
        .map(|(path, content)| File {
            name: path.clone(),
            data: content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content).into(),
        })
        .collect())
}
