//! `windlass check`: whether a cluster is one for the controllers, and how they are; or whether a repository is sound.

mod artifact_service;
mod line;
mod repository;
mod state;

use clap::Args;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::cluster::output::{self, Colours, Output};
use crate::cluster::{self, Failure, print};
use crate::platform::{Place, Platform};
use line::{Level, Line};

/// Command line of `check`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Check only the prerequisites of an installation
    #[arg(long)]
    pre: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Form,

    #[command(flatten)]
    repository: repository::Repository,

    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Human-readable lines
    #[default]
    Text,
    Json,
    Yaml,
    /// SARIF 2.1.0, for a repository only
    Sarif,
    /// JUnit XML, for a repository only
    Junit,
}

/// Looks, and prints.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    if let Some(folder) = &flags.repository.folder {
        return repository::run(folder, &flags.repository, flags.output);
    }
    if matches!(flags.output, Form::Sarif | Form::Junit) {
        let message = "sarif and junit are for a repository: name its folder";
        return Err(Failure::Usage(message.to_owned()));
    }
    cluster::run(&flags.place.cluster(), async |cluster| {
        let platform = Platform::new(&cluster);
        let lines = match flags.pre {
            true => state::before(&platform).await?,
            false => state::now(&cluster, &platform).await?,
        };
        match flags.output {
            Form::Text => print(&shown(&lines, Colours::of_terminal()))?,
            Form::Json => print(&output::document(&value(&lines), Output::Json)?)?,
            Form::Yaml => print(&output::document(&value(&lines), Output::Yaml)?)?,
            // They were refused before.
            Form::Sarif | Form::Junit => {}
        }
        let failed = lines.iter().filter(|line| line.level == Level::Bad).count();
        match failed {
            0 => Ok(()),
            1 => Err(Failure::NotReady("1 check failed".to_owned())),
            _ => Err(Failure::NotReady(format!("{failed} checks failed"))),
        }
    })
}

fn shown(lines: &[Line], colours: Colours) -> String {
    let line = |line: &Line| {
        let (mark, tone) = line.level.mark();
        format!("{} {}\n", colours.paint(mark, tone), line.text)
    };
    lines.iter().map(line).collect()
}

fn value(lines: &[Line]) -> Value {
    let checks: Vec<Value> = lines
        .iter()
        .map(|line| json!({"check": line.check, "result": line.level.word(), "message": line.text}))
        .collect();
    let is_good = lines.iter().all(|line| line.level != Level::Bad);
    json!({"ok": is_good, "checks": checks})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_marks_and_programs_get_words() {
        let lines = [
            Line::new("a", Level::Good, "fine"),
            Line::new("b", Level::Bad, "not\nfine"),
        ];
        assert_eq!(shown(&lines, Colours::none()), "✔ fine\n✗ not fine\n");
        assert_eq!(
            value(&lines),
            json!({"ok": false, "checks": [{"check": "a", "result": "ok", "message": "fine"},
                {"check": "b", "result": "failed", "message": "not fine"}]})
        );
    }
}
