//! Reads files of template cases; tests/cases/helm/README.md has their format.

use std::fs;
use std::path::{Path, PathBuf};

use helm_chart::Helm;

/// Output of a template, or its error.
pub type Answer = Result<Vec<u8>, String>;

/// One template and what the real tools made of it.
#[derive(Debug, Default)]
pub struct Case {
    /// The file and the name, to find it again.
    pub name: String,
    pub template: String,
    pub values: String,
    pub options: Vec<String>,
    four: Option<Answer>,
    three: Option<Answer>,
}

impl Case {
    /// Returns the recorded answer of a version of Helm.
    pub fn answer(&self, helm: Helm) -> &Answer {
        let answer = match helm {
            Helm::V3 => self.three.as_ref().or(self.four.as_ref()),
            Helm::V4 => self.four.as_ref(),
        };
        answer.unwrap_or_else(|| panic!("{}: record it first", self.name))
    }
}

/// The folder of the project's own cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}

/// Reads all files of cases in a folder.
pub fn read(folder: &Path) -> Vec<Case> {
    let values = fs::read_to_string(folder.join("values.yaml")).expect("values.yaml");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let title = file.file_stem().expect("name").to_string_lossy().into_owned();
        let content = format!("\n{}", fs::read_to_string(&file).expect("UTF-8"));
        for text in content.split("\n=== ").skip(1) {
            cases.push(case(&title, text, &values));
        }
    }
    cases
}

fn case(title: &str, text: &str, values: &str) -> Case {
    let (name, body) = text.split_once('\n').unwrap_or((text, ""));
    let mut case = Case {
        name: format!("{title}: {name}"),
        values: values.to_owned(),
        ..Case::default()
    };
    let mut section = "template";
    let mut lines = Vec::new();
    for line in body.trim_end_matches('\n').split('\n') {
        match line.strip_prefix("--- ").filter(|name| is_section(name)) {
            Some(next) => {
                case.set(section, &lines);
                (section, lines) = (next, Vec::new());
            }
            None => lines.push(line),
        }
    }
    case.set(section, &lines);
    case
}

fn is_section(name: &str) -> bool {
    ["values", "options", "output", "error"].contains(&name.split(' ').next().unwrap_or_default())
}

impl Case {
    fn set(&mut self, section: &str, lines: &[&str]) {
        let text = lines.join("\n");
        let mut words = section.split(' ');
        let kind = words.next().unwrap_or_default();
        let flags: Vec<&str> = words.collect();
        let content = if flags.contains(&"quoted") {
            unquote(&text)
        } else {
            text.clone().into_bytes()
        };
        let answer = match kind {
            "template" => return self.template = text,
            "values" => return self.values = text + "\n",
            "options" => return self.options = text.split_whitespace().map(str::to_owned).collect(),
            "output" => Ok(content),
            _ => Err(String::from_utf8(content).expect("errors are text")),
        };
        if flags.contains(&"v3") {
            self.three = Some(answer);
        } else {
            self.four = Some(answer);
        }
    }
}

fn unquote(text: &str) -> Vec<u8> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let mut bytes = inner.expect("quoted").bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        out.push(match escaped {
            None => byte,
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'x') => {
                let digits = [bytes.next().expect("digit"), bytes.next().expect("digit")];
                u8::from_str_radix(std::str::from_utf8(&digits).expect("ASCII"), 16).expect("digits")
            }
            Some(other) => other,
        });
    }
    out
}
