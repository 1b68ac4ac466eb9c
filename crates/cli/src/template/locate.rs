//! Finds the chart on this machine, and refuses those that would have to be fetched.

use helm_chart::Helm;

use super::Failure;
use super::flags::Settings;

/// Returns the absolute path of a chart.
pub(super) fn chart(name: &str, settings: &Settings) -> Result<String, Failure> {
    let refuse = |text: String| Err(Failure::Place(text));
    let name = name.trim();
    // Helm 4 asks the repository that it was given, Helm 3 a folder of that name first.
    let may_be_local = settings.repository.is_none() || settings.helm == Helm::V3;
    if may_be_local && let Some(path) = helm_chart::locate(name).map_err(Failure::Chart)? {
        return Ok(path);
    }
    if settings.repository.is_some() || name.contains("://") {
        return refuse(format!(
            "{name}: windlass template fetches no charts; give it a folder or an archive"
        ));
    }
    match name.split_once('/') {
        Some((repository, _)) if !repository.is_empty() => refuse(format!("repo {repository} not found")),
        _ => refuse(format!(
            "non-absolute URLs should be in form of repo_name/path_to_chart, got: {name}"
        )),
    }
}
