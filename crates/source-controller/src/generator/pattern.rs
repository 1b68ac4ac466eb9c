//! `spec.pathPattern`: one set of artifacts for each folder that matches.
//!
//! In: the spec, and the source that the pattern names. Out: what is to be made, with names, labels and copy operations
//! filled in. What is wrong here is wrong until someone changes the spec or the folders.

use std::collections::{BTreeMap, HashMap};

use api::source_extensions::{ArtifactGeneratorSpec, CopyOperation, OutputArtifact};
use artifact::store;
use regex::{Regex, RegexBuilder};

use super::names;
use super::source::{Found, Source};

/// More would not fit into the inventory of a status.
pub(super) const MAX_ARTIFACTS: usize = 5000;
/// Folders that are looked at.
const MAX_FOLDERS: usize = 1_000_000;

/// An artifact to make, and the labels that it gets from the folder that it is made for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wanted {
    pub(super) output: OutputArtifact,
    pub(super) labels: BTreeMap<String, String>,
}

/// Why the pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("invalid pathPattern format: {0}")]
    Format(String),
    #[error("pathPattern {pattern:?}: {problem}")]
    Pattern { pattern: String, problem: String },
    #[error("more than {MAX_ARTIFACTS} artifacts of one generator")]
    TooMany,
    #[error("failed to walk source directory")]
    Walk(#[from] store::Error),
}

impl Error {
    /// Returns whether only a change of the spec or the source helps.
    pub(crate) fn is_terminal(&self) -> bool {
        !matches!(self, Self::Walk(_))
    }
}

/// Expands the pattern into the objects to create.
pub(super) fn expand(
    spec: &ArtifactGeneratorSpec,
    sources: &HashMap<String, Source>,
) -> Result<Vec<Wanted>, Error> {
    let Some(pattern) = &spec.path_pattern else {
        let plain = |output: &OutputArtifact| Wanted {
            output: output.clone(),
            labels: BTreeMap::new(),
        };
        return Ok(spec.artifacts.iter().map(plain).collect());
    };
    let wrong = |problem: String| Error::Pattern {
        pattern: pattern.clone(),
        problem,
    };
    let parts = pattern.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let (alias, folders) = parts.ok_or_else(|| Error::Format(pattern.clone()))?;
    let source = sources
        .get(alias)
        .ok_or_else(|| wrong(format!("source alias {alias} not found in local sources")))?;
    let matcher = compile(folders).map_err(wrong)?;
    let mut expansion = Expansion {
        spec,
        matcher,
        seen: HashMap::new(),
        wanted: Vec::new(),
    };
    let Found::Folder(root) = source.look_up(".")? else {
        return Ok(Vec::new());
    };
    let mut looked_at = 0;
    source.walk(&root, "", &mut |path, entry| {
        if entry.kind.is_directory() {
            looked_at += 1;
            expansion.folder(path).map_err(wrong)?;
            if expansion.wanted.len() > MAX_ARTIFACTS || looked_at > MAX_FOLDERS {
                return Err(Error::TooMany);
            }
        }
        Ok(true)
    })?;
    Ok(expansion.wanted)
}

struct Expansion<'a> {
    spec: &'a ArtifactGeneratorSpec,
    matcher: Regex,
    /// Names of artifacts, and the folders that they were made for.
    seen: HashMap<String, String>,
    wanted: Vec<Wanted>,
}

impl Expansion<'_> {
    fn folder(&mut self, path: &str) -> Result<(), String> {
        let Some(found) = self.matcher.captures(path) else {
            return Ok(());
        };
        let raw: BTreeMap<String, String> = self
            .matcher
            .capture_names()
            .flatten()
            .filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned())))
            .collect();
        let labels: BTreeMap<String, String> = raw
            .iter()
            .map(|(name, value)| (name.clone(), value.to_lowercase()))
            .collect();
        for (name, value) in &labels {
            if let Some(problem) = names::label_value_problem(value) {
                return Err(format!(
                    "captured value {value:?} for variable {name:?} is not a valid Kubernetes label value: {problem}"
                ));
            }
        }
        for output in &self.spec.artifacts {
            let output = rendered(output, &labels, &raw).map_err(|problem| {
                format!(
                    "failed to render artifact {} for match {path}: {problem}",
                    output.name
                )
            })?;
            self.add(output, &labels, path)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        output: OutputArtifact,
        labels: &BTreeMap<String, String>,
        path: &str,
    ) -> Result<(), String> {
        let name = &output.name;
        if let Some(problem) = names::object_name_problem(name) {
            return Err(format!(
                "rendered artifact name {name:?} is not a valid Kubernetes object name: {problem}"
            ));
        }
        if let Some(earlier) = self.seen.insert(name.clone(), path.to_owned()) {
            return Err(format!(
                "directories {earlier:?} and {path:?} both resolve to artifact name {name:?}"
            ));
        }
        self.wanted.push(Wanted {
            output,
            labels: labels.clone(),
        });
        Ok(())
    }
}

/// The expression that a pattern stands for: each capture is one part of a path, or a piece of one.
fn compile(pattern: &str) -> Result<Regex, String> {
    let mut names: Vec<&str> = Vec::new();
    let mut expression = "^".to_owned();
    let (mut rest, mut offset) = (pattern, 0);
    while let Some(at) = rest.find(['{', '}']) {
        expression += &regex::escape(&rest[..at]);
        let begin = offset + at;
        if rest.as_bytes()[at] == b'}' {
            return Err(format!(
                "invalid capture ending at offset {begin}: missing opening brace"
            ));
        }
        let Some(length) = rest[at + 1..].find('}') else {
            return Err(format!(
                "invalid capture starting at offset {begin}: missing closing brace"
            ));
        };
        let name = &rest[at + 1..at + 1 + length];
        check_capture(name)?;
        if names.contains(&name) {
            return Err(format!("duplicate capture variable {name:?}"));
        }
        names.push(name);
        expression += &format!("(?P<{name}>[^/]+)");
        offset += at + length + 2;
        rest = &rest[at + length + 2..];
    }
    expression += &regex::escape(rest);
    expression.push('$');
    if let Some((name, problem)) = names
        .iter()
        .find_map(|name| Some((name, names::label_key_problem(name)?)))
    {
        return Err(format!(
            "capture variable {name:?} is not a valid Kubernetes label key: {problem}"
        ));
    }
    RegexBuilder::new(&expression)
        .build()
        .map_err(|error| format!("failed to compile path pattern: {error}"))
}

fn check_capture(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("empty capture variable".to_owned());
    }
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name {
        return Ok(());
    }
    Err(format!(
        "capture variable {name:?} must be a valid capture name matching [A-Za-z_][A-Za-z0-9_]*"
    ))
}

/// Names get what was captured in lower case, paths get it as it is.
fn rendered(
    output: &OutputArtifact,
    labels: &BTreeMap<String, String>,
    raw: &BTreeMap<String, String>,
) -> Result<OutputArtifact, String> {
    let copy = |operation: &CopyOperation| {
        Ok(CopyOperation {
            from: fill(&operation.from, raw)?,
            to: fill(&operation.to, raw)?,
            ..operation.clone()
        })
    };
    Ok(OutputArtifact {
        name: fill(&output.name, labels)?,
        copy: output.copy.iter().map(copy).collect::<Result<_, String>>()?,
        ..output.clone()
    })
}

fn fill(template: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let invalid = |problem: String| format!("invalid template {template:?}: {problem}");
    let mut text = String::new();
    let (mut rest, mut offset) = (template, 0);
    while let Some(at) = rest.find(['{', '}']) {
        text += &rest[..at];
        let begin = offset + at;
        if rest.as_bytes()[at] == b'}' {
            return Err(invalid(format!(
                "capture ending at offset {begin} is missing opening brace"
            )));
        }
        let Some(length) = rest[at + 1..].find('}') else {
            return Err(invalid(format!(
                "capture starting at offset {begin} is missing closing brace"
            )));
        };
        let name = &rest[at + 1..at + 1 + length];
        check_capture(name).map_err(invalid)?;
        let value = values
            .get(name)
            .ok_or_else(|| invalid(format!("capture variable {name:?} is not defined by pathPattern")))?;
        text += value;
        offset += at + length + 2;
        rest = &rest[at + length + 2..];
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests;
