//! `.helmignore`: which files of a folder are no part of the chart.
//!
//! The rules look like those of git, but are Helm's own (pkg/ignore): the first rule that says something wins, `!rule`
//! ignores everything that does *not* match it, `**` is refused, and a pattern is matched as Go matches file names.

use super::error::{Error, ErrorKind};
use super::paths::base;
use crate::path_match::path_match;

/// Rule that Helm always adds: dot files in templates/.
const DEFAULT_RULE: &str = "templates/.?*";

/// The longest line that Go's scanner takes.
const MAX_LINE: usize = 64 * 1024;

/// The rules of one folder.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: String,
    scope: Scope,
    negated: bool,
    folders_only: bool,
}

/// Text that a pattern is compared with.
#[derive(Debug)]
enum Scope {
    /// The last element of the path.
    Base,
    /// The whole path.
    Path,
}

impl Rules {
    /// Reads the rules of a `.helmignore`, if there is one, and adds Helm's own.
    pub fn new(text: Option<&[u8]>) -> Result<Self, Error> {
        let mut rules = Self::default();
        let text = String::from_utf8_lossy(text.unwrap_or_default());
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for line in text.split('\n') {
            if line.len() >= MAX_LINE {
                return Err(Error::new(ErrorKind::Format, "bufio.Scanner: token too long"));
            }
            rules.add(line.trim())?;
        }
        rules.add(DEFAULT_RULE)?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), Error> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err(refused("double-star (**) syntax is not supported"));
        }
        // Helm asks with this name only, so some broken patterns are found broken here and others never match.
        path_match(line, "abc").map_err(refused)?;
        let (negated, rest) = strip(line, |line| line.strip_prefix('!'));
        let (folders_only, rest) = strip(rest, |rest| rest.strip_suffix('/'));
        let (is_rooted, rest) = strip(rest, |rest| rest.strip_prefix('/'));
        let scope = if is_rooted || rest.contains('/') {
            Scope::Path
        } else {
            Scope::Base
        };
        self.0.push(Rule {
            pattern: rest.to_owned(),
            scope,
            negated,
            folders_only,
        });
        Ok(())
    }

    /// Returns whether the file or folder at a path below the chart's is ignored.
    pub fn ignore(&self, path: &str, is_folder: bool) -> bool {
        for rule in &self.0 {
            let is_out_of_scope = rule.folders_only && !is_folder;
            if rule.negated {
                if is_out_of_scope || !rule.matches(path) {
                    return true;
                }
            } else if !is_out_of_scope && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let name = match self.scope {
            Scope::Base => base(path),
            Scope::Path => path,
        };
        path_match(&self.pattern, name).unwrap_or(false)
    }
}

fn strip(text: &str, cut: impl Fn(&str) -> Option<&str>) -> (bool, &str) {
    match cut(text) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

fn refused(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Format, text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(rules: &str, path: &str, is_folder: bool) -> bool {
        let rules = Rules::new(Some(rules.as_bytes())).expect("rules are valid");
        rules.ignore(path, is_folder)
    }

    #[test]
    fn paths_are_ignored_as_helm_ignores_them() {
        // From pkg/ignore's own tests: the second half are those where the answer is no.
        for (rules, path, is_folder, expected) in [
            ("helm.txt", "helm.txt", false, true),
            ("helm.*", "helm.txt", false, true),
            ("[h]elm.???", "helm.txt", false, true),
            ("tiller*.txt", "tillerite.txt", false, true),
            ("*.txt", "cargo/a.txt", false, true),
            ("cargo/", "cargo", true, true),
            ("cargo/", "cargo", false, false),
            ("/a.txt", "a.txt", false, true),
            ("/a.txt", "cargo/a.txt", false, false),
            ("cargo/a.txt", "cargo/a.txt", false, true),
            ("cargo/*.txt", "mast/a.txt", false, false),
            ("ru[c-e]?er.txt", "rudder.txt", false, true),
            ("templates/.?*", "templates/.dotfile", false, true),
            ("", "templates/.dotfile", false, true),
            ("", "templates/x/.dotfile", false, false),
            ("", ".dotfile", false, false),
            ("#helm.txt", "helm.txt", false, false),
            ("!helm.txt", "helm.txt", false, false),
            ("!helm.txt", "other", false, true),
            ("!*/", "file", false, true),
            ("!*/", "folder", true, false),
            ("\u{feff}a\r\n  b  \n", "b", false, true),
        ] {
            assert_eq!(ignored(rules, path, is_folder), expected, "{rules:?} {path:?}");
        }
    }

    #[test]
    fn double_stars_and_broken_patterns_are_refused() {
        for (rules, expected) in [
            ("a\nb/**/c", "double-star (**) syntax is not supported"),
            ("[", "syntax error in pattern"),
        ] {
            let error = Rules::new(Some(rules.as_bytes())).expect_err("rules are broken");
            assert_eq!(error.to_string(), expected);
        }
    }
}
