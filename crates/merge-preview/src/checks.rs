//! What a merge would make wrong in the files, seen without a cluster. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forge::annotation::Annotation;
use forge::markdown::code;
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};
use repository_check::{Finding, Level, Settings, check_until};

use crate::merge::{Merged, Place};
use crate::snapshot::Snapshot;

/// Bytes that are read for one check. All that is built of them is kept until its end.
const MAX_READ: u64 = 64 << 20;
/// Findings that a comment lists.
const MAX_SHOWN: usize = 50;

/// What was found in the files.
pub struct Checks {
    /// Errors and warnings that the branch does not have, or why there are none.
    pub findings: Result<Vec<Finding>, String>,
    /// Whether warnings fail a pull request as well.
    pub is_strict: bool,
}

impl Checks {
    /// Checks the files before a merge and after it. Ends early, with a result of no use, once `is_given_up` says so. Blocks.
    pub fn new(
        merged: &Arc<Merged>,
        settings: &Settings,
        is_strict: bool,
        is_given_up: &dyn Fn() -> bool,
    ) -> Self {
        let snapshot = |files: &BTreeMap<String, Place>| Snapshot {
            merged: merged.clone(),
            files: files.clone(),
        };
        let (before, after) = (snapshot(&merged.before), snapshot(&merged.after));
        Self {
            findings: added(before, after, settings, is_given_up),
            is_strict,
        }
    }

    /// The findings that have a line, errors first.
    pub fn annotations(&self, shows_values: bool) -> Vec<Annotation> {
        let findings = self.findings.iter().flatten();
        let annotations = findings.filter_map(|one| {
            let message = match (shows_values, &one.object) {
                (true, _) => one.text(),
                (false, object) => object.clone().unwrap_or_else(|| one.rule.clone()),
            };
            Some(Annotation {
                file: one.file.clone()?,
                line: one.line?,
                is_failure: one.level == Level::Error || self.is_strict,
                title: one.rule.clone(),
                message,
            })
        });
        annotations.collect()
    }

    /// Returns whether nothing was found that fails a pull request.
    pub fn is_success(&self) -> bool {
        let fails = |one: &Finding| one.level == Level::Error || self.is_strict;
        self.findings
            .as_ref()
            .is_ok_and(|findings| !findings.iter().any(fails))
    }

    /// How many findings there are, in words; empty if there are none.
    pub fn line(&self) -> String {
        let Ok(findings) = &self.findings else {
            return "files not checked".to_owned();
        };
        let count = |level, word: &str| {
            let count = findings.iter().filter(|one| one.level == level).count();
            match count {
                0 => None,
                1 => Some(format!("1 {word}")),
                count => Some(format!("{count} {word}s")),
            }
        };
        let counts = [count(Level::Error, "error"), count(Level::Warning, "warning")];
        match counts.into_iter().flatten().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            counts => format!("{} in the files", counts.join(" and ")),
        }
    }

    /// The findings in Markdown, errors first; empty if there are none.
    pub(crate) fn text(&self, shows_values: bool) -> String {
        let findings = match &self.findings {
            Ok(findings) if findings.is_empty() => return String::new(),
            Ok(findings) => findings,
            Err(_) if !shows_values => return "The files were not checked.\n\n".to_owned(),
            Err(why) => return format!("The files were not checked: {}\n\n", code(why)),
        };
        let mut text = format!("{}:\n\n", self.line());
        for one in findings.iter().take(MAX_SHOWN) {
            let place = match one.place() {
                place if place.is_empty() => String::new(),
                place => format!(" at {}", code(&place)),
            };
            let said = match (shows_values, &one.object) {
                (true, _) => format!(": {}", code(&one.text())),
                (false, Some(object)) => format!(": {}", code(object)),
                (false, None) => String::new(),
            };
            let (level, rule) = (one.level.as_str(), code(&one.rule));
            text.push_str(&format!("- **{level}** {rule}{place}{said}\n"));
        }
        let more = findings.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            text.push_str(&format!(
                "- and {more} more, which `windlass check` lists in a checkout\n"
            ));
        }
        text.push('\n');
        text
    }
}

/// The findings in files that are not in those before them.
fn added(
    before: impl FileSystem,
    after: impl FileSystem,
    settings: &Settings,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Vec<Finding>, String> {
    let mut new = found(after, settings, is_given_up)?;
    if new.is_empty() {
        return Ok(new);
    }
    let mut known: HashMap<Finding, usize> = HashMap::new();
    for one in found(before, settings, is_given_up)? {
        *known.entry(anywhere(&one)).or_default() += 1;
    }
    new.retain(|one| match known.get_mut(&anywhere(one)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    Ok(new)
}

/// A finding, on whichever line it is: lines move.
fn anywhere(one: &Finding) -> Finding {
    Finding {
        line: None,
        ..one.clone()
    }
}

fn found(
    files: impl FileSystem,
    settings: &Settings,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Vec<Finding>, String> {
    let metered = Metered {
        files,
        left: AtomicU64::new(MAX_READ),
        is_used_up: AtomicBool::new(false),
    };
    let is_used_up = || metered.is_used_up.load(Ordering::Relaxed);
    let report = check_until(&metered, settings, &|| is_given_up() || is_used_up());
    if is_used_up() {
        return Err(format!(
            "more than {} MiB would have to be read for it",
            MAX_READ >> 20
        ));
    }
    let mut findings = report.findings;
    findings.retain(|one| one.level != Level::Note);
    Ok(findings)
}

/// Files of which so many bytes may be read.
struct Metered<F> {
    files: F,
    left: AtomicU64,
    is_used_up: AtomicBool,
}

impl<F: FileSystem> FileSystem for Metered<F> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        let content = self.files.read(path)?;
        let size = content.len() as u64;
        let take = |left: u64| left.checked_sub(size);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match taken {
            Ok(_) => Ok(content),
            Err(_) => {
                self.is_used_up.store(true, Ordering::Relaxed);
                Err(FsError::Io("too much was read".to_owned()))
            }
        }
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        self.files.kind(path)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.files.list(path)
    }
}

#[cfg(test)]
mod tests {
    use kustomize_build::MemoryFs;
    use repository_check::Rule;

    use super::*;

    fn files(all: &[(&str, &str)]) -> MemoryFs {
        let mut files = MemoryFs::default();
        for (path, content) in all {
            files.insert(*path, content.as_bytes());
        }
        files
    }

    fn ingress(version: &str, name: &str) -> String {
        format!("apiVersion: {version}\nkind: Ingress\nmetadata: {{name: {name}, namespace: shop}}\n")
    }

    fn checks(before: MemoryFs, after: MemoryFs, settings: &Settings) -> Checks {
        Checks {
            findings: added(before, after, settings, &|| false),
            is_strict: false,
        }
    }

    #[test]
    fn what_the_branch_has_already_is_not_said_again() {
        let (old, new) = (
            ingress("extensions/v1beta1", "old"),
            ingress("extensions/v1beta1", "new"),
        );
        let before = files(&[("a.yaml", &old)]);
        let moved = format!("# a line\n{old}");
        let after = files(&[("a.yaml", &moved), ("b.yaml", &new)]);
        let settings = Settings {
            kubernetes: Some(37),
            ..Settings::default()
        };
        let found = checks(before, after, &settings);
        assert_eq!(found.line(), "1 error in the files");
        assert!(!found.is_success());
        assert_eq!(
            found.text(true),
            "1 error in the files:\n\n- **error** `removed-api` at `b.yaml:1`: `Ingress/shop/new: extensions/v1beta1 Ingress is no longer \
             served since Kubernetes 1.22; use networking.k8s.io/v1`\n\n"
        );
    }

    #[test]
    fn strangers_see_rules_and_places_only() {
        let rule = Rule::new("calm".to_owned(), "object.metadata.name != 'hunter2'").unwrap();
        let settings = Settings {
            rules: vec![rule],
            ..Settings::default()
        };
        let manifest = ingress("networking.k8s.io/v1", "hunter2");
        let found = checks(files(&[]), files(&[("a.yaml", &manifest)]), &settings);
        assert!(found.text(true).contains("does not fulfil"));
        assert_eq!(
            found.text(false),
            "1 error in the files:\n\n- **error** `calm` at `a.yaml:1`: `Ingress/shop/hunter2`\n\n"
        );
        let beside = found.annotations(false);
        assert_eq!(
            (&*beside[0].file, beside[0].line, &*beside[0].message),
            ("a.yaml", 1, "Ingress/shop/hunter2")
        );
        assert!(found.annotations(true)[0].message.contains("does not fulfil"));
    }

    #[test]
    fn warnings_fail_where_they_are_asked_to() {
        let manifest = ingress("extensions/v1beta1", "a");
        let mut found = checks(files(&[]), files(&[("a.yaml", &manifest)]), &Settings::default());
        assert_eq!(found.line(), "1 warning in the files");
        assert!(found.is_success());
        found.is_strict = true;
        assert!(!found.is_success());
    }

    #[test]
    fn who_has_too_much_read_is_told_and_fails() {
        // Each of them reads the same file, of 3 MiB.
        let mut after = files(&[("base/kustomization.yaml", "resources: [map.yaml]\n")]);
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n".to_owned();
        after.insert("base/map.yaml", (manifest + &"# x\n".repeat(786_000)).as_bytes());
        for n in 0..40 {
            after.insert(
                format!("o/{n}/kustomization.yaml"),
                b"resources: [../../base]\n".as_slice(),
            );
        }
        let found = checks(files(&[]), after, &Settings::default());
        assert_eq!(found.line(), "files not checked");
        assert!(!found.is_success());
        assert!(found.text(true).contains("64 MiB"), "{}", found.text(true));
        assert_eq!(found.text(false), "The files were not checked.\n\n");
    }

    #[test]
    fn it_ends_when_it_is_given_up() {
        let manifest = ingress("extensions/v1beta1", "a");
        let given_up = added(
            files(&[]),
            files(&[("a.yaml", &manifest)]),
            &Settings::default(),
            &|| true,
        );
        assert_eq!(given_up, Ok(Vec::new()));
    }
}
