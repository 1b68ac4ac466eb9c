//! Finds the chart on this machine, and refuses those that would have to be fetched.

use std::path::{Path, absolute};

use helm_render::Helm;

use super::Failure;
use super::flags::Settings;

/// Returns the absolute path of a chart.
pub(super) fn chart(name: &str, settings: &Settings) -> Result<String, Failure> {
    let refuse = |text: String| Err(Failure::Place(text));
    let name = name.trim();
    let is_remote = settings.repository.is_some() && settings.helm == Helm::V4;
    if !is_remote {
        if Path::new(name).exists() {
            let path = absolute(name).map_err(|error| Failure::path("stat", name, &error))?;
            return Ok(path.to_string_lossy().into_owned());
        }
        if name.starts_with(['.', '/']) {
            return refuse(format!("path {name:?} not found"));
        }
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
