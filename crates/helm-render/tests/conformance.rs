//! Runs the charts and templates recorded from the real Helm (3.22.0 and 4.3.1) that lie beside the repository.
//!
//! They are not part of the project: without them the tests say so and pass. They compare bytes, except of lines that hold
//! random values, and fail when fewer cases pass than the number last reached. `HELM_CASE=text` runs the cases whose
//! name contains the text.

#[path = "support/command.rs"]
mod command;
#[path = "support/partial.rs"]
mod partial;
#[path = "support/recorded.rs"]
mod recorded;
#[path = "support/report.rs"]
mod report;

use std::fs;

use helm_chart::Helm;
use recorded::{Charts, Expected, Vector};
use report::{Report, difference};

/// How many cases pass: raise them, never lower them.
const CHARTS_V4: usize = 1527;
const CHARTS_V3: usize = 1527;
const VECTORS_V4: usize = 843;
const VECTORS_V3: usize = 843;

/// Cases about the command line, which the crate `cli` checks.
const OF_THE_COMMAND_LINE: [&str; 1] = ["release-name-007"];

#[test]
fn recorded_charts_are_rendered_as_helm_renders_them() {
    let Some(charts) = Charts::find() else {
        println!("../shared/conformance/helm is not there: skipped");
        return;
    };
    for (helm, floor) in [(Helm::V4, CHARTS_V4), (Helm::V3, CHARTS_V3)] {
        let cases: Vec<_> = charts
            .cases(helm)
            .into_iter()
            .filter(|case| is_wanted(&case.name))
            .collect();
        let report = Report::new(&cases, |case| {
            let actual = command::template(&case.arguments, helm);
            let group = if case.masked.is_empty() {
                "every byte"
            } else {
                "but for random lines"
            };
            (group.to_owned(), case.name.clone(), case.compare(actual))
        });
        check(&report, &format!("charts, {helm:?}"), floor);
    }
}

#[test]
fn recorded_templates_are_rendered_as_helm_renders_them() {
    let Some(vectors) = recorded::vectors() else {
        println!("../shared/conformance/vectors is not there: skipped");
        return;
    };
    let vectors: Vec<&Vector> = vectors
        .iter()
        .filter(|vector| is_wanted(&vector.id) && !OF_THE_COMMAND_LINE.contains(&vector.id.as_str()))
        .collect();
    for (helm, floor) in [(Helm::V4, VECTORS_V4), (Helm::V3, VECTORS_V3)] {
        let report = Report::new(&vectors, |vector| {
            (vector.group.clone(), vector.id.clone(), outcome(vector, helm))
        });
        check(&report, &format!("vectors, {helm:?}"), floor);
    }
}

fn is_wanted(name: &str) -> bool {
    std::env::var("HELM_CASE").map_or(true, |wanted| name.contains(&wanted))
}

fn check(report: &Report, title: &str, floor: usize) {
    report.print(title);
    assert!(
        std::env::var_os("HELM_CASE").is_some() || report.passed() >= floor,
        "{title}: {} pass, it were {floor}",
        report.passed()
    );
}

fn outcome(vector: &Vector, helm: Helm) -> Result<(), String> {
    let expected = vector.expected(helm);
    let actual = match &vector.template {
        Some(template) => match &expected {
            Expected::Error(_) => partial::error_of(template, &vector.values, helm).map(|()| Vec::new()),
            Expected::Output(_) => partial::render(template, &vector.values, helm),
        },
        None => of_files(vector, helm),
    };
    match (expected, actual) {
        (Expected::Output(expected), Ok(actual)) => difference(&show(&expected), &show(&actual)),
        (Expected::Error(expected), Err(actual)) => difference(&expected, &recorded::error(&actual)),
        (Expected::Output(expected), Err(actual)) => {
            Err(format!("error {actual}\nexpected {}", show(&expected)))
        }
        (Expected::Error(expected), Ok(actual)) => {
            Err(format!("output {}\nexpected {expected}", show(&actual)))
        }
    }
    .map_err(|why| format!("{}\n{why}", vector.template.as_deref().unwrap_or_default()))
}

fn show(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

fn of_files(vector: &Vector, helm: Helm) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join("vec");
    for (path, content) in &vector.files {
        let path = chart.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    let chart = chart.to_string_lossy().into_owned();
    let mut arguments: Vec<String> = vector.release.iter().cloned().collect();
    arguments.extend([chart.clone(), "--namespace".to_owned(), "demo-ns".to_owned()]);
    if !vector.args.iter().any(|word| word == "--kube-version") {
        arguments.extend(["--kube-version".to_owned(), "1.34.0".to_owned()]);
    }
    arguments.extend(vector.args.iter().map(|word| word.replace("{DIR}", &chart)));
    let answer = command::template(&arguments, helm);
    answer
        .map(|output| output.replace(&chart, "{DIR}").into_bytes())
        .map_err(|error| error.replace(&chart, "{DIR}"))
}
