//! How a comparison is shown: for people, as a unified diff, and for programs.

use clap::ValueEnum;
use delivery_diff::{Action, Entry, Field, Line, Section, Summary};
use delivery_graph::one_line;
use serde_json::{Value, json};

use crate::cluster::output::{self, Colours, Tone};
use crate::cluster::{Failure, Output};

/// The forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Objects, with the fields that would change
    #[default]
    Table,
    /// A unified diff of the objects as YAML
    Diff,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

pub(crate) fn shown(sections: &[Section], form: Form, colours: Colours) -> Result<String, Failure> {
    match form {
        Form::Table => Ok(table(sections, colours)),
        Form::Diff => diff(sections, colours),
        Form::Json => output::document(&value(sections)?, Output::Json),
        Form::Yaml => output::document(&value(sections)?, Output::Yaml),
    }
}

fn value(sections: &[Section]) -> Result<Value, Failure> {
    let failed = |error: serde_json::Error| Failure::Write(error.to_string());
    let summary = serde_json::to_value(Summary::from_sections(sections)).map_err(failed)?;
    let sections = serde_json::to_value(sections).map_err(failed)?;
    Ok(json!({"summary": summary, "sections": sections}))
}

fn table(sections: &[Section], colours: Colours) -> String {
    let mut text = String::new();
    for section in sections {
        text.push_str(&head(section));
        let mut line = |indent: usize, said: &str| text.push_str(&format!("{}{said}\n", " ".repeat(indent)));
        for note in &section.notes {
            line(2, &format!("note: {}", one_line(note)));
        }
        if let Some(error) = &section.error {
            line(
                2,
                &colours.paint(&format!("not compared: {}", one_line(error)), Tone::Bad),
            );
        }
        for entry in &section.objects {
            line(2, &entry_line(entry, colours));
            for field in &entry.fields {
                line(6, &field_line(field));
            }
            if entry.more_fields > 0 {
                line(6, &format!("and {} more", entry.more_fields));
            }
        }
        if section.unchanged > 0 {
            line(2, &format!("  {} unchanged", section.unchanged));
        }
    }
    text.push_str(&format!("\n{}\n", Summary::from_sections(sections).in_words()));
    text
}

fn head(section: &Section) -> String {
    let mut said = Vec::new();
    if !section.from.is_empty() {
        said.push(format!("from {}", section.from));
    }
    if let Some(applied_by) = &section.applied_by {
        said.push(format!("applied by {applied_by}"));
    }
    match said.is_empty() {
        true => format!("{}\n", section.object),
        false => format!("{} ({})\n", section.object, said.join(", ")),
    }
}

fn entry_line(entry: &Entry, colours: Colours) -> String {
    let (sign, word, tone) = match entry.action {
        Action::Created => ("+", "created", Tone::Good),
        Action::Changed => ("~", "changed", Tone::Open),
        Action::Recreated => ("±", "deleted and created anew", Tone::Bad),
        Action::Pruned => ("-", "pruned", Tone::Bad),
        Action::Kept => (" ", "left behind", Tone::Plain),
        Action::NotCompared => ("?", "not compared", Tone::Open),
        Action::Failed => ("!", "", Tone::Bad),
    };
    let mut line = format!("{sign} {}", entry.object);
    if !word.is_empty() {
        line.push_str(&format!(" {word}"));
    }
    line = colours.paint(&line, tone);
    if let Some(file) = &entry.file {
        line.push_str(&format!(" ({file})"));
    }
    if !entry.message.is_empty() {
        line.push_str(&format!(": {}", one_line(&entry.message)));
    }
    line
}

fn field_line(field: &Field) -> String {
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "(none)".to_owned(), one_line);
    format!("{}: {} → {}", field.path, shown(&field.old), shown(&field.new))
}

/// A diff has lines for what changes; what else there is to say is comments, which `patch` passes over.
fn diff(sections: &[Section], colours: Colours) -> Result<String, Failure> {
    let written = |value: &Value| match value {
        Value::Null => Ok(String::new()),
        value => output::document(value, Output::Yaml),
    };
    let mut text = String::new();
    for section in sections {
        let mut comment = |said: &str| text.push_str(&format!("# {}: {}\n", section.object, one_line(said)));
        section.notes.iter().for_each(|note| comment(note));
        section
            .error
            .iter()
            .for_each(|error| comment(&format!("not compared: {error}")));
        for entry in &section.objects {
            let (before, after) = (written(&entry.states.0)?, written(&entry.states.1)?);
            if before == after {
                text.push_str(&format!("# {}\n", entry_line(entry, Colours::none())));
                continue;
            }
            let name = |prefix: &str, text: &str| match text.is_empty() {
                true => "/dev/null".to_owned(),
                false => format!("{prefix}/{}", entry.object),
            };
            text.push_str(&format!(
                "--- {}\n+++ {}\n",
                name("cluster", &before),
                name("local", &after)
            ));
            text.push_str(&hunks(&before, &after, colours));
        }
    }
    Ok(text)
}

/// The hunks in which two texts differ, as lines; empty when they do not.
pub(crate) fn hunks(old: &str, new: &str, colours: Colours) -> String {
    let mut text = String::new();
    for hunk in delivery_diff::hunks(old, new) {
        text.push_str(&format!("{}\n", hunk.header));
        for line in hunk.lines {
            text.push_str(&match line {
                Line::Same(line) => format!(" {line}"),
                Line::Old(line) => colours.paint(&format!("-{line}"), Tone::Bad),
                Line::New(line) => colours.paint(&format!("+{line}"), Tone::Good),
            });
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Vec<Section> {
        let mut changed = Entry::new("ConfigMap/shop/a".to_owned(), Action::Changed, "");
        changed.file = Some("app/a.yaml:1".to_owned());
        changed.fields = vec![Field {
            set_by: None,
            path: "data.key".to_owned(),
            old: Some("\"1\"".to_owned()),
            new: None,
        }];
        changed.states = Box::new((
            json!({"data": {"key": "1", "x": "y"}}),
            json!({"data": {"x": "y"}}),
        ));
        let mut created = Entry::new("ConfigMap/shop/b".to_owned(), Action::Created, "");
        created.states = Box::new((Value::Null, json!({"kind": "ConfigMap"})));
        let refused = Entry::new("Secret/shop/s".to_owned(), Action::Failed, "dry-run failed:\nno");
        vec![Section {
            object: "Kustomization/shop/app".to_owned(),
            from: "./app".to_owned(),
            objects: vec![changed, created, refused],
            unchanged: 2,
            ..Section::default()
        }]
    }

    #[test]
    fn people_see_fields_and_programs_the_same() {
        let text = shown(&sections(), Form::Table, Colours::none()).unwrap();
        assert_eq!(
            text,
            "Kustomization/shop/app (from ./app)\n  ~ ConfigMap/shop/a changed (app/a.yaml:1)\n      \
             data.key: \"1\" → (none)\n  + ConfigMap/shop/b created\n  ! Secret/shop/s: dry-run failed: no\n    \
             2 unchanged\n\n1 created, 1 changed, 2 unchanged, 1 failed\n"
        );
        let text = shown(&sections(), Form::Json, Colours::none()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["summary"]["created"], 1);
        assert_eq!(
            value["sections"][0]["objects"][0]["fields"][0],
            json!({"path": "data.key", "old": "\"1\"", "new": null})
        );
        assert!(value["sections"][0]["objects"][0].get("states").is_none());
    }

    #[test]
    fn a_diff_is_one_that_patch_would_read() {
        let text = shown(&sections(), Form::Diff, Colours::none()).unwrap();
        assert_eq!(
            text,
            "--- cluster/ConfigMap/shop/a\n+++ local/ConfigMap/shop/a\n@@ -1,3 +1,2 @@\n data:\n-  key: \"1\"\n   x: \"y\"\n\
             --- /dev/null\n+++ local/ConfigMap/shop/b\n@@ -0,0 +1 @@\n+kind: ConfigMap\n# ! Secret/shop/s: dry-run failed: no\n"
        );
    }
}
