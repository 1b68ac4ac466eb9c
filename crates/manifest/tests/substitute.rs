//! Compares the expansion of variables with what Flux's library answered.
//!
//! `substitute.jsonl` has one question with its answer a line; `hack/oracle/envsubst` wrote the answers (envsubst 1.7.1,
//! Go 1.26): `GOTOOLCHAIN=go1.26.8 go run . < substitute.jsonl`. It also makes questions up, for the ignored test.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use manifest::substitute::{Mode, substitute};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Question {
    template: String,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    strict: bool,
    output: Option<String>,
    /// The output, when it is not UTF-8.
    bytes: Option<String>,
    error: Option<String>,
    /// Message of the library's panic.
    panic: Option<String>,
}

/// Says what is different, if anything is.
fn difference(line: &str) -> Option<String> {
    let question: Question = serde_json::from_str(line).expect("a question is JSON");
    let variables = |name: &str| question.variables.get(name).map(String::as_bytes);
    let mode = if question.strict {
        Mode::Strict
    } else {
        Mode::Lenient
    };
    let actual = substitute(&question.template, &variables, mode).map_err(|error| error.to_string());
    let expected = match (&question.output, &question.error) {
        (Some(output), _) => Ok(output.clone()),
        (None, Some(error)) => Err(error.clone()),
        (None, None) => {
            assert!(
                question.bytes.is_some() || question.panic.is_some(),
                "no answer: {line}"
            );
            return actual.ok().map(|output| format!("{line}\n  actual {output:?}"));
        }
    };
    (actual != expected).then(|| format!("{line}\n  actual {actual:?}"))
}

fn report(count: usize, differences: &[String]) {
    let shown = differences
        .iter()
        .take(20)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        differences.is_empty(),
        "{} of {count} differ:\n{shown}",
        differences.len()
    );
}

#[test]
fn recorded_templates_expand_as_in_flux() {
    let lines: Vec<&str> = include_str!("substitute.jsonl").lines().collect();
    assert!(lines.len() > 150, "only {} questions", lines.len());
    let differences: Vec<String> = lines.iter().filter_map(|line| difference(line)).collect();
    report(lines.len(), &differences);
}

#[test]
#[ignore = "needs Go, and the Go module proxy for the first run"]
fn made_up_templates_expand_as_in_flux() {
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/oracle/envsubst");
    let mut oracle = Command::new("go")
        .args(["run", "."])
        .arg(format!("-random={}", number("TEMPLATES", 100_000)))
        .arg(format!("-seed={}", number("SEED", 1)))
        .current_dir(folder)
        .env("GOTOOLCHAIN", "go1.26.8")
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is installed");
    let answers = BufReader::new(oracle.stdout.take().expect("piped"));
    let lines: Vec<String> = answers.lines().map(|line| line.expect("UTF-8")).collect();
    assert!(oracle.wait().expect("go was started").success());
    let differences: Vec<String> = lines.iter().filter_map(|line| difference(line)).collect();
    report(lines.len(), &differences);
    println!("{} templates are equal", lines.len());
}
