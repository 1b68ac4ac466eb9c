//! The rules that Chart.yaml must keep, with Helm's messages (`Metadata.Validate`).
//!
//! Validation also tidies: control characters vanish from most texts and every kind of white space becomes a blank.

use std::collections::HashSet;

use go_semver::Version;
use go_text::quote::quoted;
use go_text::rune::is_printable;

use super::decode::Draft;
use super::error::{Error, ErrorKind};
use super::metadata::{Dependency, Maintainer, Metadata};

/// Checks and tidies what Chart.yaml said.
pub(super) fn validate(draft: Draft) -> Result<Metadata, Error> {
    let mut metadata = draft.metadata;
    tidy_texts(&mut metadata);
    check_fields(&metadata)?;
    metadata.maintainers = draft
        .maintainers
        .into_iter()
        .map(check_maintainer)
        .collect::<Result<_, _>>()?;
    metadata.dependencies = draft.dependencies.map(check_dependencies).transpose()?;
    Ok(metadata)
}

fn tidy_texts(metadata: &mut Metadata) {
    for text in [
        &mut metadata.name,
        &mut metadata.description,
        &mut metadata.home,
        &mut metadata.icon,
        &mut metadata.condition,
        &mut metadata.tags,
        &mut metadata.app_version,
        &mut metadata.kube_version,
    ] {
        tidy(text);
    }
    let lists = metadata.sources.iter_mut().chain(&mut metadata.keywords);
    lists.for_each(tidy);
}

fn check_fields(metadata: &Metadata) -> Result<(), Error> {
    if metadata.api_version.is_empty() {
        return Err(refused("chart.metadata.apiVersion is required"));
    }
    let name = &metadata.name;
    if name.is_empty() {
        return Err(refused("chart.metadata.name is required"));
    }
    if name == "." || name == ".." {
        return Err(refused(format!(
            "chart.metadata.name {} is not allowed",
            quoted(name)
        )));
    }
    if name.contains('/') {
        return Err(refused(format!(
            "chart.metadata.name {} is invalid",
            quoted(name)
        )));
    }
    let version = &metadata.version;
    if version.is_empty() {
        return Err(refused("chart.metadata.version is required"));
    }
    if Version::parse(version).is_err() {
        return Err(refused(format!(
            "chart.metadata.version {} is invalid",
            quoted(version)
        )));
    }
    if !matches!(metadata.kind.as_str(), "" | "application" | "library") {
        return Err(refused("chart.metadata.type must be application or library"));
    }
    Ok(())
}

fn check_maintainer(maintainer: Option<Maintainer>) -> Result<Maintainer, Error> {
    let mut maintainer =
        maintainer.ok_or_else(|| refused("maintainers must not contain empty or null nodes"))?;
    tidy(&mut maintainer.name);
    tidy(&mut maintainer.email);
    tidy(&mut maintainer.url);
    Ok(maintainer)
}

fn check_dependencies(dependencies: Vec<Option<Dependency>>) -> Result<Vec<Dependency>, Error> {
    let mut names = HashSet::new();
    let mut checked = Vec::with_capacity(dependencies.len());
    for dependency in dependencies {
        let dependency = check_dependency(dependency)?;
        let name = match dependency.alias.as_str() {
            "" => &dependency.name,
            _ => &dependency.alias,
        };
        if !names.insert(name.clone()) {
            let text = format!("more than one dependency with name or alias {}", quoted(name));
            return Err(refused(text));
        }
        checked.push(dependency);
    }
    Ok(checked)
}

fn check_dependency(dependency: Option<Dependency>) -> Result<Dependency, Error> {
    let mut dependency =
        dependency.ok_or_else(|| refused("dependencies must not contain empty or null nodes"))?;
    tidy(&mut dependency.name);
    tidy(&mut dependency.version);
    tidy(&mut dependency.repository);
    tidy(&mut dependency.condition);
    dependency.tags.iter_mut().for_each(tidy);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !dependency.alias.chars().all(is_allowed) {
        let name = quoted(&dependency.name);
        return Err(refused(format!(
            "dependency {name} has disallowed characters in the alias"
        )));
    }
    Ok(dependency)
}

/// Makes a blank of each white space and drops what Go does not print (`sanitizeString`).
fn tidy(text: &mut String) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return;
    }
    let tidied = text.chars().filter_map(|c| match c {
        c if c.is_whitespace() => Some(' '),
        c => is_printable(c).then_some(c),
    });
    *text = tidied.collect();
}

fn refused(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Metadata, format!("validation: {text}"))
}
