//! Runs the cases recorded from the real kustomize (5.8.3) that lie beside the repository.
//!
//! They are not part of the project: without them the test says so and passes. It compares bytes, and fails when fewer
//! cases pass than the number last reached. `KUSTOMIZE_CASE=name` runs the cases whose name contains the text and
//! prints what is different.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use kustomize_build::{DefaultOrder, LoadRestrictions, MemoryFs, Options, build};

/// How many cases pass: raise it, never lower it.
const FLOOR: usize = 779;

struct Case {
    name: String,
    files: MemoryFs,
    folder: String,
    options: Options,
    expected: Result<String, String>,
}

fn recorded() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/kustomize/cases");
    folder.is_dir().then_some(folder)
}

fn gunzip(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(fs::File::open(path).expect("recorded"))
        .read_to_end(&mut content)
        .expect("gzip");
    content
}

fn load(folder: &Path) -> Case {
    let mut files = MemoryFs::default();
    let archive = gunzip(&folder.join("input.tgz"));
    let mut archive = tar::Archive::new(&archive[..]);
    for entry in archive.entries().expect("tar") {
        let mut entry = entry.expect("tar");
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry
            .path()
            .expect("path")
            .to_string_lossy()
            .trim_start_matches("./")
            .to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("tar");
        files.insert(path, content);
    }
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let flags = text("flags.txt").unwrap_or_default();
    let load_restrictions = match flags.contains("LoadRestrictionsNone") {
        true => LoadRestrictions::None,
        false => LoadRestrictions::RootOnly,
    };
    let default_order = if flags.contains("--reorder none") {
        DefaultOrder::Fifo
    } else {
        DefaultOrder::Legacy
    };
    let expected = match text("expected-error.txt") {
        Some(error) => Err(error.trim_end().to_owned()),
        None => Ok(String::from_utf8(gunzip(&folder.join("expected.yaml.gz"))).expect("UTF-8")),
    };
    Case {
        name: folder.file_name().expect("name").to_string_lossy().into_owned(),
        files,
        folder: text("path.txt").unwrap_or_default().trim().to_owned(),
        options: Options {
            load_restrictions,
            default_order,
            ..Options::default()
        },
        expected,
    }
}

/// Recorded messages hold the folder of the case; ours are relative to it.
fn relative(message: &str) -> String {
    message
        .replace("{ROOT}/", "")
        .replace("{ROOT}", ".")
        .replace("{PARENT}/", "../")
}

/// Returns why a case fails: a short reason and the details.
fn failure(case: &Case) -> Option<(String, String)> {
    let actual = build(&case.files, &case.folder, &case.options);
    match (&case.expected, actual) {
        (Ok(expected), Ok(built)) => {
            let actual = built.to_yaml();
            (*expected != actual).then(|| ("other output".to_owned(), difference(expected, &actual)))
        }
        (Err(expected), Err(error)) => {
            let (expected, actual) = (
                relative(expected),
                format!("Error: {error}").trim_end().to_owned(),
            );
            let details = format!("expected {expected}\nactual   {actual}");
            (expected != actual).then(|| ("other error".to_owned(), details))
        }
        (Ok(_), Err(error)) => Some((
            format!("error {:?}", error.kind()),
            format!("{error} ({:?}:{})", error.file(), error.line()),
        )),
        (Err(expected), Ok(_)) => Some(("no error".to_owned(), relative(expected))),
    }
}

fn difference(expected: &str, actual: &str) -> String {
    let mut lines = Vec::new();
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let first = expected
        .iter()
        .zip(&actual)
        .position(|(e, a)| e != a)
        .unwrap_or(expected.len().min(actual.len()));
    for (sign, text) in [('-', &expected), ('+', &actual)] {
        for line in text.iter().skip(first.saturating_sub(3)).take(10) {
            lines.push(format!("{sign}{line}"));
        }
    }
    format!("line {}:\n{}", first + 1, lines.join("\n"))
}

fn group(name: &str) -> String {
    match name.strip_prefix("hand__") {
        Some(rest) => rest.rsplit_once('-').map_or(rest, |(group, _)| group).to_owned(),
        None => "real repositories".to_owned(),
    }
}

#[test]
fn recorded_cases_build_as_the_real_kustomize_builds_them() {
    let Some(folder) = recorded() else {
        println!("../shared/conformance/kustomize is not there: skipped");
        return;
    };
    let wanted = std::env::var("KUSTOMIZE_CASE").ok();
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("entry").path())
        .collect();
    folders.sort();
    let mut groups: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders {
        let case = load(&folder);
        if wanted.as_ref().is_some_and(|wanted| !case.name.contains(wanted)) {
            continue;
        }
        let counts = groups.entry(group(&case.name)).or_default();
        counts.1 += 1;
        match failure(&case) {
            None => counts.0 += 1,
            Some((reason, details)) => {
                println!("FAIL {} ({reason})\n{details}\n", case.name);
                reasons.entry(reason).or_default().push(case.name);
            }
        }
    }
    for (reason, names) in &reasons {
        println!("{reason}: {}\n  {}", names.len(), names.join("\n  "));
    }
    for (group, (passed, all)) in &groups {
        println!("{group}: {passed} of {all}");
    }
    let passed: usize = groups.values().map(|(passed, _)| passed).sum();
    let all: usize = groups.values().map(|(_, all)| all).sum();
    println!("{passed} of {all} pass");
    assert!(
        wanted.is_some() || passed >= FLOOR,
        "{passed} of {all} cases pass, it were {FLOOR}"
    );
}
