//! Runs the project's own cases (tests/cases/{go-template,helm} of the repository), whose answers the real Helm, and Go's
//! text/template, gave. `HELM_CASE=text` runs those whose name contains the text.

#[path = "support/command.rs"]
mod command;
#[path = "support/partial.rs"]
mod partial;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/report.rs"]
mod report;
#[path = "support/text_cases.rs"]
mod text_cases;

use std::fs;
use std::path::{Path, PathBuf};

use helm_chart::Helm;
use report::{Report, difference};
use text_cases::{Answer, Case};

/// How many cases pass: raise them until all do, never lower them.
const LANGUAGE: usize = 721;
const TEMPLATES_V4: usize = 404;
const TEMPLATES_V3: usize = 404;
const CHARTS_V4: usize = 240;
const CHARTS_V3: usize = 240;

/// Cases about the command line, which the crate `cli` checks.
const OF_THE_COMMAND_LINE: [&str; 3] = [
    "an_unknown_flag",
    "disable_openapi_validation_and_other_flags",
    "no_chart",
];

#[test]
fn templates_of_the_language_are_executed_as_go_executes_them() {
    let report = templates("go-template", |case| {
        (plain::execute(case), case.answer(Helm::V4))
    });
    check(&report, "text/template", LANGUAGE);
}

#[test]
fn templates_of_a_chart_are_rendered_as_helm_renders_them() {
    for (helm, floor) in [(Helm::V4, TEMPLATES_V4), (Helm::V3, TEMPLATES_V3)] {
        let report = templates("helm/templates", |case| {
            (
                partial::render(&case.template, &case.values, helm),
                case.answer(helm),
            )
        });
        check(&report, &format!("templates, {helm:?}"), floor);
    }
}

#[test]
fn charts_are_rendered_as_helm_renders_them() {
    let folder = text_cases::folder().join("helm/charts");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .expect("charts")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| !OF_THE_COMMAND_LINE.contains(&&*name(path)) && is_wanted(&name(path)))
        .collect();
    folders.sort();
    for (helm, floor) in [(Helm::V4, CHARTS_V4), (Helm::V3, CHARTS_V3)] {
        let report = Report::new(&folders, |folder| {
            ("charts".to_owned(), name(folder), chart(folder, helm))
        });
        check(&report, &format!("charts, {helm:?}"), floor);
    }
}

fn check(report: &Report, title: &str, floor: usize) {
    report.print(title);
    assert!(
        std::env::var_os("HELM_CASE").is_some() || report.passed() >= floor,
        "{title}: {} pass, it were {floor}",
        report.passed()
    );
}

fn is_wanted(name: &str) -> bool {
    std::env::var("HELM_CASE").map_or(true, |wanted| name.contains(&wanted))
}

fn templates(folder: &str, run: impl Fn(&Case) -> (Answer, &Answer) + Sync) -> Report {
    let mut cases = text_cases::read(&text_cases::folder().join(folder));
    assert!(cases.len() >= 400, "only {} cases were found", cases.len());
    cases.retain(|case| is_wanted(&case.name));
    Report::new(&cases, |case| {
        let group = case.name.split(':').next().unwrap_or_default().to_owned();
        let (actual, expected) = run(case);
        let outcome =
            difference(&show(expected), &show(&actual)).map_err(|why| format!("{}\n{why}", case.template));
        (group, case.name.clone(), outcome)
    })
}

fn show(answer: &Answer) -> String {
    match answer {
        Ok(output) => format!(
            "output:\n{}",
            output.escape_ascii().to_string().replace("\\n", "\n")
        ),
        Err(error) => format!("error:\n{error}"),
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().expect("name").to_string_lossy().into_owned()
}

fn chart(folder: &Path, helm: Helm) -> Result<(), String> {
    let folder = folder.canonicalize().expect("folder");
    let case = folder.to_string_lossy().into_owned();
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let arguments = text("args.txt").unwrap_or_else(|| "demo\n{CHART}\n".to_owned());
    let mut arguments: Vec<String> = arguments
        .lines()
        .map(|word| {
            word.replace("{CHART}", &format!("{case}/chart"))
                .replace("{CASE}", &case)
        })
        .collect();
    if !arguments.iter().any(|word| word.starts_with("--kube-version")) {
        arguments.extend(["--kube-version".to_owned(), "1.34.0".to_owned()]);
    }
    let actual = match command::template(&arguments, helm) {
        Ok(output) => output,
        Err(error) => format!("Error: {}\n", error.trim_end()),
    };
    let actual = actual
        .replace(&format!("{case}/chart"), "{CHART}")
        .replace(&case, "{CASE}");
    let four = || text("expected.yaml").or_else(|| text("expected-error.txt"));
    let three = || text("expected-v3.yaml").or_else(|| text("expected-v3-error.txt"));
    let expected = match helm {
        Helm::V3 => three().or_else(four),
        Helm::V4 => four(),
    };
    difference(&expected.expect("record it first"), &actual)
}
