//! Which files of a source do not belong into its artifact: `.sourceignore` files, spec.ignore, and the files
//! that Flux leaves out when neither says anything.
//!
//! Flux matches every path of a source, files and folders alike, against one list of patterns, and the last
//! pattern that matches decides. Nothing is pruned, so `!` re-includes a file below an excluded folder (Git would
//! not). The list, in rising priority: version control files; then either the default exclusions or, as soon as
//! there is any pattern of the user, none of them; `.sourceignore` files, those of outer folders first;
//! spec.ignore.
//!
//! The patterns themselves are go-git's, not Git's (see its module `pattern`), so Git's or ripgrep's matcher would
//! decide some lists otherwise, for example `*` followed by `!deploy`, where go-git keeps `deploy/app.yaml`.

pub mod glob;
mod pattern;

use self::pattern::{Pattern, Verdict};
use crate::tree::{PathError, clean_path};

/// Name of the files with patterns.
pub const IGNORE_FILE: &str = ".sourceignore";

/// Files that Git itself needs: left out whatever the user says, unless a pattern re-includes them.
const VERSION_CONTROL: &[&str] = &[".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// Files that are left out unless the user has patterns: pictures, films and archives, configuration of CI
/// systems, and configuration of tools that is no manifest.
const DEFAULTS: &[&str] = &[
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.png",
    "*.wmv",
    "*.flv",
    "*.tar.gz",
    "*.zip",
    ".github/",
    ".circleci/",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    "**/.goreleaser.yml",
    "**/.sops.yaml",
    "**/.flux.yaml",
];

/// Go reads patterns through a scanner that stops, without a word, at a line longer than this.
const LONGEST_LINE: usize = 64 * 1024;

/// Decides which paths are left out. Feed it all `.sourceignore` files of a source before asking.
#[derive(Debug, Clone)]
pub struct Matcher {
    version_control: Vec<Pattern>,
    defaults: Vec<Pattern>,
    /// Patterns of `.sourceignore` files with their folder.
    files: Vec<(String, Vec<Pattern>)>,
    spec: Vec<Pattern>,
}

impl Matcher {
    /// A matcher with the text of spec.ignore, if the object has one.
    #[must_use]
    pub fn new(spec_ignore: Option<&str>) -> Self {
        Self {
            version_control: VERSION_CONTROL.iter().map(|line| Pattern::parse(line)).collect(),
            defaults: DEFAULTS.iter().map(|line| Pattern::parse(line)).collect(),
            files: Vec::new(),
            spec: parse_lines(spec_ignore.unwrap_or_default()),
        }
    }

    /// A matcher that leaves nothing out by itself, with the text of spec.ignore, if the object has one. So Flux does it
    /// for buckets, and only for them.
    #[must_use]
    pub fn without_defaults(spec_ignore: Option<&str>) -> Self {
        Self {
            version_control: Vec::new(),
            defaults: Vec::new(),
            files: Vec::new(),
            spec: parse_lines(spec_ignore.unwrap_or_default()),
        }
    }

    /// Adds the `.sourceignore` file of a folder (empty for the root), in any order. Flux reads those in excluded
    /// folders too, but none below a folder named `.git`; such a file is dropped here.
    ///
    /// # Errors
    /// When the folder's path is refused.
    pub fn add_file(&mut self, folder: &str, contents: &str) -> Result<(), PathError> {
        let folder = clean_path(folder)?;
        let patterns = parse_lines(contents);
        if patterns.is_empty() || folder.split('/').any(|name| name == ".git") {
            return Ok(());
        }
        // Patterns of an outer folder come before those of the folders in it. Siblings never meet, so the
        // order of the paths is enough.
        let position = self.files.partition_point(|(other, _)| *other <= folder);
        self.files.insert(position, (folder, patterns));
        Ok(())
    }

    /// Returns whether the path (relative to the root of the source) is left out.
    ///
    /// A path that is no path (absolute, with `..`) is left out.
    #[must_use]
    pub fn is_ignored(&self, path: &str, is_directory: bool) -> bool {
        let Ok(path) = clean_path(path) else { return true };
        if path.is_empty() {
            return false;
        }
        self.verdict(&path, is_directory) == Some(Verdict::Exclude)
    }

    fn verdict(&self, path: &str, is_directory: bool) -> Option<Verdict> {
        let names: Vec<&str> = path.split('/').collect();
        let last = |patterns: &[Pattern], names: &[&str]| {
            patterns
                .iter()
                .rev()
                .find_map(|pattern| pattern.verdict(names, is_directory))
        };
        let of_files = || {
            self.files.iter().rev().find_map(|(folder, patterns)| {
                let depth = if folder.is_empty() {
                    0
                } else {
                    folder.split('/').count()
                };
                let inside =
                    names.len() > depth && folder.split('/').take(depth).eq(names[..depth].iter().copied());
                if inside {
                    last(patterns, &names[depth..])
                } else {
                    None
                }
            })
        };
        let user_has_patterns = !self.spec.is_empty() || !self.files.is_empty();
        let of_defaults = || {
            if user_has_patterns {
                None
            } else {
                last(&self.defaults, &names)
            }
        };
        last(&self.spec, &names)
            .or_else(of_files)
            .or_else(of_defaults)
            .or_else(|| last(&self.version_control, &names))
    }
}

/// The rules of a text that can match nothing, with the number of their lines: an open `[`, a backslash at the end, `**`
/// within a name. Flux passes over them without a word, so they are not refused; someone should know all the same.
pub fn malformed(text: &str) -> impl Iterator<Item = (usize, &str)> {
    rules(text).filter(|(_, line)| Pattern::parse(line).is_malformed())
}

fn parse_lines(text: &str) -> Vec<Pattern> {
    rules(text).map(|(_, line)| Pattern::parse(line)).collect()
}

/// The lines that are neither empty nor comments, with their numbers.
fn rules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n')
        .take_while(|line| line.len() < LONGEST_LINE)
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .zip(1..)
        .filter(|(line, _)| !line.starts_with('#') && !line.trim().is_empty())
        .map(|(line, number)| (number, line))
}

/// Rules of one text that are told.
#[cfg(any(feature = "store", feature = "client"))]
const MAX_TOLD: usize = 10;
/// Characters of a rule that are shown.
#[cfg(any(feature = "store", feature = "client"))]
const MAX_SHOWN: usize = 100;

/// Logs a warning for each malformed rule, with the text where it stands and its line.
///
/// Flux ignores such rules silently, so a source with them keeps working; but its author meant to exclude something.
#[cfg(any(feature = "store", feature = "client"))]
pub fn warn_of_malformed(place: &str, text: &str) {
    for (line, rule) in malformed(text).take(MAX_TOLD) {
        let rule: String = rule.chars().take(MAX_SHOWN).collect();
        tracing::warn!(
            "the rule {rule:?} in line {line} of {place} is malformed, so that it matches nothing"
        );
    }
}

#[cfg(test)]
mod tests;
