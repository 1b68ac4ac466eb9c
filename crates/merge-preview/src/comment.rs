//! The comment on a pull request. Pure.
//!
//! Names, paths, values and messages are of others: they stand in code spans, so that nothing in them is Markdown, and no one is
//! mentioned by them.

use std::collections::BTreeSet;

use delivery_diff::{Action, Entry, Field, Section, Summary};
use forge::markdown::{code, cut};

use crate::checks::Checks;

/// GitHub takes 65,536 characters. In bytes.
const MAX_TEXT: usize = 60_000;
/// A line of others. In characters.
const MAX_LINE: usize = 600;
/// A value of a field. In characters.
const MAX_VALUE: usize = 120;
/// Fields of one object that are listed.
const MAX_FIELDS: usize = 20;
/// Lines about images and charts, and conflicts that are named.
const MAX_HIGHLIGHTS: usize = 20;

/// What was found out about one cluster, or why nothing was.
pub struct ClusterFindings {
    /// Its name; empty if there is but one.
    pub name: String,
    /// The findings.
    pub sections: Result<Vec<Section>, String>,
}

/// The results of a comparison, to be put into words.
pub struct Told<'a> {
    /// The HTML comment by which it is found again.
    pub marker: &'a str,
    /// The commit of the pull request.
    pub head: &'a str,
    /// The branch that it goes into.
    pub branch: &'a str,
    /// The commit of that.
    pub base: &'a str,
    /// Files that cannot be merged.
    pub conflicts: &'a [String],
    /// The files that change.
    pub changed: &'a BTreeSet<String>,
    /// What was found in the files, if they are checked.
    pub checks: Option<&'a Checks>,
    /// What was found out.
    pub clusters: &'a [ClusterFindings],
    /// Whether values and messages are shown: of pull requests from forks they are not.
    pub shows_values: bool,
}

impl Told<'_> {
    /// The findings about all clusters, counted.
    pub fn summary(&self) -> Summary {
        let mut all = Summary::default();
        for cluster in self.clusters {
            match &cluster.sections {
                Ok(sections) => all.add(&self.counted(sections)),
                Err(_) => all.failed += 1,
            }
        }
        all
    }

    /// Returns whether all was compared, nothing would be refused, and nothing is wrong in the files.
    pub fn is_success(&self) -> bool {
        let is_sound = self.checks.is_none_or(Checks::is_success);
        self.summary().unknown() == 0 && self.conflicts.is_empty() && is_sound
    }

    /// What would change, in a line.
    pub fn line(&self) -> String {
        let summary = Summary {
            unchanged: 0,
            ..self.summary()
        };
        let conflicts = match self.conflicts.len() {
            0 => String::new(),
            1 => "1 file conflicts".to_owned(),
            count => format!("{count} files conflict"),
        };
        let checks = self.checks.map(Checks::line).unwrap_or_default();
        let change = match summary.changes() + summary.kept + summary.unknown() {
            0 => "no change".to_owned(),
            _ => summary.in_words(),
        };
        let mut parts = vec![conflicts, checks, change];
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }

    /// The text of the comment, in Markdown.
    pub fn comment(&self) -> String {
        let mut text = format!("{}\n### Preview: {}\n\n", self.marker, self.line());
        text.push_str(&format!(
            "{} merged into {} at {}.",
            code(&short(self.head)),
            code(self.branch),
            code(&short(self.base))
        ));
        if !self.shows_values {
            text.push_str(" Values and messages are left out, since the branch is in a fork.");
        }
        text.push_str("\n\n");
        if !self.conflicts.is_empty() {
            text.push_str(
                "Both sides changed these files in the same place; the pull request's are taken here:\n\n",
            );
            let shown = self.conflicts.iter().take(MAX_HIGHLIGHTS);
            text.extend(shown.map(|path| format!("- {}\n", code(path))));
            text.push('\n');
        }
        if let Some(checks) = self.checks {
            text.push_str(&checks.text(self.shows_values));
        }
        if self.shows_values {
            let highlights = self.highlights();
            let shown = highlights.iter().take(MAX_HIGHLIGHTS);
            text.extend(shown.map(|line| format!("- {line}\n")));
            if !highlights.is_empty() {
                text.push('\n');
            }
        }
        let mut left_out = 0;
        for part in self.parts() {
            if text.len() + part.len() > MAX_TEXT {
                left_out += 1;
                continue;
            }
            text.push_str(&part);
        }
        if left_out > 0 {
            text.push_str(&format!(
                "{left_out} more are not shown, as the comment would be too long. `windlass diff --all --recursive` shows them.\n"
            ));
        }
        text
    }

    /// One part for each Kustomization or HelmRelease of which there is something to say, the largest risk first.
    fn parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        for cluster in self.clusters {
            match &cluster.sections {
                Ok(sections) => {
                    let said = sections
                        .iter()
                        .map(|section| (self.risk(section), self.section(cluster, section)));
                    parts.extend(said.filter_map(|(risk, part)| Some((risk, part?))));
                }
                Err(why) => {
                    let why = if self.shows_values {
                        why.as_str()
                    } else {
                        "it cannot be asked"
                    };
                    let line = format!("**{}**: not compared: {}\n\n", code(&cluster.name), code(why));
                    parts.push((Risk::Failed, line));
                }
            }
        }
        parts.sort_by_key(|(risk, _)| std::cmp::Reverse(*risk));
        parts.into_iter().map(|(_, part)| part).collect()
    }

    fn section(&self, cluster: &ClusterFindings, section: &Section) -> Option<String> {
        let matters = |entry: &&Entry| !section.is_suspended && self.matters(entry);
        let entries: Vec<&Entry> = section.objects.iter().filter(matters).collect();
        if entries.is_empty() && section.error.is_none() {
            return None;
        }
        let mut summary = self.counted(std::slice::from_ref(section));
        summary.unchanged = 0;
        let place = match cluster.name.as_str() {
            "" => String::new(),
            name => format!(" in {}", html(name)),
        };
        let mut text = format!(
            "<details><summary><code>{}</code>{place}: {}</summary>\n\n",
            html(&section.object),
            summary.in_words()
        );
        if let Some(error) = section.error.as_ref() {
            let why = if self.shows_values {
                code(error)
            } else {
                "it cannot be built".to_owned()
            };
            text.push_str(&format!("- **not compared**: {why}\n"));
        }
        for note in section.notes.iter().filter(|_| self.shows_values) {
            text.push_str(&format!("- note: {}\n", code(note)));
        }
        for entry in entries {
            self.entry(entry, &mut text);
        }
        text.push_str("\n</details>\n\n");
        Some(text)
    }

    fn entry(&self, entry: &Entry, text: &mut String) {
        let file = entry
            .file
            .as_ref()
            .map_or_else(String::new, |file| format!(" ({})", code(file)));
        text.push_str(&format!(
            "- {} **{}**{file}",
            code(&entry.object),
            word(entry.action)
        ));
        if !entry.message.is_empty() && self.shows_values {
            text.push_str(&format!(": {}", code(&entry.message)));
        }
        text.push('\n');
        for field in entry.fields.iter().take(MAX_FIELDS) {
            text.push_str(&match self.shows_values {
                true => format!(
                    "  - {}: {} → {}\n",
                    code(&field.path),
                    value(field.old.as_ref()),
                    value(field.new.as_ref())
                ),
                false => format!("  - {}\n", code(&field.path)),
            });
        }
        let more = entry.more_fields + entry.fields.len().saturating_sub(MAX_FIELDS);
        if more > 0 {
            text.push_str(&format!("  - and {more} more fields\n"));
        }
    }

    /// Images and charts that move, which are what most readers look for.
    fn highlights(&self) -> BTreeSet<String> {
        let sections = self
            .clusters
            .iter()
            .filter_map(|cluster| cluster.sections.as_ref().ok())
            .flatten();
        let sections = sections.filter(|section| !section.is_suspended);
        let entries = sections.flat_map(|section| &section.objects);
        let fields = entries.flat_map(|entry| entry.fields.iter().map(move |field| (entry, field)));
        fields
            .filter_map(|(entry, field)| highlight(entry, field))
            .collect()
    }

    /// What stays encrypted is of interest only where its file changes.
    fn matters(&self, entry: &Entry) -> bool {
        let file = entry
            .file
            .as_deref()
            .map(|file| file.rsplit_once(':').map_or(file, |(file, _)| file));
        entry.action != Action::NotCompared || file.is_none_or(|file| self.changed.contains(file))
    }

    fn counted(&self, sections: &[Section]) -> Summary {
        let running = || sections.iter().filter(|section| !section.is_suspended);
        let mut summary = Summary::default();
        for section in running() {
            summary.add(&Summary::from_sections(std::slice::from_ref(section)));
        }
        let entries = running().flat_map(|section| &section.objects);
        summary.not_compared -= entries.filter(|entry| !self.matters(entry)).count();
        summary
    }

    fn risk(&self, section: &Section) -> Risk {
        let entries = section.objects.iter().filter(|entry| self.matters(entry));
        let risk = entries
            .map(|entry| risk(entry.action))
            .max()
            .unwrap_or(Risk::Added);
        if section.error.is_some() {
            Risk::Failed
        } else {
            risk
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Risk {
    Added,
    Changed,
    Unknown,
    Replaced,
    Deleted,
    Failed,
}

fn risk(action: Action) -> Risk {
    match action {
        Action::Created | Action::Kept => Risk::Added,
        Action::Changed => Risk::Changed,
        Action::NotCompared => Risk::Unknown,
        Action::Recreated => Risk::Replaced,
        Action::Pruned => Risk::Deleted,
        Action::Failed => Risk::Failed,
    }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Created => "created",
        Action::Changed => "changed",
        Action::Recreated => "deleted and created anew",
        Action::Pruned => "deleted",
        Action::Kept => "left behind",
        Action::NotCompared => "not compared",
        Action::Failed => "refused",
    }
}

fn highlight(entry: &Entry, field: &Field) -> Option<String> {
    let (old, new) = (field.old.as_ref()?, field.new.as_ref()?);
    let moved = || format!("{} → {}", value(Some(old)), value(Some(new)));
    if field.path.ends_with("].image") {
        return Some(format!("image {}", moved()));
    }
    let is_chart = entry.object.starts_with("HelmRelease/") && field.path == "spec.chart.spec.version";
    is_chart.then(|| format!("chart of {}: {}", code(&entry.object), moved()))
}

fn value(value: Option<&String>) -> String {
    value.map_or_else(|| "(none)".to_owned(), |value| code(&cut(value, MAX_VALUE)))
}

/// A text of others as HTML, in a line.
fn html(text: &str) -> String {
    let mut escaped = String::new();
    for c in cut(text, MAX_LINE).chars() {
        match c {
            c if c.is_control() => escaped.push(' '),
            c if c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | ' ') => escaped.push(c),
            // Markdown has more signs than HTML, and people are mentioned by an @.
            c => escaped.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    escaped
}

fn short(commit: &str) -> String {
    commit.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str, action: Action, file: Option<&str>) -> Entry {
        let mut entry = Entry::new(object.to_owned(), action, "");
        entry.file = file.map(str::to_owned);
        entry
    }

    fn field(path: &str, old: &str, new: &str) -> Field {
        Field {
            path: path.to_owned(),
            old: Some(old.to_owned()),
            new: Some(new.to_owned()),
            set_by: None,
        }
    }

    fn told<'a>(
        clusters: &'a [ClusterFindings],
        changed: &'a BTreeSet<String>,
        shows_values: bool,
    ) -> Told<'a> {
        Told {
            marker: "<!-- m -->",
            head: "0123456789",
            branch: "main",
            base: "abcdef0123",
            conflicts: &[],
            changed,
            checks: None,
            clusters,
            shows_values,
        }
    }

    fn section(object: &str, objects: Vec<Entry>) -> Section {
        Section {
            object: object.to_owned(),
            objects,
            unchanged: 3,
            ..Section::default()
        }
    }

    fn findings(sections: Vec<Section>) -> Vec<ClusterFindings> {
        vec![ClusterFindings {
            name: String::new(),
            sections: Ok(sections),
        }]
    }

    #[test]
    fn the_largest_risk_comes_first_and_images_are_named() {
        let mut changed = entry("Deployment/shop/web", Action::Changed, Some("web/web.yaml:3"));
        changed.fields = vec![field(
            "spec.template.spec.containers[name=web].image",
            "\"w:1\"",
            "\"w:2\"",
        )];
        let closed = entry("Secret/shop/keys", Action::NotCompared, Some("web/keys.yaml:1"));
        let gone = entry("ConfigMap/shop/old", Action::Pruned, None);
        let clusters = findings(vec![
            section("Kustomization/shop/web", vec![changed, closed]),
            section("Kustomization/shop/calm", vec![]),
            section("Kustomization/shop/gone", vec![gone]),
        ]);
        let paths = BTreeSet::from(["web/web.yaml".to_owned()]);
        let told = told(&clusters, &paths, true);
        assert_eq!(told.line(), "1 changed, 1 pruned");
        assert!(told.is_success());
        assert_eq!(
            told.comment(),
            "<!-- m -->\n### Preview: 1 changed, 1 pruned\n\n`01234567` merged into `main` at `abcdef01`.\n\n\
             - image `\"w:1\"` → `\"w:2\"`\n\n\
             <details><summary><code>Kustomization/shop/gone</code>: 1 pruned</summary>\n\n\
             - `ConfigMap/shop/old` **deleted**\n\n</details>\n\n\
             <details><summary><code>Kustomization/shop/web</code>: 1 changed</summary>\n\n\
             - `Deployment/shop/web` **changed** (`web/web.yaml:3`)\n  \
             - `spec.template.spec.containers[name=web].image`: `\"w:1\"` → `\"w:2\"`\n\n</details>\n\n"
        );
    }

    #[test]
    fn strangers_see_names_only() {
        let mut changed = entry("ConfigMap/shop/a", Action::Failed, Some("a.yaml:1"));
        changed.message = "hunter1".to_owned();
        changed.fields = vec![field("data.key", "hunter2", "hunter3")];
        let mut one = section("Kustomization/shop/web", vec![changed]);
        one.notes = vec!["hunter4".to_owned()];
        one.error = Some("hunter5".to_owned());
        let mut clusters = findings(vec![one]);
        clusters.push(ClusterFindings {
            name: "far".to_owned(),
            sections: Err("hunter6".to_owned()),
        });
        let paths = BTreeSet::new();
        let told = told(&clusters, &paths, false);
        let text = told.comment();
        assert!(!text.contains("hunter"), "{text}");
        assert!(
            text.contains("`data.key`") && text.contains("`ConfigMap/shop/a` **refused**"),
            "{text}"
        );
        assert_eq!(told.line(), "3 failed");
        assert!(!told.is_success());
    }

    #[test]
    fn no_text_gets_out_of_its_place() {
        let mut hostile = entry(
            "ConfigMap/shop/`</details>@all",
            Action::Changed,
            Some("`@all`\n# big"),
        );
        hostile.message = "`\n<img src=x>".to_owned();
        hostile.fields = vec![field("data.`x", "`a`\n\n- b", "@all")];
        let clusters = findings(vec![section("Kustomization/a/</summary>@all_*x*", vec![hostile])]);
        let paths = BTreeSet::new();
        let text = told(&clusters, &paths, true).comment();
        assert_eq!(text.matches("</details>").count(), 2, "one is in code: {text}");
        assert_eq!(text.matches("</summary>").count(), 1, "{text}");
        for line in text.lines().filter(|line| line.contains("@all")) {
            // Whatever follows the mention closes the span.
            assert_eq!(line.matches('`').count() % 2, 0, "{line}");
        }
        assert!(
            text.contains("a/&#60;/summary&#62;&#64;all&#95;&#42;x&#42;"),
            "{text}"
        );
    }

    #[test]
    fn a_long_comment_is_cut_between_its_parts() {
        let many = (0..2000).map(|n| {
            let object = format!("ConfigMap/shop/{n}-{}", "x".repeat(100));
            section(
                &format!("Kustomization/shop/{n}"),
                vec![entry(&object, Action::Created, None)],
            )
        });
        let clusters = findings(many.collect());
        let paths = BTreeSet::new();
        let text = told(&clusters, &paths, true).comment();
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("more are not shown"), "{text}");
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
        assert!(text.contains("Preview: 2000 created"), "{text}");
    }
}
