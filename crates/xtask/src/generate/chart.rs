//! The chart's README: its values in, from `values.yaml` and the comments there, a table out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::generated::Generated;

const FOLDER: &str = "charts/windlass";
const INTRODUCTION: &str = include_str!("chart/introduction.md");

/// The file `README.md`.
pub(super) fn generate(root: &Path) -> Result<Generated> {
    let readme = format!("{INTRODUCTION}\n## Values\n\n{}", values(root)?);
    Ok(Generated {
        folder: FOLDER,
        files: BTreeMap::from([("README.md".to_owned(), readme.into_bytes())]),
        is_whole: false,
    })
}

/// The values as a table.
pub(super) fn values(root: &Path) -> Result<String> {
    let path = root.join(FOLDER).join("values.yaml");
    let values =
        std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(table(&read(&values)))
}

/// One key of `values.yaml`.
#[derive(Debug, PartialEq)]
struct Value {
    /// With dots, from the top.
    path: String,
    /// As it is written; None for a key that has others below it.
    default: Option<String>,
    /// The comment above it.
    description: String,
}

/// Every key, in order. The text is our own: comments stand above their key, nesting is by two spaces, and lists are inline.
fn read(text: &str) -> Vec<Value> {
    let (mut found, mut parents, mut comment) = (Vec::new(), Vec::<&str>::new(), Vec::new());
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(words) = trimmed.strip_prefix('#') {
            comment.push(words.trim());
        } else if let Some((key, default)) = trimmed.split_once(':') {
            parents.truncate((line.len() - trimmed.len()) / 2);
            parents.push(key);
            let default = default.trim();
            found.push(Value {
                path: parents.join("."),
                default: (!default.is_empty()).then(|| default.to_owned()),
                description: std::mem::take(&mut comment).join(" "),
            });
        } else {
            comment.clear();
        }
    }
    found
}

fn table(values: &[Value]) -> String {
    let mut text = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    for value in values {
        let description = describe(value, values);
        if value.default.is_none() && description.is_empty() {
            continue;
        }
        let default = value
            .default
            .as_deref()
            .map_or_else(String::new, |default| format!("`{default}`"));
        writeln!(text, "| `{}` | {default} | {description} |", value.path)
            .expect("a String takes everything");
    }
    text
}

/// Its own comment, or that of the key of the same name in the first group that has one: controllers share most of theirs.
fn describe<'a>(value: &'a Value, all: &'a [Value]) -> &'a str {
    if !value.description.is_empty() {
        return &value.description;
    }
    let Some((group, name)) = value.path.split_once('.') else {
        return "";
    };
    let is_same = |other: &&Value| {
        let other_name = other.path.split_once('.');
        other_name.is_some_and(|(other, same)| other != group && same == name)
    };
    all.iter()
        .filter(is_same)
        .map(|other| other.description.as_str())
        .find(|description| !description.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_their_comments_and_defaults() {
        let text = "# All of\n# them.\na:\n  # One.\n  b: {c: 1}\n  d: \"\"\n\ne:\n  b: 2\n";
        let found = read(text);
        let row = |path: &str, default: Option<&str>, description: &str| Value {
            path: path.to_owned(),
            default: default.map(str::to_owned),
            description: description.to_owned(),
        };
        let expected = [
            row("a", None, "All of them."),
            row("a.b", Some("{c: 1}"), "One."),
            row("a.d", Some("\"\""), ""),
            row("e", None, ""),
            row("e.b", Some("2"), ""),
        ];
        assert_eq!(found, expected);
        assert!(
            table(&found).contains("| `e.b` | `2` | One. |"),
            "{}",
            table(&found)
        );
    }
}
