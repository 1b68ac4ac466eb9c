//! `windlass template`: a chart and values in, what `helm template` prints out.
//!
//! No repository is asked for a chart, and a cluster only with `--dry-run=server`. The order of the steps is Helm's, since
//! the first one that fails is the one that users read about.

mod cluster;
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

use cluster::{Cluster, Surroundings};
use dry_run::Asked;
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
    let (asked, warning) = dry_run::asked(settings)?;
    if let Some(warning) = warning {
        warn(&warning);
    }
    settings.refuse_unsupported()?;
    if settings.dry_run_apply && !asked.validate {
        return Err(Failure::Flag("--dry-run-apply needs --dry-run=server".to_owned()));
    }
    let (name, chart) = name::name_and_chart(settings)?;
    let path = locate::chart(chart, settings)?;
    let values = merge::merge(&settings.values, &mut read_local, helm).map_err(Failure::Values)?;
    let mut warnings = Vec::new();
    let chart = helm_chart::load(&path, helm, &mut warnings)
        .and_then(|chart| helm_chart::check(&chart, helm, &mut warnings).map(|()| chart));
    warnings.iter().for_each(|warning| warn(&warning.to_string()));
    let chart = chart.map_err(Failure::Chart)?;
    let cluster = (asked != Asked::default()).then(|| Cluster::find(settings));
    let cluster = cluster.transpose()?;
    let surroundings = match &cluster {
        Some(cluster) => cluster.surroundings(settings, asked)?,
        None => Surroundings::none(settings),
    };
    let of_cluster = cluster.as_ref().map_or("default", |cluster| &cluster.namespace);
    let namespace = settings.namespace.as_deref().unwrap_or(of_cluster);
    let release = Release {
        is_upgrade: settings.is_upgrade,
        ..Release::new(name.clone(), namespace)
    };
    let options = Options {
        // Helm ignores --kube-version and --api-versions where a cluster says what it is.
        capabilities: Some(surroundings.capabilities.unwrap_or(capabilities)),
        lookup: surroundings.lookup,
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
    if let Some(cluster) = cluster.filter(|_| asked.validate) {
        cluster.check(&rendered, &name, settings)?;
    }
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
