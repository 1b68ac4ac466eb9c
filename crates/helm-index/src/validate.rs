//! The rules that the metadata of an entry must keep, with Helm's messages (`Metadata.Validate`). An entry that does not
//! keep them is passed over.
//!
//! Validation also tidies: control characters vanish from most texts, and every kind of white space becomes a blank.

use std::collections::HashSet;

use go_semver::Version;
use go_text::quote::quoted;
use go_text::rune::is_printable;

use crate::decode::{Filled, Slot};

const TIDIED: [&str; 10] = [
    "name",
    "description",
    "home",
    "icon",
    "condition",
    "tags",
    "appVersion",
    "kubeVersion",
    "sources",
    "keywords",
];

/// Checks and tidies an entry, and gives it an `apiVersion` if it has none.
pub(crate) fn validate(entry: &mut Filled) -> Result<(), String> {
    if entry.text("apiVersion").is_empty()
        && let Some(slot) = entry.slot_mut("apiVersion")
    {
        *slot = Some(Slot::Text("v1".to_owned()));
    }
    tidy_fields(entry, &TIDIED);
    check_texts(entry)?;
    check_maintainers(entry)?;
    check_dependencies(entry)
}

fn check_texts(entry: &Filled) -> Result<(), String> {
    let name = entry.text("name");
    if name.is_empty() {
        return refused("chart.metadata.name is required");
    }
    if name == "." || name == ".." {
        return refused(&format!("chart.metadata.name {} is not allowed", quoted(name)));
    }
    if name.contains('/') {
        return refused(&format!("chart.metadata.name {} is invalid", quoted(name)));
    }
    let version = entry.text("version");
    if version.is_empty() {
        return refused("chart.metadata.version is required");
    }
    if Version::parse(version).is_err() {
        return refused(&format!("chart.metadata.version {} is invalid", quoted(version)));
    }
    match entry.text("type") {
        "" | "application" | "library" => Ok(()),
        _ => refused("chart.metadata.type must be application or library"),
    }
}

fn check_maintainers(entry: &mut Filled) -> Result<(), String> {
    let Some(Some(Slot::Structs(maintainers))) = entry.slot_mut("maintainers") else {
        return Ok(());
    };
    for maintainer in maintainers {
        match maintainer {
            Some(maintainer) => tidy_fields(maintainer, &["name", "email", "url"]),
            None => return refused("maintainers must not contain empty or null nodes"),
        }
    }
    Ok(())
}

fn check_dependencies(entry: &mut Filled) -> Result<(), String> {
    let Some(Some(Slot::Structs(dependencies))) = entry.slot_mut("dependencies") else {
        return Ok(());
    };
    let mut names = HashSet::new();
    for dependency in dependencies {
        let Some(dependency) = dependency else {
            return refused("dependencies must not contain empty or null nodes");
        };
        tidy_fields(
            dependency,
            &["name", "version", "repository", "condition", "tags"],
        );
        let alias = dependency.text("alias");
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !alias.chars().all(is_allowed) {
            let name = quoted(dependency.text("name"));
            return refused(&format!(
                "dependency {name} has disallowed characters in the alias"
            ));
        }
        let name = if alias.is_empty() {
            dependency.text("name")
        } else {
            alias
        };
        if !names.insert(name.to_owned()) {
            // Helm lets this pass in indexes, and looks no further.
            return Ok(());
        }
    }
    Ok(())
}

fn tidy_fields(of: &mut Filled, names: &[&str]) {
    for name in names {
        match of.slot_mut(name) {
            Some(Some(Slot::Text(text))) => tidy(text),
            Some(Some(Slot::Texts(texts))) => texts.iter_mut().for_each(tidy),
            _ => {}
        }
    }
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

fn refused(text: &str) -> Result<(), String> {
    Err(format!("validation: {text}"))
}
