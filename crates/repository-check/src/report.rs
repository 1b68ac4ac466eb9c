//! The findings, and how programs read them.

use std::fmt::Write as _;

use manifest::Object;
use serde_json::{Value, json};

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All findings, by file and line.
    pub findings: Vec<Finding>,
    /// How many folders were built.
    pub builds: usize,
    /// How many objects that made.
    pub objects: usize,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The rule: `build`, `schema`, `removed-api`, the name of a policy, and so on.
    pub rule: String,
    /// How bad it is.
    pub level: Level,
    /// What is wrong.
    pub message: String,
    /// Kind, namespace and name of the object, if it is about one.
    pub object: Option<String>,
    /// Path of the file, or of the folder as `./folder`.
    pub file: Option<String>,
    /// Line of the object in the file.
    pub line: Option<u32>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It would not work.
    Error,
    /// It may not work.
    Warning,
    /// Something was not checked.
    Note,
}

impl Level {
    /// As SARIF calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Finding {
    pub(crate) fn at(&mut self, file: &str, line: Option<u32>) -> &mut Self {
        self.file = Some(file.to_owned());
        self.line = line;
        self
    }

    pub(crate) fn of(&mut self, object: &Object) -> &mut Self {
        self.object = Some(object.id().to_string());
        if let Some(origin) = object.origin() {
            self.at(&origin.file, (origin.line > 0).then_some(origin.line));
        }
        self
    }

    /// File and line, where there are any.
    pub fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => String::new(),
        }
    }
}

impl Report {
    pub(crate) fn add(&mut self, rule: &str, level: Level, message: String) -> &mut Finding {
        self.findings.push(Finding {
            rule: rule.to_owned(),
            level,
            message,
            object: None,
            file: None,
            line: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    pub(crate) fn sort(&mut self) {
        let key = |one: &Finding| {
            (
                one.level,
                one.file.clone(),
                one.line,
                one.rule.clone(),
                one.message.clone(),
            )
        };
        self.findings.sort_by_key(key);
        self.findings.dedup();
    }

    /// How many findings are of a level.
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|one| one.level == level).count()
    }

    /// All of it as JSON.
    pub fn json(&self) -> Value {
        let findings = self.findings.iter().map(|one| {
            json!({"rule": one.rule, "level": one.level.as_str(), "message": one.message, "object": one.object,
                "file": one.file, "line": one.line})
        });
        json!({"findings": findings.collect::<Vec<_>>(), "builds": self.builds, "objects": self.objects})
    }

    /// As SARIF 2.1.0, which forges show beside the lines of a pull request.
    pub fn sarif(&self, version: &str) -> Value {
        let mut rules: Vec<&str> = self.findings.iter().map(|one| one.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        let results = self.findings.iter().map(|one| {
            let mut result =
                json!({"ruleId": one.rule, "level": one.level.as_str(), "message": {"text": one.text()}});
            if let Some(file) = &one.file {
                let file = file.trim_start_matches("./");
                let mut place = json!({"artifactLocation": {"uri": file, "uriBaseId": "%SRCROOT%"}});
                if let Some(line) = one.line {
                    place["region"] = json!({"startLine": line});
                }
                result["locations"] = json!([{"physicalLocation": place}]);
            }
            result
        });
        let results: Vec<_> = results.collect();
        let rules: Vec<_> = rules.into_iter().map(|id| json!({"id": id})).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "windlass", "version": version, "rules": rules}},
                "results": results,
            }],
        })
    }

    /// As JUnit reads it: a case for each error, and one that passes if there is none.
    pub fn junit(&self) -> String {
        let errors: Vec<_> = self
            .findings
            .iter()
            .filter(|one| one.level == Level::Error)
            .collect();
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let count = errors.len().max(1);
        let _ = writeln!(
            text,
            "<testsuites><testsuite name=\"windlass check\" tests=\"{count}\" failures=\"{}\">",
            errors.len()
        );
        if errors.is_empty() {
            let _ = writeln!(
                text,
                "<testcase classname=\"windlass\" name=\"{} objects of {} builds\"/>",
                self.objects, self.builds
            );
        }
        for one in errors {
            let place = one.place();
            let name = one.object.as_deref().unwrap_or(&place);
            let _ = writeln!(
                text,
                "<testcase classname=\"{}\" name=\"{}\" file=\"{}\"><failure message=\"{}\"/></testcase>",
                xml(&one.rule),
                xml(name),
                xml(one.file.as_deref().unwrap_or_default()),
                xml(&one.text())
            );
        }
        text.push_str("</testsuite></testsuites>\n");
        text
    }
}

impl Finding {
    /// What is wrong, with the object.
    pub fn text(&self) -> String {
        match &self.object {
            Some(object) => format!("{object}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
