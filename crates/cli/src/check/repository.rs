//! `windlass check FOLDER`: whether a repository is sound, without a cluster.

use std::path::{Path, PathBuf};

use repository_check::{Level, Report, Rule, Settings};

use super::Form;
use crate::cluster::output::{self, Colours, Output, Tone};
use crate::cluster::{Failure, print};
use crate::diff::{Checkout, Sources};

/// Command line of a check of a repository.
#[derive(Debug, clap::Args)]
pub(super) struct Repository {
    /// Repository to check instead of a cluster
    #[arg(value_name = "FOLDER", conflicts_with_all = ["pre", "kubeconfig", "context"])]
    pub(super) folder: Option<PathBuf>,

    /// Kubernetes version that must serve all APIs of the repository, such as 1.37
    #[arg(long, value_name = "VERSION", requires = "folder", value_parser = minor)]
    kubernetes_version: Option<u32>,

    /// File with a ConfigMap of rules: each entry of its data is a CEL expression over `object`, true for what is accepted
    #[arg(long, value_name = "FILE", requires = "folder")]
    rules: Vec<PathBuf>,

    /// Fail on warnings as well
    #[arg(long, requires = "folder")]
    strict: bool,
}

/// The minor version of Kubernetes 1.x.
fn minor(text: &str) -> Result<u32, String> {
    let parts = text.trim_start_matches('v').split('.').collect::<Vec<_>>();
    match parts.as_slice() {
        ["1", minor] | ["1", minor, _] => minor.parse().map_err(|_| "write it as 1.37".to_owned()),
        _ => Err("write it as 1.37".to_owned()),
    }
}

/// Checks, and prints.
pub(super) fn run(folder: &Path, flags: &Repository, form: Form) -> Result<(), Failure> {
    // What the artifact of a source would have.
    let tree = Checkout::open(folder, Sources::default())?;
    let mut settings = Settings {
        kubernetes: flags.kubernetes_version,
        rules: Vec::new(),
    };
    for file in &flags.rules {
        let name = file.display().to_string();
        let text =
            std::fs::read_to_string(file).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
        settings
            .rules
            .extend(Rule::of_config_map(&text, &name).map_err(Failure::Usage)?);
    }
    let report = repository_check::check(&tree, &settings);
    print(&match form {
        Form::Text => shown(&report, Colours::of_terminal()),
        Form::Json => output::document(&report.json(), Output::Json)?,
        Form::Yaml => output::document(&report.json(), Output::Yaml)?,
        Form::Sarif => output::document(&report.sarif(env!("CARGO_PKG_VERSION")), Output::Json)?,
        Form::Junit => report.junit(),
    })?;
    let failed = match flags.strict {
        true => report.count(Level::Error) + report.count(Level::Warning),
        false => report.count(Level::Error),
    };
    match failed {
        0 => Ok(()),
        _ => Err(Failure::NotReady(counted(failed, "finding"))),
    }
}

fn shown(report: &Report, colours: Colours) -> String {
    let mut text = String::new();
    for one in &report.findings {
        let tone = match one.level {
            Level::Error => Tone::Bad,
            Level::Warning => Tone::Open,
            Level::Note => Tone::Plain,
        };
        let place = match one.place().as_str() {
            "" => String::new(),
            place => format!("{place}: "),
        };
        let level = colours.paint(one.level.as_str(), tone);
        let said = delivery_graph::one_line(&one.text());
        text.push_str(&format!("{place}{level}: {said} ({})\n", one.rule));
    }
    let of = |level: Level| counted(report.count(level), level.as_str());
    text.push_str(&format!(
        "{} of {}: {}, {}\n",
        counted(report.objects, "object"),
        counted(report.builds, "build"),
        of(Level::Error),
        of(Level::Warning)
    ));
    text
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_people_write_them() {
        for (text, expected) in [
            ("1.37", Some(37)),
            ("v1.37.2", Some(37)),
            ("37", None),
            ("2.1", None),
            ("1.x", None),
        ] {
            assert_eq!(minor(text).ok(), expected, "{text}");
        }
    }
}
