//! Reads the recorded charts and templates of ../shared/conformance, as score.py there does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::read::GzDecoder;
use helm_chart::Helm;
use serde_json::Value;

use super::report::difference;

fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/conformance")
        .join(name);
    folder.canonicalize().ok()
}

/// Output of Helm, or its error as [`error`] leaves it.
#[derive(Clone, Debug)]
pub enum Expected {
    Output(Vec<u8>),
    Error(String),
}

/// Takes off what is the same in all errors, or another each time.
pub fn error(text: &str) -> String {
    const HINT: &str = "Use --debug flag to render out invalid YAML";
    let text = text.trim_end();
    let text = text.strip_suffix(HINT).unwrap_or(text).trim_end();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str("0x");
        out.push_str(if (6..=16).contains(&digits) {
            "PTR"
        } else {
            &part[..digits]
        });
        out.push_str(&part[digits..]);
    }
    out
}

/// The recorded charts.
pub struct Charts(PathBuf);

/// A command line and what it printed.
#[derive(Debug)]
pub struct Chart {
    pub name: String,
    pub arguments: Vec<String>,
    /// Lines that hold random values.
    pub masked: BTreeSet<usize>,
    chart: String,
    case: String,
    expected: Expected,
}

impl Charts {
    pub fn find() -> Option<Self> {
        folder("helm").map(Self)
    }

    /// The cases to which this version of Helm has an answer that stays the same.
    pub fn cases(&self, helm: Helm) -> Vec<Chart> {
        let folders = fs::read_dir(self.0.join("cases")).expect("cases");
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.expect("entry").path()).collect();
        folders.sort();
        folders
            .iter()
            .filter_map(|folder| self.case(folder, helm))
            .collect()
    }

    fn case(&self, folder: &Path, helm: Helm) -> Option<Chart> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).expect("recorded");
        let command: Value = serde_json::from_str(&text("cmd.json")).expect("JSON");
        let archive = self.0.join("charts").join(text("chart.txt").trim());
        let chart = archive.to_string_lossy().into_owned();
        let case = folder.to_string_lossy().into_owned();
        let words = command["args"].as_array().expect("args").iter();
        let words = words.map(|word| {
            word.as_str()
                .expect("text")
                .replace("{CHART}", &chart)
                .replace("{CASE}", &case)
        });
        let lines = match helm {
            Helm::V3 => &command["nondet_lines"],
            Helm::V4 => &command["nondet_lines_v4"],
        };
        let lines = lines.as_array().into_iter().flatten();
        Some(Chart {
            name: folder.file_name().expect("name").to_string_lossy().into_owned(),
            arguments: words.skip(1).collect(),
            masked: lines.filter_map(|line| Some(line.as_u64()? as usize)).collect(),
            chart,
            case,
            expected: expected(folder, &command, helm)?,
        })
    }
}

fn expected(folder: &Path, command: &Value, helm: Helm) -> Option<Expected> {
    let failed = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).expect("recorded");
        Some(Expected::Error(error(&text)))
    };
    let printed = || String::from_utf8(gunzip(&folder.join("expected.yaml.gz"))).expect("UTF-8");
    if helm == Helm::V3 {
        return match command["expect"].as_str() {
            Some("error") => failed("expected-error.txt"),
            _ => Some(Expected::Output(printed().into_bytes())),
        };
    }
    match command["v4"].as_str() {
        Some("unstable") => None,
        Some("error") => failed("expected-error-v4.txt"),
        Some("same") => Some(Expected::Output(printed().into_bytes())),
        _ => {
            let delta = gunzip(&folder.join("expected-v4.delta.json.gz"));
            let delta: Vec<(usize, usize, Vec<String>)> = serde_json::from_slice(&delta).expect("JSON");
            Some(Expected::Output(changed(&printed(), &delta).into_bytes()))
        }
    }
}

fn gunzip(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let file = fs::File::open(path).expect("recorded");
    GzDecoder::new(file).read_to_end(&mut content).expect("gzip");
    content
}

/// Puts new lines where the old ones from one number up to another were.
fn changed(text: &str, delta: &[(usize, usize, Vec<String>)]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    for (from, to, new) in delta {
        out.extend(&lines[at..*from]);
        out.extend(new.iter().map(String::as_str));
        at = *to;
    }
    out.extend(&lines[at..]);
    out.join("\n")
}

impl Chart {
    /// Says what is another answer than Helm's.
    pub fn compare(&self, actual: Result<String, String>) -> Result<(), String> {
        let named = |text: String| text.replace(&self.chart, "{CHART}").replace(&self.case, "{CASE}");
        match (&self.expected, actual) {
            (Expected::Output(expected), Ok(actual)) => {
                let expected = std::str::from_utf8(expected).expect("UTF-8");
                difference(&self.mask(expected), &self.mask(&actual))
            }
            (Expected::Error(expected), Err(actual)) => difference(expected, &error(&named(actual))),
            (Expected::Output(_), Err(actual)) => Err(format!("error {actual}")),
            (Expected::Error(expected), Ok(_)) => Err(format!("no error, expected {expected}")),
        }
    }

    fn mask(&self, text: &str) -> String {
        let lines = text.split('\n').enumerate();
        let lines = lines.map(|(index, line)| {
            if self.masked.contains(&(index + 1)) {
                "MASKED"
            } else {
                line
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A template, or a chart of a few files, and what Helm made of it.
#[derive(Debug)]
pub struct Vector {
    pub id: String,
    pub group: String,
    pub template: Option<String>,
    pub values: String,
    pub files: BTreeMap<String, String>,
    pub args: Vec<String>,
    pub release: Option<String>,
    line: Value,
}

/// Reads the recorded templates.
pub fn vectors() -> Option<Vec<Vector>> {
    let file = folder("vectors")?.join("vectors.jsonl");
    let lines = fs::read_to_string(file).expect("recorded");
    Some(lines.lines().map(vector).collect())
}

fn vector(line: &str) -> Vector {
    let line: Value = serde_json::from_str(line).expect("JSON");
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let files = line["files"].as_object().into_iter().flatten();
    let args = line["args"].as_array().into_iter().flatten();
    Vector {
        id: text("id").expect("id"),
        group: text("group").expect("group"),
        template: text("template"),
        values: text("values").unwrap_or_default(),
        files: files
            .map(|(path, content)| (path.clone(), content.as_str().expect("text").to_owned()))
            .collect(),
        args: args.filter_map(|word| word.as_str().map(str::to_owned)).collect(),
        release: text("release"),
        line,
    }
}

impl Vector {
    /// Returns the answer of a version of Helm.
    pub fn expected(&self, helm: Helm) -> Expected {
        const KINDS: [&str; 4] = ["output", "output_b64", "stdout", "error"];
        let is_other = KINDS
            .iter()
            .any(|kind| self.line.get(format!("{kind}_v4")).is_some());
        let pick = |kind: &str| {
            let name = if helm == Helm::V4 && is_other {
                format!("{kind}_v4")
            } else {
                kind.to_owned()
            };
            self.line.get(name)?.as_str()
        };
        if let Some(text) = pick("error") {
            return Expected::Error(error(text));
        }
        if let Some(encoded) = pick("output_b64") {
            return Expected::Output(BASE64_STANDARD.decode(encoded).expect("base64"));
        }
        let text = pick("output").or_else(|| pick("stdout"));
        Expected::Output(text.expect("an answer").as_bytes().to_vec())
    }
}
