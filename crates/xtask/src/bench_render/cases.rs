//! Recorded charts as command lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::contest::Work;

/// A command line of `helm`.
#[derive(Clone, Debug)]
pub struct Case {
    /// The recorded case.
    pub name: String,
    arguments: Vec<String>,
}

impl Work for Case {
    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command.args(&self.arguments);
        command
    }

    fn line(&self) -> String {
        serde_json::json!(self.arguments[1..]).to_string()
    }
}

/// It has flags that mean nothing to an engine, which the in-process measurement does not read.
const OF_THE_COMMAND_LINE: &str = "disable_openapi_validation_and_other_flags";

/// The project's own charts that can be rendered.
pub fn own(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in folders(folder)? {
        if !folder.join("expected.yaml").exists() || folder.ends_with(OF_THE_COMMAND_LINE) {
            continue;
        }
        let words =
            fs::read_to_string(folder.join("args.txt")).unwrap_or_else(|_| "demo\n{CHART}\n".to_owned());
        let words = ["template"].into_iter().chain(words.lines());
        let mut case = case(&folder, words, &folder.join("chart"))?;
        case.arguments
            .extend(["--kube-version".to_owned(), "1.34.0".to_owned()]);
        cases.push(case);
    }
    Ok(cases)
}

/// The recorded charts beside the repository that can be rendered; none where they are not there.
pub fn recorded(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    if !folder.is_dir() {
        return Ok(cases);
    }
    for folder in folders(&folder.canonicalize()?)? {
        let command: Value = serde_json::from_str(&fs::read_to_string(folder.join("cmd.json"))?)?;
        if command["expect"] == "error" {
            continue;
        }
        let chart = fs::read_to_string(folder.join("chart.txt"))?;
        let words = command["args"].as_array().into_iter().flatten();
        let words = words.filter_map(Value::as_str);
        cases.push(case(
            &folder,
            words,
            &folder.join("../../charts").join(chart.trim()),
        )?);
    }
    Ok(cases)
}

fn case<'a>(folder: &Path, words: impl Iterator<Item = &'a str>, chart: &Path) -> Result<Case> {
    let [chart, place] = [chart, folder].map(|path| path.display().to_string());
    let words = words.map(|word| word.replace("{CHART}", &chart).replace("{CASE}", &place));
    Ok(Case {
        name: folder
            .file_name()
            .context("a case without a name")?
            .to_string_lossy()
            .into_owned(),
        arguments: words.collect(),
    })
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut folders = entries.collect::<Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}
