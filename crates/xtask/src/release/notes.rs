//! Notes of a release: what users see of it, then all commits, and where the images are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::images::Described;
use crate::images::commands::read;

/// Returns the notes, in Markdown.
pub(super) fn write(
    root: &Path,
    version: &str,
    repository: Option<&str>,
    images: &[Described],
) -> Result<String> {
    let changelog =
        fs::read_to_string(root.join("docs/CHANGELOG.md")).context("failed to read the changelog")?;
    let mut notes = format!("# Windlass {version}\n\n");
    notes.push_str(section(&changelog, version).trim());
    notes.push_str("\n\n## Images\n\n| Image | Digest |\n|---|---|\n");
    for made in images {
        let name = repository.map_or_else(
            || made.image.reference.clone(),
            |repository| format!("{repository}/{}", made.image.reference),
        );
        writeln!(notes, "| `{name}` | `{}` |", made.image.digest)?;
    }
    let git = |arguments: &[&str]| read(Command::new("git").arg("-C").arg(root).args(arguments));
    // The tag before this one; none for the first release.
    let before = git(&["describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"]).ok();
    let range = before.map_or_else(|| "HEAD".to_owned(), |tag| format!("{}..HEAD", tag.trim()));
    let subjects = git(&["log", "--no-merges", "--format=%s", &range])?;
    notes.push_str("\n## Commits\n");
    notes.push_str(&by_area(&subjects)?);
    Ok(notes)
}

/// The section of a version in the changelog; without one, of what is not released.
fn section<'a>(changelog: &'a str, version: &str) -> &'a str {
    let of = |name: &str| {
        let heading = format!("## {name}\n");
        let (_, after) = changelog.split_once(&heading)?;
        Some(after.split("\n## ").next().unwrap_or(after))
    };
    of(version).or_else(|| of("Unreleased")).unwrap_or_default()
}

/// Subjects as `area: what`, grouped by area.
fn by_area(subjects: &str) -> Result<String> {
    let mut areas: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for subject in subjects.lines() {
        let (area, what) = subject.split_once(": ").unwrap_or(("other", subject));
        areas.entry(area).or_default().push(what);
    }
    let mut text = String::new();
    for (area, changes) in areas {
        writeln!(text, "\n### {area}\n")?;
        for change in changes {
            writeln!(text, "- {change}")?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_that_of_the_version() {
        let changelog = "# Changes\n\n## Unreleased\n- c\n\n## 1.1.0\n- b\n\n## 1.0.0\n- a\n";
        assert_eq!(section(changelog, "1.1.0"), "- b\n");
        assert_eq!(section(changelog, "1.0.0"), "- a\n");
        assert_eq!(section(changelog, "2.0.0"), "- c\n");
    }

    #[test]
    fn commits_are_grouped_by_area() {
        let text = by_area("cli: add b\ndocs: c\ncli: add a\nmerge").unwrap();
        assert_eq!(
            text,
            "\n### cli\n\n- add b\n- add a\n\n### docs\n\n- c\n\n### other\n\n- merge\n"
        );
    }
}
