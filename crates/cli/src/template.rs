//! `windlass template`: a chart and values in, what `helm template` prints out.
//!
//! Everything stays on this machine: no repository is asked for a chart and no cluster for its capabilities. The order of
//! the steps is Helm's, since the first one that fails is the one that users read about.

mod debug;
mod dry_run;
mod failure;
mod flags;
mod helm_version;
mod locate;
mod name;
mod output;
mod output_folder;
mod show_only;

use helm_chart::Helm;
use helm_chart::set_values::{merge, read_local};
use helm_render::capabilities::{Capabilities, KubeVersion};
use helm_render::{Options, Release, Rendered, Renderer};

use helm_version::print;

pub(crate) use failure::Failure;
use flags::Settings;

/// Renders, and prints. `report_line` is for warnings, line by line.
pub(crate) fn run(words: &[String], report_line: impl Fn(&str)) -> Result<(), Failure> {
    let settings = match flags::parse(words)? {
        flags::Parsed::Help(text) => return print(text.as_bytes()),
        flags::Parsed::Settings(settings) => settings,
    };
    settings.deprecations.iter().for_each(|line| report_line(line));
    if let Some(problem) = &settings.excluded {
        return Err(Failure::Flag(problem.clone()));
    }
    let warn = |warning: &str| report_line(&shown(warning, settings.helm));
    let outcome = rendered(&settings, &warn);
    match outcome {
        Ok(rendered) => output::write(&rendered, &settings),
        Err(Failure::Render(error)) if settings.debug && error.is_of_rendering() => {
            debug::write(&error, &settings)?;
            Err(Failure::Rendered(error))
        }
        Err(failure) => Err(failure),
    }
}

/// Shows a warning as Helm's logger does.
fn shown(warning: &str, helm: Helm) -> String {
    match helm {
        Helm::V4 if !warning.starts_with("level=") => format!("level=WARN msg={warning:?}"),
        _ => warning.to_owned(),
    }
}

fn rendered(settings: &Settings, warn: &impl Fn(&str)) -> Result<Rendered, Failure> {
    let helm = settings.helm;
    let capabilities = capabilities(settings)?;
    if let Some(warning) = dry_run::check(settings)? {
        warn(&warning);
    }
    settings.refuse_unsupported()?;
    let (name, chart) = name::name_and_chart(settings)?;
    let path = locate::chart(chart, settings)?;
    let values = merge::merge(&settings.values, &mut read_local, helm).map_err(Failure::Values)?;
    let mut warnings = Vec::new();
    let chart = helm_chart::load(&path, helm, &mut warnings)
        .and_then(|chart| helm_chart::check(&chart, helm, &mut warnings).map(|()| chart));
    warnings.iter().for_each(|warning| warn(&warning.to_string()));
    let chart = chart.map_err(Failure::Chart)?;
    let release = Release {
        is_upgrade: settings.is_upgrade,
        ..Release::new(name, settings.namespace.clone())
    };
    let options = Options {
        capabilities: Some(capabilities),
        skip_schema_validation: settings.skip_schema_validation,
        with_notes_of_dependencies: settings.with_notes_of_dependencies,
        ..Options::new(release)
    };
    let rendered = Renderer::new(chart, helm)
        .render(&values, &options)
        .map_err(Failure::Render)?;
    rendered
        .warnings
        .iter()
        .for_each(|warning| warn(&warning.to_string()));
    Ok(rendered)
}

fn capabilities(settings: &Settings) -> Result<Capabilities, Failure> {
    let mut capabilities = Capabilities::offline(settings.helm);
    if let Some(version) = &settings.kube_version {
        capabilities.kube_version = KubeVersion::parse(version, settings.helm)
            .map_err(|error| Failure::Flag(format!("invalid kube version '{version}': {error}")))?;
    }
    capabilities
        .api_versions
        .extend(settings.api_versions.iter().cloned());
    Ok(capabilities)
}
